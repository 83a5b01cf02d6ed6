"""Reports on runs with known numbers."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sf_explore_go.cli.report import main
from sf_explore_go.core.errors import run as run_verb
from sf_explore_go.reporting.against import length_figure
from sf_explore_go.reporting.arms import group
from sf_explore_go.reporting.figures import goal_figure, main_figure
from sf_explore_go.reporting.runs import Arm, Run, due_at, find_runs
from sf_explore_go.reporting.starts import coverage_cells, read_seen
from sf_explore_go.reporting.tables import columns, final_rows, write_table
from sf_explore_go.runs.scores import Score, merge_scores, read_scores


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
    arms = group(find_runs([tmp_path]))
    assert [(arm.name, len(arm.runs)) for arm in arms] == [("baseline (K = 0)", 3), ("Explore-Go, K = 8, random", 3)]
    baseline, ours = final_rows(arms)
    assert baseline["test"] == pytest.approx(0.4)
    assert ours["test"] == pytest.approx(0.9)
    assert ours["train"] == pytest.approx(0.9)
    # Student's interval of (0.2, 0.4, 0.6) is 0.4 +- 4.3027 * 0.2 / sqrt(3), and a rate is not below 0
    assert baseline["test_low"] == 0.0
    assert baseline["test_high"] == pytest.approx(0.4 + 4.302653 * 0.2 / math.sqrt(3), abs=0.02)
    assert ours["p_better_on_test"] == ours["p_better_high"] == 1.0
    assert ours["p_better_low"] == pytest.approx(0.5010, abs=1e-4)  # Newcombe's, for three seeds that all win
    assert baseline["p_better_on_test"] is None
    # seed by seed 0.7, 0.4 and 0.4 more
    half = 4.302653 * math.sqrt(0.03) / math.sqrt(3)
    assert ours["test_gain"] == pytest.approx(0.5)
    assert (ours["test_gain_low"], ours["test_gain_high"]) == pytest.approx((0.5 - half, 0.5 + half), abs=0.02)
    assert baseline["test_gain"] is None
    assert (ours["seeds"], ours["test_episodes"]) == (3, "40")
    # evaluations of different seeds, a few frames apart, meet in one point of the curve
    assert arms[0].curve("test") == {t * 100: pytest.approx([0.05 * t, 0.1 * t, 0.15 * t]) for t in (1, 2, 3, 4)}


@pytest.mark.parametrize(
    ("frames", "checkpoint", "point"),
    [
        (345, "milestone_000000000345.pth", 300),  # due at 300, made with the first batch after it
        (300, "milestone_000000000300.pth", 300),
        (50, "milestone_000000000050.pth", 100),
        (345, "checkpoint_1_345.pth", 345),
        (395, "checkpoint_1_395.pth", 400),
        (415, "checkpoint_1_415.pth", 400),  # above the budget: the rest of the last batches
    ],
)
def test_milestones_stand_where_they_were_due(frames: int, checkpoint: str, point: int) -> None:
    row = replace(make_score(frames, "test", 0.5), checkpoint=checkpoint)
    assert due_at(row, {"milestone_step_freq": 100, "train_for_env_steps": 400}) == point


def test_milestones_by_the_clock_alone_stand_at_their_own_frames() -> None:
    config = {"milestone_step_freq": 0, "train_for_env_steps": 400}
    assert [due_at(make_score(frames, "test", 0.5), config) for frames in (120, 345, 398, 404)] == [120, 345, 400, 400]


def test_a_seed_stands_once_in_each_point_of_a_curve(tmp_path: Path) -> None:
    """After a kill and a resume, with milestones by the clock, and with `latest` and `best` evaluated too."""
    for seed in range(2):
        make_run(tmp_path / f"k0_{seed}", 0, seed, {"train": 1.0, "test": 0.8})
    for frames, checkpoint in (
        (303, "milestone_000000000303.pth"),  # of the resumed part
        (380, "milestone_000000000380.pth"),  # by the clock
        (402, "checkpoint_000000009_402.pth"),
        (350, "checkpoint_000000007_350.pth"),  # evaluated by hand between two milestones
        (150, "best_000000003_150_reward_0.9.pth"),
        (409, "best_000000010_409_reward_0.9.pth"),
    ):
        rows = [replace(make_score(frames, split, 0.1), checkpoint=checkpoint) for split in ("train", "test")]
        merge_scores(tmp_path / "k0_0/evaluation.csv", rows)
    (arm,) = group(find_runs([tmp_path]))
    curve = arm.curve("test")
    assert curve == {
        100: pytest.approx([0.2, 0.2]), 200: pytest.approx([0.4, 0.4]), 300: pytest.approx([0.6, 0.6]), 350: [0.1],
        400: [0.8, 0.8],
    }  # fmt: skip
    assert arm.final("test") == [0.8, 0.8]
    axes = main_figure([arm], "title").axes[0]
    assert [text.get_text() for text in axes.texts] == ["1 of 2", "1 of 2"]  # on training and on test contexts
    assert "says how many" in axes.get_title()


def test_runs_of_unequal_length_are_compared_at_the_same_frames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_sweep(tmp_path / "runs")
    rows = [row for row in read_scores(tmp_path / "runs/k8_2/evaluation.csv") if row.frames < 400]
    (tmp_path / "runs/k8_2/evaluation.csv").unlink()
    merge_scores(tmp_path / "runs/k8_2/evaluation.csv", rows)
    goals = [make_score(frames + 1, "test", rate, "11", 4) for frames, rate in ((300, 0.25), (400, 1.0))]
    merge_scores(tmp_path / "runs/k0_1/evaluation_goals.csv", goals)
    assert main([str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 0
    output = capsys.readouterr()
    assert output.err.count("\n") == 1
    assert "from 300 (" in output.err
    assert "all are compared at 300" in output.err
    assert "all are compared at 300" in (tmp_path / "out/index.html").read_text()
    assert "| compared at frames |" in output.out
    baseline, ours = group(find_runs([tmp_path / "runs"]))
    assert baseline.final("test") == pytest.approx([0.15, 0.3, 0.45])
    assert ours.final("test") == pytest.approx([0.675, 0.6, 0.75])
    assert baseline.goal_rates() == {11: (0.25, 4)}
    assert len(baseline.curve("test")[400]) == 3  # the curves go on
    assert main_figure([baseline, ours], "title").axes[1].get_title().startswith("at 300 frames")
    finals = final_rows([baseline, ours])
    assert [(row["frames"], row["last_frames"]) for row in finals] == [("300", "400"), ("300", "300 to 400")]


def test_runs_that_share_no_evaluation_are_not_compared_unless_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for steps, frames in ((0, 230), (8, 320)):
        make_run(tmp_path / f"runs/k{steps}", steps, 0, {})
        rows = [replace(make_score(frames, split, 0.5), checkpoint="checkpoint_1_1.pth") for split in ("train", "test")]
        merge_scores(tmp_path / f"runs/k{steps}/evaluation.csv", rows)
    words = [str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]
    assert run_verb(main, words) == 2
    assert "share no evaluation" in capsys.readouterr().err
    assert run_verb(main, [*words, "--mixed"]) == 0
    assert "each is compared at its own end" in capsys.readouterr().err
    assert [line.split(" | ")[3] for line in (tmp_path / "out/final.md").read_text().splitlines()[2:]] == ["230", "320"]


def test_environments_are_compared_not_how_workers_share_them(tmp_path: Path) -> None:
    for seed, (workers, each) in enumerate([(2, 64), (4, 32), (2, 16), (16, 16)]):
        rates = {"train": 1.0, "test": 0.5}
        make_run(tmp_path / f"k0_{seed}", 0, seed, rates, num_workers=workers, num_envs_per_worker=each)
    arms = group(find_runs([tmp_path]))
    assert {arm.name: len(arm.runs) for arm in arms} == {
        "baseline (K = 0), environments = 128": 2,
        "baseline (K = 0), environments = 256": 1,
        "baseline (K = 0), environments = 32": 1,
    }


def test_arms_are_whatever_differs(tmp_path: Path) -> None:
    """Two learning rates with and without an explore phase are four arms, each with the baseline of its own rate."""
    for rate, gain in ((0.1, 0.1), (0.2, 0.3)):
        for seed in range(2):
            common = {"learning_rate": rate, "explorer": "e3b", "save_every_sec": seed, "e3b_ridge": rate}
            make_run(tmp_path / f"k0_{rate}_{seed}", 0, seed, {"train": 1.0, "test": 0.5}, **common)
            make_run(tmp_path / f"k8_{rate}_{seed}", 8, seed, {"train": 1.0, "test": 0.5 + gain}, **common)
    arms = group(find_runs([tmp_path]))
    assert [(arm.name, len(arm.runs)) for arm in arms] == [
        ("baseline (K = 0), learning_rate = 0.1", 2),
        ("baseline (K = 0), learning_rate = 0.2", 2),
        ("Explore-Go, K = 8, e3b, e3b_ridge = 0.1, learning_rate = 0.1", 2),
        ("Explore-Go, K = 8, e3b, e3b_ridge = 0.2, learning_rate = 0.2", 2),
    ]
    assert [row["test_gain"] for row in final_rows(arms)[2:]] == [pytest.approx(0.1), pytest.approx(0.3)]


def test_flags_of_explorers_that_a_run_does_not_have_are_no_difference(tmp_path: Path) -> None:
    """Flags of the other explorers, and those that only an explorer from outside declares."""
    final = {"train": 1.0, "test": 0.5}
    make_run(tmp_path / "a", 0, 0, final, sticky_tail=1.0, counts_power=0.5)
    make_run(tmp_path / "b", 0, 1, final, sticky_tail=2.0, counts_power=1.0)
    make_run(tmp_path / "c", 8, 0, final, sticky_tail=1.0, e3b_ridge=0.1)
    make_run(tmp_path / "d", 8, 0, final, explorer="sticky", sticky_tail=1.0, e3b_ridge=0.1, explorer_gamma=0.9)
    make_run(tmp_path / "e", 8, 1, final, explorer="sticky", sticky_tail=1.0, e3b_ridge=0.2, explorer_gamma=0.99)
    make_run(tmp_path / "f", 8, 2, final, explorer="sticky", sticky_tail=2.0)
    make_run(tmp_path / "g", 8, 0, final, explorer="own.py:Own", own_power=0.5)
    assert {arm.name: len(arm.runs) for arm in group(find_runs([tmp_path]))} == {
        "baseline (K = 0)": 2,
        "Explore-Go, K = 8, random": 1,
        "Explore-Go, K = 8, sticky, sticky_tail = 1": 2,
        "Explore-Go, K = 8, sticky, sticky_tail = 2": 1,
        "Explore-Go, K = 8, own.py:Own, sticky_tail = 1": 1,  # it may be made from sticky
    }


def test_arms_are_named_by_how_k_grows(tmp_path: Path) -> None:
    """In a few words; flags of another schedule are no difference, and runs older than schedules have a constant K."""
    final = {"train": 1.0, "test": 0.5}
    make_run(tmp_path / "a", 0, 0, final, explore_schedule="linear", explore_ramp=[0.0, 0.5])
    make_run(tmp_path / "b", 0, 1, final, explore_schedule="constant")
    make_run(tmp_path / "c", 8, 0, final)
    make_run(tmp_path / "d", 8, 1, final, explore_schedule="constant", explore_when=0.5, explore_ramp=[0.0, 0.1])
    make_run(tmp_path / "e", 8, 0, final, explore_schedule="success", explore_when=0.9, explore_ramp=[0.0, 0.5])
    make_run(tmp_path / "f", 8, 1, final, explore_schedule="success", explore_when=0.9, explore_ramp=[0.0, 0.7])
    make_run(tmp_path / "g", 8, 0, final, explore_schedule="linear", explore_when=0.9, explore_ramp=[0.0, 0.5])
    make_run(tmp_path / "h", 8, 0, final, explore_schedule="linear", explore_when=0.9, explore_ramp=[0.25, 0.25])
    arms = group(find_runs([tmp_path]))
    assert {arm.name: len(arm.runs) for arm in arms} == {
        "baseline (K = 0)": 2,
        "Explore-Go, K = 8, random": 2,
        "Explore-Go, K = 8, random, from 0.25 of the budget": 1,
        "Explore-Go, K = 8, random, from 0.9 success": 2,
        "Explore-Go, K = 8, random, growing from 0 to 0.5 of the budget": 1,
    }
    assert [row["gain_seeds"] for row in final_rows(arms)] == [0, 2, 1, 2, 1]  # all have the one baseline


def test_arms_are_named_by_their_sweep(tmp_path: Path) -> None:
    """Runs that are older than the names belong to the arm with the same settings; a name never pools two settings."""
    rates = {"train": 1.0, "test": 0.5}
    make_run(tmp_path / "a", 0, 0, rates, arm="plain")
    make_run(tmp_path / "b", 0, 1, rates)
    make_run(tmp_path / "c", 8, 0, rates, arm="ours")
    make_run(tmp_path / "d", 4, 0, rates, arm="ours")
    make_run(tmp_path / "e", 16, 0, rates)
    arms = group(find_runs([tmp_path]))
    assert [(arm.name, len(arm.runs)) for arm in arms] == [
        ("plain", 2), ("ours, max_pure_expl_steps = 4", 1), ("ours, max_pure_expl_steps = 8", 1),
        ("Explore-Go, K = 16, random", 1),
    ]  # fmt: skip
    assert final_rows(arms)[1]["test_gain"] == 0.0  # "plain" is the baseline, whatever its name


def test_arms_by_chosen_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, (gamma, rollout) in enumerate([(0.9, 8), (0.9, 16), (0.99, 8)]):
        make_run(tmp_path / f"runs/{seed}", 0, seed, {"train": 1.0, "test": 0.5}, gamma=gamma, rollout=rollout)
    words = [str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]
    assert main([*words, "--arm_by=gamma"]) == 0
    output = capsys.readouterr()
    assert "| gamma = 0.9 | 2 |" in output.out
    assert "arm gamma = 0.9: its runs differ in rollout too" in output.err
    assert main([*words, "--arm_by=--gamma, rollout"]) == 0
    output = capsys.readouterr()
    assert "| gamma = 0.9, rollout = 16 | 1 |" in output.out
    assert output.err == ""
    assert run_verb(main, [*words, "--arm_by=gama"]) == 2
    assert "--arm_by=gama: it must be a flag" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["--mixed"], ["--arm_by=gamma"]])
def test_the_same_seed_never_counts_twice(tmp_path: Path, flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("once", "twice"):
        make_run(tmp_path / "runs" / name, 0, 0, {"train": 1.0, "test": 0.5})
    assert run_verb(main, [str(tmp_path / "runs"), f"--out={tmp_path / 'out'}", *flags]) == 2
    error = capsys.readouterr().err
    assert "once and" in error
    assert "are both seed 0 of arm" in error
    assert not (tmp_path / "out").exists()


def test_flags_that_came_later_had_their_default(tmp_path: Path) -> None:
    """Configurations of older versions lack them; another value than the default makes another arm."""
    for seed, later in enumerate([{}, {"adv_std_memory": 0.0}, {"adv_std_memory": 0.9}]):
        make_run(tmp_path / str(seed), 0, seed, {"train": 1.0, "test": 0.5}, **later)
    arms = group(find_runs([tmp_path]))
    assert {arm.name: len(arm.runs) for arm in arms} == {
        "baseline (K = 0), adv_std_memory = 0": 2,
        "baseline (K = 0), adv_std_memory = 0.9": 1,
    }


def test_flags_of_our_worlds_that_came_later_had_their_default(tmp_path: Path) -> None:
    for seed, later in enumerate([{}, {"context_goals": "random"}, {"context_goals": "balanced"}]):
        make_run(tmp_path / str(seed), 0, seed, {"train": 1.0, "test": 0.5}, env="my_way_home_train", **later)
    assert {arm.name: len(arm.runs) for arm in group(find_runs([tmp_path]))} == {
        "baseline (K = 0), context_goals = random": 2,
        "baseline (K = 0), context_goals = balanced": 1,
    }
    make_run(tmp_path / "grid", 0, 0, {"train": 1.0, "test": 0.5})  # a world that has no such flag
    arms = group(find_runs([tmp_path]), mixed=True)
    assert "baseline (K = 0), env = illustrative_train" in [arm.name for arm in arms]


def test_runs_without_evaluation_are_named_and_deeper_folders_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_sweep(tmp_path / "train_dir/sweep")
    make_run(tmp_path / "train_dir/sweep/waiting", 8, 7, {"train": 1.0, "test": 0.5})
    (tmp_path / "train_dir/sweep/waiting/evaluation.csv").unlink()
    make_run(tmp_path / "train_dir/by_hand/arm_/half", 8, 8, {"train": 1.0})
    make_run(tmp_path / "train_dir/best", 8, 9, {})
    row = replace(make_score(300, "test", 0.5), checkpoint="best_1_300.pth")
    merge_scores(tmp_path / "train_dir/best/evaluation.csv", [row, replace(row, split="train")])
    assert main([str(tmp_path / "train_dir"), f"--out={tmp_path / 'out'}"]) == 0
    output = capsys.readouterr()
    assert "| Explore-Go, K = 8, random | 3 |" in output.out
    assert output.err.count("\n") == 1
    for folder in ("sweep/waiting", "by_hand/arm_/half", "best"):
        assert f"{tmp_path}/train_dir/{folder}" in output.err
    assert "sweep/waiting" in (tmp_path / "out/index.html").read_text()
    twice = find_runs([tmp_path / "train_dir", tmp_path / "train_dir/../train_dir/sweep/k0_0"])
    assert len(twice) == 6  # a run that is found in two ways is one run


def test_one_seed_each_makes_a_short_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No intervals, no chance to win, no interquartile mean: one run of each arm says nothing of them."""
    make_run(tmp_path / "runs/k0", 0, 0, {"train": 1.0, "test": 0.5})
    make_run(tmp_path / "runs/k8", 8, 0, {"train": 1.0, "test": 0.75})
    assert main([str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 0
    assert capsys.readouterr().out.splitlines()[:4] == [
        "| arm | seeds | episodes per seed | train success | test success | gain on test, seed by seed |",
        "| --- | --- | --- | --- | --- | --- |",
        "| baseline (K = 0) | 1 | 40 | 1.000 | 0.500 |  |",
        "| Explore-Go, K = 8, random | 1 | 40 | 1.000 | 0.750 | +0.250 |",
    ]
    _, ours = csv.DictReader((tmp_path / "out/final.csv").open())
    empty = {name for name, value in ours.items() if value == ""}
    assert empty == {name for name in ours if name.endswith(("_low", "_high")) or name.startswith("p_better")}


def test_one_seed_against_several_has_an_estimate_without_interval(tmp_path: Path) -> None:
    for seed, rate in enumerate([0.4, 0.6, 0.9]):
        make_run(tmp_path / f"k0_{seed}", 0, seed, {"train": 1.0, "test": rate})
    make_run(tmp_path / "k8", 8, 0, {"train": 1.0, "test": 0.8})
    rows = final_rows(group(find_runs([tmp_path])))
    assert columns(rows)["P(beats baseline on test)"] == ["", "0.67"]
    assert (rows[1]["p_better_low"], rows[1]["p_better_high"]) == (None, None)


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
    (row,) = final_rows(group(find_runs([tmp_path])))
    assert row["test"] == pytest.approx(0.525)
    assert row["test_iqm"] == pytest.approx(0.55)


def test_gains_are_of_runs_with_the_same_contexts(tmp_path: Path) -> None:
    """Seed 1 has no partner; seed 2 has one, but with other contexts; what is left is one pair, without interval."""
    for seed, steps, rate, context_seed in ((0, 0, 0.5, 7), (2, 0, 0.1, 7), (0, 8, 0.4, 7), (1, 8, 1, 7), (2, 8, 1, 8)):
        scores = {"train": 1.0, "test": float(rate)}
        make_run(tmp_path / f"k{steps}_{seed}", steps, seed, scores, context_seed=context_seed)
    rows = final_rows(group(find_runs([tmp_path])))
    assert rows[1]["test_gain"] == pytest.approx(-0.1)
    assert columns(rows)["gain on test, seed by seed"] == ["", "-0.100"]


def test_goals_are_pooled_over_seeds(tmp_path: Path) -> None:
    for seed, (rate, episodes) in enumerate([(0.5, 4), (1.0, 12)]):
        make_run(tmp_path / f"k0_{seed}", 0, seed, {"train": 1.0, "test": 0.5})
        rows = [make_score(400 + seed, "test", rate, "11", episodes), make_score(300 + seed, "test", 0.0, "11", 9)]
        merge_scores(tmp_path / f"k0_{seed}/evaluation_goals.csv", rows)
    (arm,) = group(find_runs([tmp_path]))
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


@pytest.mark.parametrize("trouble", ["nothing", "missing", "other world", "empty", "broken", "one split"])
def test_trouble_is_one_sentence(tmp_path: Path, trouble: str, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    if trouble != "nothing":
        make_run(runs / "a", 0, 0, {"train": 1.0, "test": 0.5})
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
        assert run_verb(main, [str(target), f"--out={tmp_path / 'out'}", "--mixed"]) == 0
        table = (tmp_path / "out/final.md").read_text()
        assert "| baseline (K = 0), env = illustrative_train | 1 |" in table
        assert "| baseline (K = 0), env = my_way_home_train | 1 |" in table


@pytest.mark.parametrize(
    ("env", "goals", "right"), [("my_way_home_train", (11, 27), 1120.0), ("my_way_home_small_train", (11, 22), 768.0)]
)
def test_goals_stand_on_the_map_of_their_world(tmp_path: Path, env: str, goals: tuple[int, ...], right: float) -> None:
    make_run(tmp_path / "run", 0, 0, {"train": 1.0, "test": 0.5}, env=env)
    merge_scores(tmp_path / "run/evaluation_goals.csv", [make_score(400, "test", 0.5, str(goal), 5) for goal in goals])
    (arm,) = group(find_runs([tmp_path]))
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
    figure = length_figure(group(find_runs([tmp_path / "runs"])), "title")
    assert figure is not None
    (axes,) = figure.axes
    test_means = axes.containers[1].lines[0]  # type: ignore[attr-defined]
    assert list(test_means.get_xdata()) == [0, 2, 8]
    assert list(test_means.get_ydata()) == pytest.approx([0.5, 0.6, 0.9])
    make_run(tmp_path / "runs/other", 8, 0, {"train": 1.0, "test": 0.5}, explorer="e3b")
    assert length_figure(group(find_runs([tmp_path / "runs"])), "title") is None


def test_lengths_are_compared_within_one_schedule(tmp_path: Path) -> None:
    for steps, schedule in ((0, "constant"), (2, "constant"), (8, "success")):
        rates = {"train": 1.0, "test": 0.5}
        make_run(tmp_path / f"k{steps}", steps, 0, rates, explore_schedule=schedule, explore_when=0.9)
    assert length_figure(group(find_runs([tmp_path])), "title") is None


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
    arms = group(find_runs([tmp_path / "runs"]))
    baseline, ours = coverage_cells(read_seen(arms))
    assert baseline == ["baseline (K = 0)", "2", "", "", "1.0 (1.0 to 1.0)"]
    assert ours[:2] == ["Explore-Go, K = 100, random", "2"]
    assert ours[2].startswith("15.0% (0.0% to 7")  # Student's factor for two runs is 12.7; no share is below 0
    assert ours[3].startswith("30% (")
    assert ours[4] == "2.0 (2.0 to 2.0)"
    assert main([str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 0
    assert (tmp_path / "out/starts_1.png").is_file()
    assert (tmp_path / "out/starts_2.png").is_file()
    assert "| baseline (K = 0) | 2 |" in (tmp_path / "out/coverage.md").read_text()
    assert "Where the agent starts" in (tmp_path / "out/index.html").read_text()


def test_a_damaged_coverage_table_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_measured_run(tmp_path / "runs/k100", 100, 0, {"random": 0.1})
    (tmp_path / "runs/k100/go_starts.csv").write_text("explorer,x,y\nrandom,1,east\n")
    assert run_verb(main, [str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 2
    assert "go_starts.csv cannot be read (line 2: could not convert" in capsys.readouterr().err
