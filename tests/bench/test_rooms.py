"""The bench of Four Rooms: both sides are played, and the rates are steps by seconds."""

import json
from pathlib import Path

import pytest

from sf_explore_go.bench import rooms
from sf_explore_go.bench.common import main
from sf_explore_go.worlds.grid.four_rooms import FourRoomsEnv


def test_quick_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hand-made timings: four blocks of 500 steps at 0.1 s each are 5 000 steps a second, at 1 s they are 500."""
    played = []

    def timed(env: object, seed: int) -> float:
        ours = isinstance(env, FourRoomsEnv)
        played.append(ours)
        return 0.1 if ours else 1.0

    monkeypatch.setattr(rooms, "time_steps", timed)
    assert main(["rooms", "--quick", "--turns=2", f"--json={tmp_path / 'bench.json'}"]) == 0
    (row,) = json.loads((tmp_path / "bench.json").read_text())["rooms"]
    assert row["ours"] == pytest.approx([5000, 5000])
    assert row["stock"] == pytest.approx([500, 500])
    assert played.count(True) == played.count(False) == 8


def test_a_real_block_of_both() -> None:
    for env in (FourRoomsEnv(grid_size=19), rooms.minigrids()):
        assert 0 < rooms.time_steps(env, seed=1) < 10
