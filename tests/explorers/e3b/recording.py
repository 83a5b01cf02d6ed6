"""A run of E3B under observation: the learner writes down the features and the rewards that it really used."""

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
from sf_explore_go.explorers.e3b.learner import E3BLearner
from sf_explore_go.worlds.registry import register_worlds
from tests.training.recording import ENV_NAME, make_cfg, make_counting_env

EXPLORER = "--explorer=tests.explorers.e3b.recording:RecordingE3B"


class RecordingE3B(E3BExplorer):
    @classmethod
    def learner_class(cls) -> type:
        return RecordingE3BLearner


class RecordingBonus(EpisodicBonus):
    """Remembers the features that it was last given."""

    features: Tensor

    def __call__(self, features: Tensor, steps: PhaseSteps) -> Tensor:
        self.features = features.clone()
        return super().__call__(features, steps)


class RecordingE3BLearner(E3BLearner):
    """Saves, for every batch, the steps' names (from the observation), features, rewards, and their scale."""

    batches = 0

    def _make_parts(self) -> None:
        super()._make_parts()
        self.bonus = self.recording = RecordingBonus(self.cfg.e3b_ridge, self.cfg.max_pure_expl_steps)

    def _prepare_batch(self, batch: Any) -> Any:
        observations = batch["obs"]["obs"][:, :-1].clone().numpy()  # environment, episode, step
        result = super()._prepare_batch(batch)
        self.batches += 1
        np.savez(
            Path(self.cfg.record_dir) / f"e3b_{self.batches:05d}.npz",
            obs=observations.reshape(-1, 3).astype(int),
            features=self.recording.features.flatten(0, 1).numpy(),
            rewards=result[0]["rewards"].numpy(),  # what the policy is trained on
            scale=self.bonus_std.scale,
            late=self.bonus.late,
            parameters=torch.cat([p.detach().flatten() for p in self.dynamics.parameters()]).numpy(),
        )
        return result


def drive(folder: Path, *flags: str) -> Any:
    """A whole run in the counting environment, with weights that change; returns the runner."""
    cfg = make_cfg(folder, *flags, learning_rate=1e-3)
    register_worlds()
    register_env(ENV_NAME, make_counting_env)
    runner = make_runner(cfg)
    assert runner.init() == ExperimentStatus.SUCCESS
    assert runner.run() == ExperimentStatus.SUCCESS
    return runner
