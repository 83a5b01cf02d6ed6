"""Agents in Python: they act as `evaluate` plays them, and score the same."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sf_explore_go
from sf_explore_go import Agent, UsageError, load_agent
from sf_explore_go.cli import evaluate
from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.evaluation.arena import Arena
from sf_explore_go.evaluation.episodes import plan_episodes
from sf_explore_go.evaluation.player import play
from sf_explore_go.runs.pretrained import SOURCE
from sf_explore_go.runs.scores import read_scores
from tests.cli.test_enjoy import make_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained agent of the illustrative world."""
    path = tmp_path_factory.mktemp("runs") / "mine"
    make_run(path, "illustrative_train", "illustrative")
    return path


@pytest.mark.parametrize("split", ["train", "test", "both"])
def test_the_table_has_the_numbers_of_the_command_line(split: str, folder: Path, tmp_path: Path) -> None:
    table = sf_explore_go.evaluate(folder, split, 12, seed=3, num_envs=5)
    copy = shutil.copytree(folder, tmp_path / "run")
    words = [f"--train_dir={tmp_path}", "--experiment=run", f"--split={split}", "--episodes=12", "--eval_seed=3"]
    assert evaluate.main(words) == 0
    rows = {score.split: score for score in read_scores(copy / "evaluation.csv")}
    assert len(table) == len(rows) == (2 if split == "both" else 1)
    for row in table:
        score: Any = rows[row["split"]]
        assert row == {name: getattr(score, name) for name in table.columns}
    assert not (folder / "evaluation.csv").exists()  # nothing is written


def test_the_pretrained_agent_scores_as_on_the_command_line(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    (row,) = sf_explore_go.evaluate("my_way_home_small", "test", 4, greedy=True)
    assert torch.get_num_threads() == threads
    assert evaluate.main(["--pretrained", f"--train_dir={tmp_path}", "--split=test", "--episodes=4", "--greedy"]) == 0
    (score,) = read_scores(tmp_path / "pretrained/evaluation.csv")
    assert row == {name: getattr(score, name) for name in row}
    assert row["success_rate"] >= 0.5


def episode(agent: Agent, planned: Any, env: Any) -> tuple[float, int]:
    """Return and length, played with `act`."""
    rng = np.random.default_rng(derive_seed(planned.seed, "actions"))
    obs, _ = env.reset(seed=planned.seed, options=planned.options)
    state, total, length, over = None, 0.0, 0, False
    while not over:
        action, state = agent.act(obs, state, rng=rng)
        obs, reward, terminated, truncated, _ = env.step(action)
        total, length, over = total + float(reward), length + 1, terminated or truncated
    return total, length


def test_act_plays_the_episodes_of_evaluate() -> None:
    """A recurrent agent on pictures: its state goes through the hands of the caller."""
    agent = load_agent("my_way_home_small")
    plan = plan_episodes(agent.cfg, "test", 2, 0)
    with Arena(agent.cfg, 2) as arena:
        expected = [(one.ret, one.length) for one in play(agent.player, arena.envs("test"), plan)]
    with agent.make_env("test") as env:
        assert [episode(agent, planned, env) for planned in plan] == expected


def test_sampled_actions_follow_the_seed(folder: Path) -> None:
    first, again, other = (load_agent(folder, seed=seed) for seed in (1, 1, 2))
    with first.make_env("train") as env:
        obs, _ = env.reset(seed=0)
    acted = [[agent.act(obs)[0] for _ in range(50)] for agent in (first, again, other)]
    assert acted[0] == acted[1] != acted[2]
    assert len({first.act(obs, greedy=True)[0] for _ in range(10)}) == 1
    assert len({first.act(obs, rng=np.random.default_rng(5))[0] for _ in range(10)}) == 1


def test_a_batch_answers_as_one_by_one() -> None:
    agent = load_agent("my_way_home_small", greedy=True)
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (3, 36, 64), dtype=np.uint8) for _ in range(6)]
    states = rng.normal(size=(6, agent.state_size)).astype(np.float32)
    actions, new = agent.act_batch(pictures, states)
    for index, picture in enumerate(pictures):
        action, state = agent.act({"obs": picture}, states[index])
        assert action == actions[index]
        assert np.array_equal(state, new[index])
    with pytest.raises(ValueError, match=r"states \[6, 128\]: it must be \[1, 128\]"):
        agent.act_batch(pictures[:1], states)


def test_what_an_agent_says_of_itself(folder: Path) -> None:
    agent = load_agent(str(folder), folder / "checkpoint_p0/checkpoint_1_5.pth")
    assert agent.config["env"] == "illustrative_train"
    assert agent.frames == 5
    assert agent.splits == ("train", "test")
    with agent.make_env("test") as env:
        assert env.observation_space == agent.observation_space
        assert env.action_space == agent.action_space
        assert agent.observation_space.contains(env.reset(seed=1)[0])
    agent.config["env"] = "another"
    assert agent.config["env"] == "illustrative_train"  # it was a copy


def test_an_agent_of_the_package_by_name_and_a_folder_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "my_way_home_small", "illustrative_train", "illustrative")
    assert load_agent("my_way_home_small").folder == SOURCE
    assert load_agent("./my_way_home_small").config["env"] == "illustrative_train"
    assert load_agent(Path("my_way_home_small")).config["env"] == "illustrative_train"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda folder: load_agent("nobody"), "nobody is neither the folder of a run nor an agent .*my_way_home_small"),
        (lambda folder: load_agent(folder, "best"), "has no best checkpoint"),
        (lambda folder: load_agent(folder, "all"), "must be latest, best or a file"),
        (lambda folder: load_agent(folder, "none.pth"), "none.pth: there is no such file"),
        (lambda folder: load_agent(folder).make_env("both"), "--split=both: it must be train or test"),
        (lambda folder: sf_explore_go.evaluate(folder, "other"), "--split=other: it must be train, test or both"),
        (lambda folder: sf_explore_go.evaluate(folder, episodes=0), "episodes=0: it must be a whole number"),
    ],
    ids=str,
)
def test_bad_input_is_one_sentence(wrong: Any, sentence: str, folder: Path) -> None:
    with pytest.raises(UsageError, match=sentence):
        wrong(folder)
