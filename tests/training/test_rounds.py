"""The best policy and the running return are judged by full rounds of episodes, not by the first to end."""

import heapq
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from sample_factory.algo.utils.misc import EPISODIC, ExperimentStatus
from sample_factory.envs.env_utils import register_env

from sf_explore_go.monitoring.summaries import Summaries
from sf_explore_go.runs.checkpoints import read_checkpoint, save_atomically
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.training.messages import ENV_OF_EPISODE
from sf_explore_go.training.rounds import Rounds
from sf_explore_go.training.runner import ExploreGoParallelRunner, ExploreGoRunner, ExploreGoSerialRunner
from tests.monitoring.events import scalars_of
from tests.training.recording import ENV_NAME, make_cfg

LUCKY, UNLUCKY = 3, 60  # decisions


def test_rounds_by_hand() -> None:
    rounds: Rounds[str] = Rounds(3)
    assert not rounds.add(0, "a1")
    assert not rounds.add(0, "a2")  # one of an environment is enough
    assert not rounds.add(2, "c1")
    assert not rounds.add(0, "a3")
    assert rounds.add(1, "b1") == ["a1", "b1", "c1"]
    assert not rounds.add(0, "a4")  # began before that round was complete, perhaps long before
    assert not rounds.add(1, "b2")  # began just then
    assert not rounds.add(2, "c2")
    assert not rounds.add(0, "a5")
    assert rounds.add(2, "c3") == ["a5", "b2", "c3"]
    assert [Rounds(envs).episodes_kept(100) for envs in (1, 4, 64, 128)] == [100, 100, 128, 128]


def stream(num_envs: int, luck: float, seed: int) -> Any:
    """(time, environment, return) of episodes in the order in which they end, for ever."""
    rng = np.random.default_rng(seed)

    def begin(env: int, now: int) -> tuple[int, int, float]:
        lucky = rng.random() < luck
        return now + (int(rng.integers(5, 60)) if lucky else 525), env, float(lucky)

    running = [begin(env, 0) for env in range(num_envs)]
    heapq.heapify(running)
    while True:
        ended = running[0]
        heapq.heapreplace(running, begin(ended[1], ended[0]))
        yield ended


def test_the_mean_is_that_of_all_episodes_from_the_first_round_on() -> None:
    """Independent of the lengths: one episode in five is lucky and short, and every round's mean says so."""
    means, first_hundred = [], []
    for seed in range(40):
        rounds: Rounds[float] = Rounds(128)
        ended: list[float] = []
        here: list[float] = []
        for now, env, ret in stream(128, 0.2, seed):
            ended.append(ret)
            if complete := rounds.add(env, ret):
                assert len(complete) == 128
                here.append(float(np.mean(complete)))
            if now > 4000:
                break
        assert len(here) >= 3
        means.append(here)
        first_hundred.append(float(np.mean(ended[:30])))
    tolerance = 4 * np.sqrt(0.2 * 0.8 / 128 / 40)
    for number in range(3):
        assert np.mean([here[number] for here in means]) == pytest.approx(0.2, abs=tolerance)
    assert np.mean(first_hundred) > 0.9  # what the first to end would say


class Uneven(gym.Env):
    """Environments with an even number are lucky: three steps, return 1. The others take sixty, and earn nothing."""

    def __init__(self, env_id: int) -> None:
        self.length = LUCKY if env_id % 2 == 0 else UNLUCKY
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.steps += 1
        ended = self.steps == self.length
        reward = float(ended and self.length == LUCKY)
        return np.zeros(3, np.float32), reward, ended, False, {"episode_extra_stats": {"success": reward}}


def make_uneven(env_name: str, cfg: Any, env_config: Any, render_mode: str | None = None) -> Uneven:
    return Uneven(env_config.env_id if env_config else 0)


