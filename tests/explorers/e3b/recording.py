"""A run of E3B under observation: the reward writes down the features that it had and what it gave."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from sample_factory.algo.utils.misc import ExperimentStatus
from sample_factory.envs.env_utils import register_env
from torch import Tensor

from sf_explore_go.cli.train import make_runner
from sf_explore_go.explorers.e3b import E3BExplorer
from sf_explore_go.explorers.e3b.elliptical import EpisodicBonus, PhaseSteps
from sf_explore_go.explorers.e3b.reward import E3BReward
from sf_explore_go.explorers.intrinsic import ExploreBatch, IntrinsicReward, Setting
from sf_explore_go.training.environments import register_worlds
from tests.training.recording import ENV_NAME, make_cfg, make_counting_env

EXPLORER = "--explorer=tests.explorers.e3b.recording:RecordingE3B"


class RecordingE3B(E3BExplorer):
    @classmethod
    def make_reward(cls, setting: Setting) -> IntrinsicReward:
        return RecordingReward(setting)


class RecordingBonus(EpisodicBonus):
    """Remembers the features that it was last given."""

    features: Tensor

    def __call__(self, features: Tensor, steps: PhaseSteps) -> Tensor:
        self.features = features.clone()
        return super().__call__(features, steps)


class RecordingReward(E3BReward):
    """Saves, for every batch, the steps' names (from the observation), features, rewards, and their scale."""

    batches = 0

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.bonus = self.recording = RecordingBonus(self.options.e3b_ridge, self.options.max_pure_expl_steps)

    def rewards(self, batch: ExploreBatch) -> Tensor:
        self.last_rewards = super().rewards(batch)
        return self.last_rewards

    def learn(self, batch: ExploreBatch) -> None:
        super().learn(batch)
        self.batches += 1
        observations = batch.raw_obs["obs"][:, :-1].numpy()  # environment, episode, step
        np.savez(
            Path(self.options.record_dir) / f"e3b_{self.batches:05d}.npz",
            obs=observations.reshape(-1, 3).astype(int),
            features=self.recording.features.flatten(0, 1).numpy(),
            rewards=self.last_rewards.flatten().numpy(),
            scale=self.bonus_std.scale,
            late=self.bonus.late,
            parameters=torch.cat([p.detach().flatten() for p in self.dynamics.parameters()]).numpy(),
        )


def drive(folder: Path, *flags: str) -> Any:
    """A whole run in the counting environment, with weights that change; returns the runner."""
    cfg = make_cfg(folder, *flags, learning_rate=1e-3)
    register_worlds()
    register_env(ENV_NAME, make_counting_env)
    runner = make_runner(cfg)
    assert runner.init() == ExperimentStatus.SUCCESS
    assert runner.run() == ExperimentStatus.SUCCESS
    return runner
