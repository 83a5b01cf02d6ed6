"""Which episodes are played: other ones for every seed, the same for all arms of a seed, goals in equal numbers."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sample_factory.algo.utils.make_env import make_env_func_non_batched

from sf_explore_go.cli import enjoy, evaluate, report
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.contexts import Context, draw_context_set
from sf_explore_go.core.errors import run
from sf_explore_go.evaluation import arena, evaluator
from sf_explore_go.evaluation.arguments import load_config
from sf_explore_go.evaluation.episodes import plan_episodes
from sf_explore_go.runs.scores import PER_SEED, SHARED, Settings, read_scores
from tests.cli.test_enjoy import make_run

TRAINING_GOALS = {"my_way_home": {10, 15, 20, 26}, "my_way_home_small": {10, 17, 20}}
TEST_GOALS = {
    "my_way_home": {11, 12, 13, 14, 16, 17, 18, 19, 21, 22, 23, 24, 25, 27},
    "my_way_home_small": {11, 16, 18, 19, 21, 22},
}


def contexts(env: str, split: str, count: int, *flags: str, eval_seed: int = 0) -> list[Any]:
    cfg = parse_train_args([f"--env={env}_train", "--train_dir=no_such_folder", *flags])
    return [planned.context for planned in plan_episodes(cfg, split, count, eval_seed)]


@pytest.mark.parametrize("env", ["my_way_home", "my_way_home_small"])
@pytest.mark.parametrize("count", [7, 84, 100])
def test_every_seed_has_test_contexts_of_its_own_with_goals_in_equal_numbers(env: str, count: int) -> None:
    more = set()
    everything: set[Context] = set()
    for seed in range(60):
        drawn = contexts(env, "test", count, f"--seed={seed}")
        goals = Counter(context.goal for context in drawn)
        assert len(drawn) == len(set(drawn)) == count
        assert max(goals.values()) - min(goals[goal] for goal in TEST_GOALS[env]) <= 1
        assert set(goals) <= TEST_GOALS[env]
        assert not everything & set(drawn)
        everything |= set(drawn)
        more |= {goal for goal, number in goals.items() if number > count // len(TEST_GOALS[env])}
    # where the number cannot be divided, every goal has one more with some seed
    assert more == (TEST_GOALS[env] if count % len(TEST_GOALS[env]) else set())


def test_arms_of_a_seed_share_their_episodes_and_nothing_else_does() -> None:
    arms = (["--max_pure_expl_steps=0"], ["--max_pure_expl_steps=100", "--explorer=random"], ["--explorer=e3b"])
    for split in ("train", "test"):
        cfgs = [parse_train_args(["--env=my_way_home_small_train", "--seed=3", *arm]) for arm in arms]
        baseline, *others = [plan_episodes(cfg, split, 50, 0) for cfg in cfgs]
        assert all(other == baseline for other in others)
        assert plan_episodes(cfgs[0], split, 50, 1) != baseline
        assert plan_episodes(cfgs[0], split, 20, 0) == baseline[:20]
    fixed = [contexts("my_way_home", "test", 50, f"--seed={seed}", "--context_seed=0") for seed in (1, 2)]
    assert not set(fixed[0]) & set(fixed[1])  # as where all runs train on the same ten contexts


def test_every_training_context_is_played_equally_often() -> None:
    cfg = parse_train_args(["--env=my_way_home_train", "--seed=4", "--num_contexts=10"])
    trained_on = draw_context_set((10, 15, 20, 26), 10, 4).contexts
    for count in (100, 95):
        played = Counter(planned.context for planned in plan_episodes(cfg, "train", count, 0))
        assert set(played) == set(trained_on)
        assert set(played.values()) <= {count // 10, -(-count // 10)}
    whole = contexts("my_way_home", "train", 100, "--num_contexts=0", "--seed=4")
    assert Counter(context.goal for context in whole) == dict.fromkeys(TRAINING_GOALS["my_way_home"], 25)
    assert len(set(whole)) == 100


@pytest.mark.parametrize("split", ["train", "test"])
def test_the_four_contexts_of_the_cross_are_played_equally_often(split: str) -> None:
    assert Counter(contexts("illustrative", split, 100, "--seed=1")) == dict.fromkeys(range(4), 25)
    assert sorted(Counter(contexts("illustrative", split, 10, "--seed=1")).values()) == [2, 2, 3, 3]


class Recorded:
    """An environment that writes down the contexts that it was put into."""

    def __init__(self, env: Any, played: list[Any]) -> None:
        self._env, self._played = env, played

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, **options: Any) -> Any:
        observations, infos = self._env.reset(**options)
        self._played.append(infos[0]["context"])
        return observations, infos


def test_all_ways_to_play_a_run_play_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`evaluate`, background evaluation and `enjoy`; what was played is counted in the environments themselves."""
    played: list[Any] = []

    def recorded(*args: Any, **options: Any) -> Recorded:
        return Recorded(make_env_func_non_batched(*args, **options), played)

    monkeypatch.setattr(arena, "make_env_func_non_batched", recorded)
    monkeypatch.setattr(enjoy, "make_env_func_non_batched", recorded)
    folder = tmp_path / "run"
    make_run(folder, "illustrative_train", "illustrative")
    which = [f"--train_dir={tmp_path}", "--experiment=run"]
    expected = {split: contexts("illustrative", split, 12, "--seed=1") for split in ("train", "test")}

    assert evaluate.main([*which, "--episodes=12", "--num_envs=1"]) == 0
    assert played == expected["train"] + expected["test"]
    parts = read_scores(folder / "evaluation_goals.csv")
    assert {(part.split, part.goal): part.episodes for part in parts} == {
        (split, str(goal)): 3 for split in expected for goal in range(4)
    }
    assert enjoy.main([*which, "--episodes=5", f"--save_video={tmp_path / 'film.gif'}"]) == 0
    assert played[24:] == expected["test"][:5]

    (folder / "checkpoint_p0/milestones").mkdir()
    (folder / "checkpoint_p0/checkpoint_1_5.pth").rename(folder / "checkpoint_p0/milestones/milestone_000000000005.pth")
    monkeypatch.setattr(evaluator, "Parent", lambda: type("Finished", (), {"finish": True})())
    evaluator.follow(folder, load_config(folder, None), Settings(12), num_envs=1)
    assert played[29:] == expected["train"] + expected["test"]


