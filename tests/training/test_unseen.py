"""What an explorer that does not look leaves unseen: everything but what the agent, or coverage, has to see."""

from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
import torch
from sample_factory.algo.utils.misc import ExperimentStatus

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.explorers.random import RandomExplorer
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.names import checkpoints_in, policy_folder
from sf_explore_go.training.actor import WATCHED_ONE_IN
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.worlds.base import World
from sf_explore_go.worlds.doom.engine import DoomEngine
from tests.training.recording import Recording, RecordingSerialRunner

K = 20  # of the runs in the shy world
SERIAL = (
    "--serial_mode=True", "--num_workers=1", "--num_envs_per_worker=4", "--worker_num_splits=1",
    "--seed=5", "--heartbeat_interval=2", "--device=cpu",
)  # fmt: skip
DOOM = (
    "--env=my_way_home_small_train", "--preset=smoke", "--env_frameskip=8", "--max_pure_expl_steps=200",
    "--train_for_env_steps=16000", "--batch_size=128",
)  # fmt: skip


class LookingRandomExplorer(RandomExplorer):
    """Acts like the random explorer, and has every picture drawn for it."""

    looks: ClassVar[bool] = True


def run(folder: Path, *flags: str) -> RecordingSerialRunner:
    cfg = parse_train_args([*SERIAL, *flags, f"--train_dir={folder}", "--experiment=run"])
    cfg.record_dir = str(folder)
    register_worlds(cfg.env)
    runner = RecordingSerialRunner(cfg)
    assert runner.init() == ExperimentStatus.SUCCESS
    assert runner.run() == ExperimentStatus.SUCCESS
    return runner


def weights(folder: Path) -> dict[str, torch.Tensor]:
    path = checkpoints_in(policy_folder(folder / "run", 0))[-1]
    return dict(read_checkpoint(path, "cpu")["model"])


def test_a_training_gives_the_same_numbers_seen_or_unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = {"act": 0, "act_unseen": 0}
    for name in calls:
        monkeypatch.setattr(DoomEngine, name, _counted(getattr(DoomEngine, name), name, calls))
    trained = []
    for explorer in ("tests.training.test_unseen:LookingRandomExplorer", "random"):
        folder = tmp_path / explorer.rpartition(":")[2]
        folder.mkdir()
        frames = run(folder, *DOOM, f"--explorer={explorer}").final_frames
        trained.append((frames, Recording(folder).batches[0], weights(folder), dict(calls)))
    (frames, batches, model, before), (other_frames, other_batches, other_model, after) = trained
    assert before["act_unseen"] == 0
    assert after["act_unseen"] > 0.2 * before["act"]
    assert frames == other_frames
    assert len(batches) == len(other_batches) > 3
    for batch, other in zip(batches, other_batches, strict=True):
        for key, array in batch.items():
            np.testing.assert_array_equal(array, other[key], err_msg=key)
    for key, tensor in model.items():
        assert torch.equal(tensor, other_model[key]), key


def _counted(method: Any, name: str, calls: dict[str, int]) -> Any:
    def counted(*args: Any) -> Any:
        calls[name] += 1
        return method(*args)

    return counted


class ShyEnv(gym.Env):
    """Writes down which of its steps were unseen. Episodes have 1 to 30 steps, most of them longer than K."""

    made: ClassVar[list["ShyEnv"]] = []

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-1e9, 1e9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(2)
        self.unseen = False
        self.episodes: list[list[bool]] = []
        self.made.append(self)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.length = int(self.np_random.integers(1, 31))
        self.episodes.append([])
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.episodes[-1].append(self.unseen)
        return np.zeros(1, np.float32), 0.0, len(self.episodes[-1]) == self.length, False, {}


class ShyWorld(World):
    """A world of a user that offers to leave observations out."""

    def make_env(self, split: str, cfg: Any, render_mode: str | None = None) -> ShyEnv:
        return ShyEnv()


@pytest.mark.parametrize("explorer", ["random", "tests.training.test_unseen:LookingRandomExplorer"])
def test_all_but_the_last_step_of_a_phase_is_unseen_and_one_phase_in_eight_is_watched(
    tmp_path: Path, explorer: str
) -> None:
    ShyEnv.made.clear()
    shy = ("--env=tests.training.test_unseen:ShyWorld", f"--max_pure_expl_steps={K}", f"--explorer={explorer}")
    run(tmp_path, *shy, "--train_for_env_steps=6000", "--rollout=16", "--batch_size=512")
    played = [env for env in ShyEnv.made if len(env.episodes) > 2]  # one is made only to ask for its spaces
    assert len(played) == 4
    if explorer != "random":
        assert not any(flag for env in played for episode in env.episodes for flag in episode)
        return
    for index, env in enumerate(played):
        for number, episode in enumerate(env.episodes):
            unseen = sum(episode)
            assert episode == [True] * unseen + [False] * (len(episode) - unseen), "only at the start of an episode"
            assert unseen < K
            assert unseen == 0 or (number + index) % WATCHED_ONE_IN
    unseen_ends = [episode[-1] for env in played for episode in env.episodes[:-1]]
    assert any(unseen_ends), "some episodes ended while exploring"
    mean = np.mean([sum(e) for env in played for e in env.episodes if len(e) > K])
    assert mean == pytest.approx((1 - 1 / WATCHED_ONE_IN) * (K - 1) * K / 2 / (K + 1), rel=0.1)
