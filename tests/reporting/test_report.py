"""Reports on runs with known numbers."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sf_explore_go.cli.main import run as run_verb
from sf_explore_go.reporting.figures import goal_figure, length_figure
from sf_explore_go.reporting.report import main
from sf_explore_go.reporting.runs import Arm, Run, due_at, find_runs, group
from sf_explore_go.reporting.starts import coverage_cells, read_seen
from sf_explore_go.reporting.tables import cells, final_rows, write_table
from sf_explore_go.runs.scores import Score, merge_scores


def make_run(folder: Path, steps: int, seed: int, final: dict[str, float], **config: object) -> None:
    """A run folder as `train` and `evaluate` leave it: success rises in a straight line to `final`."""
    folder.mkdir(parents=True)
    base = {"env": "illustrative_train", "max_pure_expl_steps": steps, "explorer": "random", "seed": seed}
    resolved = base | {"milestone_step_freq": 100, "train_for_env_steps": 400, "gamma": 0.9} | config
    (folder / "config.json").write_text(json.dumps(resolved))
    rows = [
        make_score(tick * 100 + seed, split, value * tick / 4)
        for tick in (1, 2, 3, 4)
        for split, value in final.items()
    ]
    merge_scores(folder / "evaluation.csv", rows)


def make_score(frames: int, split: str, rate: float, goal: str = "all", episodes: int = 40) -> Score:
    name = f"milestone_{frames:012d}.pth"
    return Score(frames, split, goal, episodes, rate, rate, rate, rate, rate, rate, 10.0, "sampled", 0, name)


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
    # Student's interval of (0.2, 0.4, 0.6) is 0.4 +- 4.3027 * 0.2 / sqrt(3), and a rate is not below 0
    assert baseline["test_low"] == 0.0
    assert baseline["test_high"] == pytest.approx(0.4 + 4.302653 * 0.2 / math.sqrt(3), abs=0.02)
    assert ours["p_better_on_test"] == ours["p_better_low"] == ours["p_better_high"] == 1.0
    assert baseline["p_better_on_test"] is None
    # seed by seed 0.7, 0.4 and 0.4 more
    half = 4.302653 * math.sqrt(0.03) / math.sqrt(3)
    assert ours["test_gain"] == pytest.approx(0.5)
    assert (ours["test_gain_low"], ours["test_gain_high"]) == pytest.approx((0.5 - half, 0.5 + half), abs=0.02)
    assert baseline["test_gain"] is None
    assert (ours["seeds"], ours["test_episodes"]) == (3, "40")
    # evaluations of different seeds, a few frames apart, meet in one point of the curve
    assert arms[0].curve("test", 100) == {t * 100: pytest.approx([0.05 * t, 0.1 * t, 0.15 * t]) for t in (1, 2, 3, 4)}


@pytest.mark.parametrize(
    ("frames", "checkpoint", "point"),
    [
        (345, "milestone_000000000345.pth", 300),  # due at 300, made with the first batch after it
        (300, "milestone_000000000300.pth", 300),
        (50, "milestone_000000000050.pth", 100),
        (345, "checkpoint_1_345.pth", 345),
        (395, "checkpoint_1_395.pth", 400),
    ],
)
def test_milestones_stand_where_they_were_due(frames: int, checkpoint: str, point: int) -> None:
    assert due_at(replace(make_score(frames, "test", 0.5), checkpoint=checkpoint), 100) == point


def test_writes_figure_and_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_sweep(tmp_path / "runs")
    assert main([str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 0
    assert (tmp_path / "out/figure.png").stat().st_size > 10_000
    assert (tmp_path / "out/figure.pdf").read_bytes().startswith(b"%PDF")
    assert "| baseline (K = 0) | 3 | 40 | 1.000 (1.000 to 1.000) | 0.400 (" in (tmp_path / "out/final.md").read_text()
    page = (tmp_path / "out/index.html").read_text()
    assert page.count("data:image/png;base64,") == 1
    assert "0.400 (" in page
    assert "page:" in capsys.readouterr().out


def test_interquartile_mean_leaves_out_the_extremes(tmp_path: Path) -> None:
    for seed, rate in enumerate([0.0, 0.5, 0.6, 1.0]):
        make_run(tmp_path / f"k0_{seed}", 0, seed, {"train": 1.0, "test": rate})
    (row,) = final_rows(group(find_runs([tmp_path]), mixed=False))
    assert row["test"] == pytest.approx(0.525)
    assert row["test_iqm"] == pytest.approx(0.55)


def test_gains_are_of_runs_with_the_same_contexts(tmp_path: Path) -> None:
    """Seed 1 has no partner; seed 2 has one, but with other contexts; what is left is one pair, without interval."""
    for seed, steps, rate, context_seed in ((0, 0, 0.5, 7), (2, 0, 0.1, 7), (0, 8, 0.4, 7), (1, 8, 1, 7), (2, 8, 1, 8)):
        scores = {"train": 1.0, "test": float(rate)}
        make_run(tmp_path / f"k{steps}_{seed}", steps, seed, scores, context_seed=context_seed)
    _, ours = final_rows(group(find_runs([tmp_path]), mixed=False))
    assert ours["test_gain"] == pytest.approx(-0.1)
    assert cells(ours)[-2] == "-0.100"


def test_goals_are_pooled_over_seeds(tmp_path: Path) -> None:
    for seed, (rate, episodes) in enumerate([(0.5, 4), (1.0, 12)]):
        make_run(tmp_path / f"k0_{seed}", 0, seed, {"train": 1.0, "test": 0.5})
        rows = [make_score(400 + seed, "test", rate, "11", episodes), make_score(300 + seed, "test", 0.0, "11", 9)]
        merge_scores(tmp_path / f"k0_{seed}/evaluation_goals.csv", rows)
    (arm,) = group(find_runs([tmp_path]), mixed=False)
    rate, episodes = arm.goal_rates()[11]
    assert rate == pytest.approx(14 / 16)
    assert episodes == 16


@pytest.mark.slow
def test_intervals_of_500_simulated_sweeps_cover_the_truth() -> None:
    rng = np.random.default_rng(7)
    hits = {"train": 0, "test": 0, "test_iqm": 0}
    for _ in range(500):
        train, test = rng.normal(0.7, 0.05, 10).clip(0, 1), rng.normal(0.5, 0.1, 10).clip(0, 1)
        arm = Arm("baseline (K = 0)")
        for seed in range(10):
            rows = {s: make_score(400, s, float(v[seed])) for s, v in (("train", train), ("test", test))}
            arm.runs.append(Run(Path(str(seed)), {}, {split: {400: row} for split, row in rows.items()}))
        (row,) = final_rows([arm])
        for name, truth in (("train", 0.7), ("test", 0.5), ("test_iqm", 0.5)):
            hits[name] += row[f"{name}_low"] <= truth <= row[f"{name}_high"]
    for count in hits.values():
        assert 0.93 <= count / 500 <= 0.97


@pytest.mark.parametrize("trouble", ["nothing", "missing", "other", "other world", "empty", "broken", "one split"])
def test_trouble_is_one_sentence(tmp_path: Path, trouble: str, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    if trouble != "nothing":
        make_run(runs / "a", 0, 0, {"train": 1.0, "test": 0.5})
    if trouble == "other":
        make_run(runs / "b", 8, 0, {"train": 1.0, "test": 0.5}, gamma=0.99)
    if trouble == "other world":
        make_run(runs / "b", 0, 1, {"train": 1.0, "test": 0.5}, env="my_way_home_train")
    if trouble == "empty":
        (runs / "a/evaluation.csv").write_text("")
    if trouble == "broken":
        (runs / "a/evaluation.csv").write_text("frames,split\n1,train\n")
    if trouble == "one split":
        (runs / "a/evaluation.csv").unlink()
        merge_scores(runs / "a/evaluation.csv", [make_score(1, "train", 1.0)])
    target = tmp_path / "nowhere" if trouble == "missing" else runs
    assert run_verb(main, [str(target), f"--out={tmp_path / 'out'}"]) == 2
    error = capsys.readouterr().err
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
    if trouble == "other world":
        assert "env (illustrative_train and my_way_home_train)" in error
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


@pytest.mark.parametrize(
    ("env", "goals", "right"), [("my_way_home_train", (11, 27), 1120.0), ("my_way_home_small_train", (11, 22), 768.0)]
)
def test_goals_stand_on_the_map_of_their_world(tmp_path: Path, env: str, goals: tuple[int, ...], right: float) -> None:
    make_run(tmp_path / "run", 0, 0, {"train": 1.0, "test": 0.5}, env=env)
    merge_scores(tmp_path / "run/evaluation_goals.csv", [make_score(400, "test", 0.5, str(goal), 5) for goal in goals])
    (arm,) = group(find_runs([tmp_path]), mixed=False)
    figure = goal_figure(arm)
    assert figure is not None
    assert right < figure.axes[0].get_xlim()[1] < 1.05 * right


def test_success_against_k(tmp_path: Path) -> None:
    """Drawn where a report has at least three values of K and one explorer, and only there."""
    for steps, rate in ((0, 0.5), (2, 0.6), (8, 0.9)):
        for seed in range(2):
            make_run(tmp_path / f"runs/k{steps}_{seed}", steps, seed, {"train": 1.0, "test": rate})
    assert main([str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 0
    assert (tmp_path / "out/lengths.png").stat().st_size > 10_000
    assert "How long the explore phase may be" in (tmp_path / "out/index.html").read_text()
    figure = length_figure(group(find_runs([tmp_path / "runs"]), mixed=False), "title")
    assert figure is not None
    (axes,) = figure.axes
    test_means = axes.containers[1].lines[0]  # type: ignore[attr-defined]
    assert list(test_means.get_xdata()) == [0, 2, 8]
    assert list(test_means.get_ydata()) == pytest.approx([0.5, 0.6, 0.9])
    make_run(tmp_path / "runs/other", 8, 0, {"train": 1.0, "test": 0.5}, explorer="e3b")
    assert length_figure(group(find_runs([tmp_path / "runs"]), mixed=False), "title") is None


STARTS = {"none": [(464.0, -176.0)] * 2, "random": [(464.0, -176.0), (686.0, -173.0)]}


def make_measured_run(folder: Path, steps: int, seed: int, shares: dict[str, float]) -> None:
    make_run(folder, steps, seed, {"train": 1.0, "test": 0.5}, env="my_way_home_train")
    rows = [
        {"explorer": name, "phases": 2, "steps": steps, "per_phase": share, "low": 0, "high": 1, "together": 2 * share}
        | {"start_cells": float(len(set(STARTS[name])))}
        for name, share in shares.items()
    ]
    write_table(folder / "coverage.csv", rows)
    write_table(folder / "go_starts.csv", [{"explorer": n, "x": x, "y": y} for n in shares for x, y in STARTS[n]])


def test_coverage_and_starts_by_arm(tmp_path: Path) -> None:
    """The explorers that one run's folder compares belong to arms; what no arm has is left out."""
    make_run(tmp_path / "runs/k0", 0, 0, {"train": 1.0, "test": 0.5}, env="my_way_home_train")
    for seed, share in enumerate((0.1, 0.2)):
        make_measured_run(tmp_path / f"runs/k100_{seed}", 100, seed, {"none": 0.004, "random": share})
    arms = group(find_runs([tmp_path / "runs"]), mixed=False)
    baseline, ours = coverage_cells(read_seen(arms))
    assert baseline == ["baseline (K = 0)", "2", "", "", "1.0 (1.0 to 1.0)"]
    assert ours[:2] == ["Explore-Go, K = 100, random", "2"]
    assert ours[2].startswith("15.0% (0.0% to 7")  # Student's factor for two runs is 12.7; no share is below 0
    assert ours[3].startswith("30% (")
    assert ours[4] == "2.0 (2.0 to 2.0)"
    assert main([str(tmp_path / "runs"), f"--out={tmp_path / 'out'}", f"--export={tmp_path / 'copies'}"]) == 0
    assert (tmp_path / "out/starts_1.png").is_file()
    assert (tmp_path / "out/starts_2.png").is_file()
    assert "| baseline (K = 0) | 2 |" in (tmp_path / "out/coverage.md").read_text()
    assert "Where the agent starts" in (tmp_path / "out/index.html").read_text()
    again = tmp_path / "again"
    assert main([str(tmp_path / "copies"), f"--out={again}"]) == 0
    for name in ("figure.png", "starts_2.png", "coverage.md", "final.csv"):
        assert (again / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_a_damaged_coverage_table_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_measured_run(tmp_path / "runs/k100", 100, 0, {"random": 0.1})
    (tmp_path / "runs/k100/go_starts.csv").write_text("explorer,x,y\nrandom,1,east\n")
    assert run_verb(main, [str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 2
    assert "go_starts.csv beside it cannot be read" in capsys.readouterr().err
