"""The bench verb: its table and its numbers; how fast is for `make bench` to say."""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sf_explore_go.bench import e3b as bench_e3b
from sf_explore_go.bench import evaluation as bench_evaluation
from sf_explore_go.bench import training as bench_training
from sf_explore_go.bench.arm import speed
from sf_explore_go.bench.common import Row, format_table, main
from sf_explore_go.bench.training import format_growth, merge, row_of
from sf_explore_go.cli.doctor import orphaned_segments
from sf_explore_go.core.errors import UsageError
from sf_explore_go.evaluation.episodes import PlannedEpisode
from sf_explore_go.runs.status import FINISHED, Status, write_status
from sf_explore_go.training.environments import register_worlds


def test_quick_run_writes_every_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "bench.json"
    assert main(["env", "--quick", "--turns=2", f"--json={target}"]) == 0
    rows = json.loads(target.read_text())["env"]
    assert [row["quantity"] for row in rows] == ["decisions/s", "unseen decisions/s", "resets/s"]
    for row in rows:
        assert len(row["ours"]) == len(row["stock"]) == 2
        assert min(row["ours"] + row["stock"]) > 0
        ratios = np.array(row["ours"]) / np.array(row["stock"])
        assert row["median_ratio"] == pytest.approx(np.median(ratios))
    assert "decisions/s" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def rows_of(target: Path, name: str) -> dict[str, dict[str, Any]]:
    """What was written, with the ratio of every row checked against its numbers."""
    rows = {row["quantity"]: row for row in json.loads(target.read_text())[name]}
    for row in rows.values():
        assert row["median_ratio"] == pytest.approx(np.median(np.array(row["ours"]) / np.array(row["stock"])))
    return rows


def test_quick_run_of_the_bonus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hand-made timings: 32 rollouts of 32 steps in half a second are 2048 per second; of 2 steps in 4 s, 16."""
    taken = iter([0.5, 4.0] * 8)
    monkeypatch.setattr(bench_e3b, "median_seconds", lambda arm, times: arm() is not None and next(taken))
    target = tmp_path / "bench.json"
    assert main(["e3b", "--quick", "--turns=1", f"--json={target}"]) == 0
    rows = rows_of(target, "e3b")
    peak = rows.pop("peak MiB")
    assert {name: (row["ours"], row["stock"]) for name, row in rows.items()} == {
        name: ([2048.0], [16.0])
        for name in ("new arrays", "in place", "d = 128", "d = 256", "d = 1024", "phase 50", "phase 100", "phase 400")
    }
    # The loop holds a table of 32 inverses of 512 x 512 floats, takes a copy of it and a buffer: 3 x 32 MiB.
    assert peak["stock"][0] == pytest.approx(96, rel=0.25)
    assert 0 < peak["ours"][0] < peak["stock"][0]
    shown = capsys.readouterr().out
    assert "128.000 to 128.000" in shown
    assert "stock is the published per-step update" in shown


@pytest.mark.parametrize("update", [bench_e3b.update_in_place, bench_e3b.update_with_new_arrays])
def test_both_arms_of_the_bonus_compute_the_same(update: bench_e3b.Update) -> None:
    held, features = bench_e3b.make_features(earlier=20, steps=6, size=24)
    ours, loop = bench_e3b.our_arm(held, features)(), bench_e3b.loop_arm(held, features, update)()
    assert ours.shape == (bench_e3b.ENVS, 6)
    torch.testing.assert_close(ours, loop, rtol=1e-3, atol=1e-5)


class HandMadeTime:
    """A clock, and two ways to play that take a known time: 2 s for all at once, 1.5 s for one after another."""

    def __init__(self) -> None:
        self.now = 0.0
        self.together: list[tuple[int, int]] = []  # (environments, episodes)
        self.one_by_one: list[int] = []  # seeds

    def perf_counter(self) -> float:
        return self.now

    def play(self, player: Any, envs: Sequence[Any], plan: Sequence[PlannedEpisode], threads: int) -> None:
        self.now += 2.0
        self.together.append((len(envs), len(plan)))

    def play_plainly(self, model: Any, env: Any, planned: PlannedEpisode, rnn_size: int) -> None:
        self.now += 1.5
        self.one_by_one.append(planned.seed)


def test_evaluation_counts_episodes_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HandMadeTime()
    monkeypatch.setattr(time, "perf_counter", clock.perf_counter)
    monkeypatch.setattr(bench_evaluation, "play", clock.play)
    monkeypatch.setattr(bench_evaluation, "play_plainly", clock.play_plainly)
    register_worlds()
    row = bench_evaluation.measure_network("name", "smoke", episodes=3, turns=2)
    assert (row.quantity, row.ours, row.stock) == ("name", [3 / 2.0] * 2, [3 / 4.5] * 2)
    assert row.ratios == pytest.approx([2.25] * 2)
    assert clock.together == [(8, 8), (8, 3), (8, 3)]  # the first only starts the engines
    assert len(set(clock.one_by_one)) == 6  # another episode each time


def test_quick_run_of_evaluation(tmp_path: Path) -> None:
    target = tmp_path / "bench.json"
    begin = time.perf_counter()
    assert main(["evaluate", "--quick", "--turns=1", f"--json={target}"]) == 0
    took = time.perf_counter() - begin
    rows = rows_of(target, "evaluate")
    assert list(rows) == ["laptop ep/s", "paper ep/s"]
    # two episodes by each arm with each network: all four cannot have taken longer than the whole
    seconds = sum(2 / row[arm][0] for row in rows.values() for arm in ("ours", "stock"))
    assert 0.02 * took < seconds < took


@pytest.mark.slow
def test_quick_run_of_trainings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_training, "ARMS", {name: bench_training.ARMS[name] for name in ("stock", "E3B")})
    target = tmp_path / "bench.json"
    before = set(orphaned_segments())
    assert main(["training", "--quick", f"--json={target}"]) == 0
    time.sleep(5)  # guards look once per second
    assert set(orphaned_segments()) <= before
    (row,) = json.loads(target.read_text())["training"]
    assert row["quantity"] == "laptop E3B"
    for arm in ("ours", "stock"):
        assert min(row[arm]) > 0
        (turn,) = row["detail"][arm]
        assert set(turn["cores"]) == {"main", "learner", "inference", "rollout", "engines"}
        assert all(statistics["valids_fraction"] == 1 for statistics in turn["statistics"].values())
        assert turn["shared_memory"] == pytest.approx(turn["shared_memory_estimate"], rel=0.15)
    (turn,) = row["detail"]["ours"]  # stock takes more, since none of its workers are forked
    assert turn["memory"] == pytest.approx(turn["memory_estimate"], rel=0.15)
    shown = capsys.readouterr().out
    assert "first step s" in shown
    assert "cores used" in shown


def test_turns_of_one_quantity_become_one_row() -> None:
    def row(name: str, speed: float) -> Row:
        memory = {"memory": 2**30, "memory_estimate": 2**31, "shared_memory": 2**22, "shared_memory_estimate": 2**23}
        turn = {"frames_per_second": speed, "first_step_seconds": 9.0} | memory
        return row_of(name, [turn], [turn | {"frames_per_second": 100.0}])

    merged = merge([row("K 0", 10), row("K 50", 20), row("K 0", 30), row("K 50", 40)])
    assert [(r.quantity, r.ours, r.stock) for r in merged] == [
        ("K 0", [10, 30], [100] * 2),
        ("K 50", [20, 40], [100] * 2),
    ]
    assert format_growth(merged).splitlines()[1].split() == ["K", "0", "20", "1.00", "2.00", "4", "8", "9.0"]


def test_speed_is_the_slope_of_a_line() -> None:
    """Frames that come in lumps of 100, ten times per second, make 1000 per second whenever one looks."""
    samples = [(t / 30, 5000 + 100 * (t // 3)) for t in range(300)]
    assert speed(samples) == pytest.approx(1000, rel=0.01)


def fake_training(frames: dict[bool, int]) -> Callable[..., None]:
    """Stands for the command: writes a training's status, with other counts if there is evaluation beside it."""

    def run(words: Sequence[str], **_: Any) -> None:
        assert "--train_for_seconds=10" in words
        beside = "--eval_in_background=True" in words
        assert beside or "--eval_in_background=False" in words
        (train_dir,) = (word.removeprefix("--train_dir=") for word in words if word.startswith("--train_dir="))
        (Path(train_dir) / "run").mkdir()
        write_status(Path(train_dir) / "run", Status(FINISHED, frames[beside], 100, 200, 300, 1.0, 0.0, "host", 1))

    return run


