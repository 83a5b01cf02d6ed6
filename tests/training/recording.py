"""A run under observation: an environment that writes down what it did, learners that write down what they got.

Both sides are compared by the tests: what was made, and what arrived. Everything is importable, so that it also works
in the processes of a parallel run.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from sample_factory.algo.utils.misc import ExperimentStatus
from sample_factory.envs.env_utils import register_env

from sf_explore_go.cli.train import EXIT_STATUS
from sf_explore_go.config.flags import make_parser, parse_train_args
from sf_explore_go.config.presets import EVERY_RUN, all_presets
from sf_explore_go.core.arguments import flag_words
from sf_explore_go.core.observers import Observer
from sf_explore_go.explorers.base import LearnedExplorer
from sf_explore_go.explorers.intrinsic import ExploreBatch, IntrinsicReward, Setting
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.training.learner import ExploreGoLearner
from sf_explore_go.training.learner_worker import ExploreGoLearnerWorker
from sf_explore_go.training.policies import policy_cfg
from sf_explore_go.training.runner import ExploreGoParallelRunner, ExploreGoRunner, ExploreGoSerialRunner

ENV_NAME = "illustrative_train"  # whose place the counting environment takes
MIN_LENGTH, MAX_LENGTH = 1, 40


class CountingEnv(gym.Env):
    """Its observation names the step: [environment, episode, step]. Episodes last 1 to 40 steps, at random."""

    def __init__(self, env_id: int, folder: Path) -> None:
        self.env_id, self.folder = env_id, folder
        self.observation_space = gym.spaces.Box(-1e9, 1e9, (3,), np.float32)
        self.action_space = gym.spaces.Discrete(3)
        self.episode, self.step_index, self.length = -1, 0, 0
        self.made: list[list[int]] = []  # episode, step, action, length of the episode

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.episode += 1
        self.step_index = 0
        self.length = int(self.np_random.integers(MIN_LENGTH, MAX_LENGTH + 1))
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.made.append([self.episode, self.step_index, int(action), self.length])
        self.step_index += 1
        ended = self.step_index == self.length
        truncated = ended and self.length == MAX_LENGTH
        return self._obs(), float(self.step_index), ended and not truncated, truncated, {}

    def _obs(self) -> np.ndarray:
        return np.array([self.env_id, self.episode, self.step_index], np.float32)

    def close(self) -> None:
        (self.folder / f"env_{self.env_id:04d}.json").write_text(json.dumps(self.made))


def make_counting_env(env_name: str, cfg: Any, env_config: Any, render_mode: str | None = None) -> CountingEnv:
    folder = Path(cfg.record_dir)
    return CountingEnv(env_config.env_id if env_config else -1, folder)


class PolicyExplorer(LearnedExplorer):
    """A second policy that is rewarded for nothing: the plainest learned explorer."""

    @classmethod
    def make_reward(cls, setting: Setting) -> IntrinsicReward:
        return NoReward()


class NoReward:
    def rewards(self, batch: ExploreBatch) -> torch.Tensor:
        return torch.zeros(batch.dones.shape)

    def learn(self, batch: ExploreBatch) -> None: ...

    def metrics(self) -> dict[str, float]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class RecordingLearner(ExploreGoLearner):
    """Saves every batch as it came, and every probability ratio."""

    batches = 0

    def _prepare_batch(self, batch: Any) -> Any:
        keys = ("rnn_states", "actions", "dones", "time_outs", "rewards", "policy_id", "policy_version")
        arrays = {key: batch[key].clone().numpy() for key in keys}
        arrays |= {
            key: batch[key].clone().numpy() for key in ("env_index", "phase_index", "phase_step") if key in batch
        }
        arrays["obs"] = batch["obs"]["obs"].clone().numpy()
        self.batches += 1
        np.savez(Path(self.cfg.record_dir) / f"batch_p{self.policy_id}_{self.batches:05d}.npz", **arrays)
        return super()._prepare_batch(batch)

    def _calculate_losses(self, mb: Any, num_invalids: int) -> Any:
        result = super()._calculate_losses(mb, num_invalids)
        ratio = result[-1]["ratio"].detach()
        worst = torch.maximum((ratio - 1).abs().max(), torch.zeros(1)).item()
        with (Path(self.cfg.record_dir) / f"ratio_p{self.policy_id}.txt").open("a") as file:
            file.write(f"{worst} {num_invalids}\n")
        return result


class RecordingLearnerWorker(ExploreGoLearnerWorker):
    def make_learner(self, cfg: Any, env_info: Any, buffer_mgr: Any, policy_id: int) -> ExploreGoLearner:
        versions = buffer_mgr.policy_versions
        own = policy_cfg(cfg, policy_id)
        return RecordingLearner(own, env_info, versions, policy_id, self.param_server, buffer_mgr.frames)


class RecordingRunner(ExploreGoRunner):
    def _make_learner(self, event_loop: Any, policy_id: int, batcher: Any) -> Any:
        return RecordingLearnerWorker(event_loop, self.cfg, self.env_info, self.buffer_mgr, batcher, policy_id)


class RecordingSerialRunner(ExploreGoSerialRunner, RecordingRunner):
    pass


class RecordingParallelRunner(ExploreGoParallelRunner, RecordingRunner):
    pass


def smoke_flags() -> list[str]:
    """The smoke preset one by one, and Sample Factory's defaults for what the grid's own preset sets besides."""
    defaults = vars(make_parser().parse_args([f"--env={ENV_NAME}"]))
    presets = all_presets()
    wanted = {name: defaults[name] for name in presets["illustrative"]} | EVERY_RUN
    wanted |= dict(presets["smoke"]) | {"num_contexts": 0}
    return flag_words(wanted, "smoke")


def make_cfg(folder: Path, *flags: str, learning_rate: float = 0.0) -> Any:
    """Configuration of a run in the counting environment; with learning rate 0 the weights never change."""
    common = [
        f"--env={ENV_NAME}", *smoke_flags(), f"--train_dir={folder}", "--experiment=run", "--seed=11",
        "--env_frameskip=1", "--obs_scale=1", "--normalize_input=False", "--normalize_returns=False",
        "--encoder_mlp_layers", "16", "--rnn_size=8", "--rollout=8", "--batch_size=32", "--device=cpu",
        "--max_pure_expl_steps=19", "--train_for_env_steps=10000", "--heartbeat_interval=2", "--learning_rate=1e-4",
    ]  # fmt: skip
    cfg = parse_train_args([*common, *flags])
    cfg.env, cfg.record_dir, cfg.learning_rate = ENV_NAME, str(folder), learning_rate
    return cfg


def drive(
    cfg: Any, make_env: Callable[..., CountingEnv] = make_counting_env, observers: Sequence[Observer] = ()
) -> tuple[Any, ExploreGoRunner]:
    """Run to the end; returns Sample Factory's status and the runner."""
    register_worlds()
    register_env(ENV_NAME, make_env)
    runner = (RecordingSerialRunner if cfg.serial_mode else RecordingParallelRunner)(cfg)
    for observer in observers:
        runner.register_observer(observer)
    assert runner.init() == ExperimentStatus.SUCCESS
    return runner.run(), runner