def train_unevenly(folder: Path, *flags: str) -> ExploreGoRunner:
    always = ("--save_best_after=0", "--save_best_every_sec=1", "--num_workers=1", "--num_envs_per_worker=4")
    cfg = make_cfg(folder, "--train_for_env_steps=800", *always, "--worker_num_splits=1", *flags)
    register_worlds()
    register_env(ENV_NAME, make_uneven)
    runner = (ExploreGoSerialRunner if cfg.serial_mode else ExploreGoParallelRunner)(cfg)
    runner.register_observer(Summaries())
    assert runner.init() == ExperimentStatus.SUCCESS
    assert runner.run() == ExperimentStatus.SUCCESS
    return runner


def best_of(folder: Path, policy_id: int = 0) -> Path:
    (path,) = (folder / f"run/checkpoint_p{policy_id}").glob("best_*.pth")
    return path


@pytest.mark.parametrize(
    "flags",
    [
        ("--max_pure_expl_steps=0",),
        ("--max_pure_expl_steps=2", "--explorer=tests.training.recording:PolicyExplorer"),
    ],
    ids=["baseline", "with an explorer"],
)
def test_a_real_training_judges_by_full_rounds(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Lucky episodes are twenty times as many; by rounds they are half."""
    runner = train_unevenly(tmp_path, "--serial_mode=True", *flags)
    state = read_checkpoint(best_of(tmp_path), "cpu")
    assert state["best_performance"] == pytest.approx(0.5, abs=1e-6)
    assert best_of(tmp_path).name.endswith("_reward_0.500.pth")
    curves = scalars_of(tmp_path / "run")
    for tag in ("go/return", "go/success"):
        assert {value for _, value in curves[tag]} == {0.5}
        assert min(frames for frames, _ in curves[tag]) >= UNLUCKY * 4  # nothing before the first round
    if runner.cfg.num_policies == 2:
        explorer = read_checkpoint(best_of(tmp_path, 1), "cpu")
        assert explorer["best_performance"] == 0.0  # two steps never reach a reward
        assert scalars_of(tmp_path / "run", 1)["explore/return"][-1][1] == 0.0


def test_a_best_that_was_judged_otherwise_still_loads_and_can_be_beaten(tmp_path: Path) -> None:
    """As an earlier version left it: an untrained agent with a return that no full round reaches."""
    train_unevenly(tmp_path, "--serial_mode=True", "--max_pure_expl_steps=0")
    for path in (tmp_path / "run/checkpoint_p0").glob("*.pth"):
        state = read_checkpoint(path, "cpu")
        del state["best_by"]
        save_atomically(state | {"best_performance": 0.945}, path)
    old = best_of(tmp_path).rename(tmp_path / "run/checkpoint_p0/best_000000001_40_reward_0.945.pth")
    weights = read_checkpoint(old, "cpu")["model"]
    again = ("--serial_mode=True", "--max_pure_expl_steps=0", "--restart_behavior=resume")
    train_unevenly(tmp_path, *again, "--train_for_env_steps=1600", "--load_checkpoint_kind=best")
    state = read_checkpoint(best_of(tmp_path), "cpu")
    assert best_of(tmp_path).name.endswith("_reward_0.500.pth")
    assert state["best_performance"] == pytest.approx(0.5, abs=1e-6)
    assert all(torch.equal(state["model"][name], value) for name, value in weights.items())  # learning rate 0


def test_nothing_is_said_before_a_round_is_complete(tmp_path: Path) -> None:
    runner = ExploreGoSerialRunner(make_cfg(tmp_path, "--num_workers=1", "--num_envs_per_worker=2"))
    for _ in range(500):
        runner._on_episode(runner, {EPISODIC: {"reward": 1.0}, ENV_OF_EPISODE: 0}, 0)
    assert dict(runner.episode_scalars(0)) == {}
    runner._on_episode(runner, {EPISODIC: {"reward": 0.0}, ENV_OF_EPISODE: 1}, 0)
    assert dict(runner.episode_scalars(0)) == {"go/return": 0.5}