def test_what_evaluation_costs_a_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", fake_training({True: 4500, False: 5000}))
    target = tmp_path / "bench.json"
    assert main(["background", "--quick", "--turns=5", f"--json={target}"]) == 0
    (row,) = rows_of(target, "background").values()
    assert (row["quantity"], row["ours"], row["stock"]) == ("1 core fr/s", [450.0] * 2, [500.0] * 2)
    assert row["median_ratio"] == pytest.approx(0.9)


@pytest.mark.slow
def test_quick_run_beside_a_training(tmp_path: Path) -> None:
    """What a training says of itself: frames in ten seconds, in a few hundred lumps of a batch."""
    target = tmp_path / "bench.json"
    assert main(["background", "--quick", "--turns=1", f"--json={target}"]) == 0
    (row,) = rows_of(target, "background").values()
    for (rate,) in (row["ours"], row["stock"]):
        assert rate * 10 == pytest.approx(round(rate * 10))
        assert 50 < rate < 50_000


def test_the_ratio_is_the_median_over_turns() -> None:
    table = format_table("env", [Row("resets/s", ours=[100.0, 220.0, 300.0], stock=[100.0, 200.0, 100.0])])
    assert table.split("\n")[1].split() == ["resets/s", "220", "100", "1.100", "1.000", "to", "3.000"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["engine"], r"^bench engine: it must be one of env, rooms, e3b, training, growth, solve, evaluate, "),
        (["--turns=0"], r"^--turns=0: it must be a whole number, at least 1$"),
        (
            ["--json=/no/such/folder/x.json"],
            r"^--json=/no/such/folder/x.json: the folder /no/such/folder does not exist$",
        ),
        (["--turn=3"], r"^bench: unknown flag --turn=3; did you mean --turns\?$"),
    ],
)
def test_bad_input_is_refused(argv: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        main(argv)