def record(folder: Path, *flags: str) -> ExploreGoRunner:
    status, runner = drive(make_cfg(folder, *flags))
    assert status == ExperimentStatus.SUCCESS
    return runner


class Recording:
    """What the environments made and what the learners received, side by side."""

    def __init__(self, folder: Path) -> None:
        self.made: dict[int, np.ndarray] = {}  # environment -> [steps, (episode, step, action, length)]
        for path in sorted(folder.glob("env_[0-9]*.json")):
            self.made[int(path.stem[4:])] = np.array(json.loads(path.read_text()))
        self.batches: dict[int, list[dict[str, np.ndarray]]] = {}  # policy -> batches in the order of training
        for path in sorted(folder.glob("batch_p*.npz")):
            with np.load(path) as arrays:
                self.batches.setdefault(int(path.stem[7]), []).append({k: arrays[k] for k in arrays.files})
        self.worst_ratio = {
            int(path.stem[7]): np.loadtxt(path, ndmin=2).max(axis=0) for path in folder.glob("ratio_p*.txt")
        }

    def steps_received(self, policy_id: int) -> dict[int, list[dict[str, Any]]]:
        """environment -> its steps as the policy's learner got them, in the order of arrival."""
        received: dict[int, list[dict[str, Any]]] = {}
        for batch in self.batches.get(policy_id, []):
            rollouts, length = batch["rewards"].shape
            for r in range(rollouts):
                for t in range(length):
                    env, episode, step = batch["obs"][r, t].astype(int).tolist()
                    received.setdefault(env, []).append(
                        {
                            "episode": episode,
                            "step": step,
                            "action": int(batch["actions"][r, t].item()),
                            "reward": float(batch["rewards"][r, t]),
                            "done": bool(batch["dones"][r, t]),
                            "time_out": bool(batch["time_outs"][r, t]),
                            "policy": int(batch["policy_id"][r, t]),
                            "zero_rnn": not batch["rnn_states"][r, t].any(),
                            "phase": [
                                int(batch[k][r, t]) for k in ("env_index", "phase_index", "phase_step") if k in batch
                            ],
                        }
                    )
        return received


def main(argv: list[str]) -> int:
    """`python -m tests.training.recording FOLDER FLAGS...`: a run in a process of its own, for signals."""
    folder = Path(argv[0])
    cfg = make_cfg(folder, *argv[1:])
    status, runner = drive(cfg)
    print(json.dumps(runner.final_frames))
    return EXIT_STATUS[status]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
