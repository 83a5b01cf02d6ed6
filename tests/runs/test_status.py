"""status.json: what a run says of itself, and whether its parts fit together."""

from pathlib import Path

import pytest
import torch

from sf_explore_go.runs.status import FINISHED, RUNNING, Part, Status, read_status, write_status
from tests.e2e.cli import train


def test_what_is_written_can_be_read_and_damage_is_none(tmp_path: Path) -> None:
    status = Status(RUNNING, 30, 10, 20, 100, 2.5, 1.0, "here", 7, [Part(0, 30, RUNNING)])
    assert read_status(tmp_path) is None
    write_status(tmp_path, status)
    assert read_status(tmp_path) == status
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]
    for damage in ("", "[]", "{}", '{"parts": [1]}', '{"parts": [], "state": "finished"}'):
        (tmp_path / "status.json").write_text(damage)
        assert read_status(tmp_path) is None


@pytest.mark.slow
def test_parts_of_a_run_that_is_taken_up_again_fit_together(tmp_path: Path) -> None:
    flags = ("--env=illustrative_train", "--seed=1")
    train(tmp_path, "run", *flags, "--train_for_env_steps=400")
    first = read_status(tmp_path / "run")
    train(tmp_path, "run", *flags, "--train_for_env_steps=900")
    second = read_status(tmp_path / "run")
    assert first is not None
    assert second is not None
    assert (first.state, first.budget, second.state, second.budget) == (FINISHED, 400, FINISHED, 900)
    assert [part.begun_at for part in second.parts] == [0, first.frames]
    assert [part.ended_at for part in second.parts] == [first.frames, second.frames]
    assert first.parts == second.parts[:1]
    newest = max((tmp_path / "run/checkpoint_p0").glob("checkpoint_*.pth"))
    assert torch.load(newest, weights_only=True)["frames"] == [second.explore_frames, second.go_frames]
    assert second.explore_frames + second.go_frames == second.frames >= 900
