"""The bench verb: its table and its numbers; how fast is for `make bench` to say."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

from sf_explore_go.bench import training as bench_training
from sf_explore_go.bench.arm import speed
from sf_explore_go.bench.common import Row, format_table, main
from sf_explore_go.bench.training import format_growth, merge, row_of
from sf_explore_go.cli.doctor import orphaned_segments
from sf_explore_go.core.errors import UsageError


def test_quick_run_writes_every_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "bench.json"
    assert main(["env", "--quick", "--turns=2", f"--json={target}"]) == 0
    rows = json.loads(target.read_text())["env"]
    assert [row["quantity"] for row in rows] == ["decisions/s", "resets/s"]
    for row in rows:
        assert len(row["ours"]) == len(row["stock"]) == 2
        assert min(row["ours"] + row["stock"]) > 0
        ratios = np.array(row["ours"]) / np.array(row["stock"])
        assert row["median_ratio"] == pytest.approx(np.median(ratios))
    assert "decisions/s" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["bench.json"]


def test_quick_run_of_the_bonus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "bench.json"
    assert main(["e3b", "--quick", "--turns=1", f"--json={target}"]) == 0
    rows = {row["quantity"]: row for row in json.loads(target.read_text())["e3b"]}
    assert rows.keys() >= {"new arrays", "in place", "d = 128", "d = 1024", "phase 50", "phase 400", "peak MiB"}
    assert all(min(row["ours"] + row["stock"]) > 0 for row in rows.values())
    assert "stock is the published per-step update" in capsys.readouterr().out


def test_quick_run_of_evaluation(tmp_path: Path) -> None:
    target = tmp_path / "bench.json"
    assert main(["evaluate", "--quick", "--turns=1", f"--json={target}"]) == 0
    rows = {row["quantity"]: row for row in json.loads(target.read_text())["evaluate"]}
    assert rows.keys() == {"laptop ep/s", "paper ep/s"}
    assert all(min(row["ours"] + row["stock"]) > 0 for row in rows.values())


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


@pytest.mark.slow
def test_quick_run_beside_a_training(tmp_path: Path) -> None:
    target = tmp_path / "bench.json"
    assert main(["background", "--quick", "--turns=1", f"--json={target}"]) == 0
    rows = {row["quantity"]: row for row in json.loads(target.read_text())["background"]}
    assert rows.keys() == {"1 core fr/s"}
    assert all(min(row["ours"] + row["stock"]) > 0 for row in rows.values())


def test_the_ratio_is_the_median_over_turns() -> None:
    table = format_table("env", [Row("resets/s", ours=[100.0, 220.0, 300.0], stock=[100.0, 200.0, 100.0])])
    assert table.split("\n")[1].split() == ["resets/s", "220", "100", "1.100", "1.000", "to", "3.000"]


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["engine"], r"^bench engine: allowed are env, e3b, training, growth, evaluate, background$"),
        (["--turns=0"], r"^--turns=0: allowed are whole numbers from 1$"),
        (
            ["--json=/no/such/folder/x.json"],
            r"^--json=/no/such/folder/x.json: the folder /no/such/folder does not exist$",
        ),
        (["--turn=3"], r"^bench: unrecognized arguments: --turn=3$"),
    ],
)
def test_bad_input_is_refused(argv: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        main(argv)