def test_rows_of_earlier_versions_are_told_from_new_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, table = tmp_path / "runs/run", tmp_path / "runs/run/evaluation.csv"
    make_run(folder, "illustrative_train", "illustrative")
    call = [f"--train_dir={tmp_path / 'runs'}", "--experiment=run", "--episodes=8"]
    assert evaluate.main(call) == 0
    new = table.read_bytes()
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row.pop("contexts") for row in rows} == {PER_SEED}
    with table.open("w", newline="") as file:  # as an earlier version wrote it
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "success_rate": "0.125"} for row in rows)
    old = table.read_bytes()
    assert {(row.contexts, row.success_rate) for row in read_scores(table)} == {(SHARED, 0.125)}
    assert report.main([str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 0
    assert "| 0.125 | 0.125 |" in (tmp_path / "out/final.md").read_text()

    assert evaluate.main([*call, "--split=test"]) == 0
    assert {row.split: row.contexts for row in read_scores(table)} == {"train": SHARED, "test": PER_SEED}
    capsys.readouterr()
    assert run(report.main, [str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 2  # no training contexts yet
    assert evaluate.main(call) == 0
    assert table.read_bytes() == new

    other = tmp_path / "runs/other"
    other.mkdir()
    (other / "config.json").write_text(json.dumps(json.loads((folder / "config.json").read_text()) | {"seed": 2}))
    (other / "evaluation.csv").write_bytes(old)
    capsys.readouterr()
    assert run(report.main, [str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"sf-explore-go: {other} was evaluated by an earlier version")
