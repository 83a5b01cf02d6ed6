"""Reports on runs with known numbers."""

import csv
import json
from pathlib import Path

import pytest

from sf_explore_go.cli import run as run_verb
from sf_explore_go.report import final_rows, find_runs, group, main


def make_run(folder: Path, steps: int, seed: int, final: dict[str, float], **config: object) -> None:
    """A run folder as `train` and `evaluate` leave it: success rises in a straight line to `final`."""
    folder.mkdir(parents=True)
    base = {"env": "illustrative_train", "max_pure_expl_steps": steps, "explorer": "random", "seed": seed}
    resolved = base | {"milestone_step_freq": 100, "train_for_env_steps": 400, "gamma": 0.9} | config
    (folder / "config.json").write_text(json.dumps(resolved))
    with (folder / "evaluation.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["frames", "split", "success_rate"])
        for tick in (1, 2, 3, 4):
            for split, value in final.items():
                writer.writerow([tick * 100 + seed, split, value * tick / 4])


def make_sweep(folder: Path) -> None:
    for seed, (baseline, ours) in enumerate([(0.2, 0.9), (0.4, 0.8), (0.6, 1.0)]):
        make_run(folder / f"k0_{seed}", 0, seed, {"train": 1.0, "test": baseline})
        make_run(folder / f"k8_{seed}", 8, seed, {"train": 0.9, "test": ours})


def test_known_means_and_probabilities(tmp_path: Path) -> None:
    make_sweep(tmp_path)
    arms = group(find_runs([tmp_path]), mixed=False)
    assert [(arm.name, len(arm.runs)) for arm in arms] == [("baseline (K = 0)", 3), ("Explore-Go, K = 8, random", 3)]
    baseline, ours = final_rows(arms)
    assert baseline["test"] == pytest.approx(0.4)
    assert ours["test"] == pytest.approx(0.9)
    assert ours["train"] == pytest.approx(0.9)
    assert baseline["test_low"] >= 0.2
    assert baseline["test_high"] <= 0.6
    assert ours["p_better_on_test"] == 1.0
    # evaluations of different seeds, a few frames apart, meet in one point of the curve
    assert arms[0].curve("test", 100) == {t * 100: pytest.approx([0.05 * t, 0.1 * t, 0.15 * t]) for t in (1, 2, 3, 4)}


def test_writes_figure_and_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_sweep(tmp_path / "runs")
    assert main([str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 0
    assert (tmp_path / "out/figure.png").stat().st_size > 10_000
    assert "| baseline (K = 0) | 3 | 1.000 (1.000 to 1.000) | 0.400" in (tmp_path / "out/final.md").read_text()
    assert "figure:" in capsys.readouterr().out


@pytest.mark.parametrize("trouble", ["nothing", "missing", "other", "broken", "one split"])
def test_trouble_is_one_sentence(tmp_path: Path, trouble: str, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    if trouble != "nothing":
        make_run(runs / "a", 0, 0, {"train": 1.0, "test": 0.5})
    if trouble == "other":
        make_run(runs / "b", 8, 0, {"train": 1.0, "test": 0.5}, gamma=0.99)
    if trouble == "broken":
        (runs / "a/evaluation.csv").write_text("frames,split\n1,train\n")
    if trouble == "one split":
        (runs / "a/evaluation.csv").write_text("frames,split,success_rate\n1,train,1\n")
    target = tmp_path / "nowhere" if trouble == "missing" else runs
    assert run_verb(main, [str(target), f"--out={tmp_path / 'out'}"]) == 2
    error = capsys.readouterr().err
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
    if trouble == "other":
        assert "gamma (0.9 and 0.99)" in error
        assert run_verb(main, [str(target), f"--out={tmp_path / 'out'}", "--mixed"]) == 0


def test_exported_runs_give_the_same_report_and_name_no_place(tmp_path: Path) -> None:
    make_run(tmp_path / "runs/a", 0, 0, {"train": 1.0, "test": 0.5}, train_dir="/home/someone", command_line="x")
    make_run(tmp_path / "runs/b", 8, 0, {"train": 1.0, "test": 0.7}, train_dir="/home/someone", command_line="y")
    assert main([str(tmp_path / "runs"), f"--out={tmp_path / 'one'}", f"--export={tmp_path / 'published'}"]) == 0
    assert main([str(tmp_path / "published"), f"--out={tmp_path / 'two'}"]) == 0
    for name in ("figure.png", "final.md", "final.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert "someone" not in (tmp_path / "published/a/config.json").read_text()
