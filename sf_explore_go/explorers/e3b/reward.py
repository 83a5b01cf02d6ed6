"""The elliptical bonus as an intrinsic reward: features from inverse_dynamics.py, bonuses from elliptical.py, their
scale from running_std.py.

For each batch, features are computed once; without gradient they give the bonuses, with it they train the encoder and
the inverse model.
"""

import math
from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sf_explore_go.explorers.e3b.arguments import INVERSE, OBSERVATION
from sf_explore_go.explorers.e3b.elliptical import EpisodicBonus, PhaseSteps
from sf_explore_go.explorers.e3b.global_bonus import GlobalBonus
from sf_explore_go.explorers.e3b.inverse_dynamics import InverseDynamics
from sf_explore_go.explorers.e3b.observation import observation_features
from sf_explore_go.explorers.e3b.running_std import RunningStd
from sf_explore_go.explorers.intrinsic import ExploreBatch, Setting

PHASES_TO_AVERAGE = 100  # for the metric of phase lengths
LENGTH_MEMORY = 0.05  # share of the newest batch in the mean squared length of features
TINY = 1e-6  # length below which features count as zero


class E3BReward:
    """One explorer's bonus, over all its environments."""

    def __init__(self, setting: Setting) -> None:
        options = self.options = setting.options
        self.dynamics = InverseDynamics(
            setting.make_encoder(), setting.action_space, layer_norm=options.e3b_layer_norm
        ).to(setting.device)
        self.optimizer = torch.optim.Adam(
            self.dynamics.parameters(),
            lr=options.learning_rate,
            betas=(options.adam_beta1, options.adam_beta2),
            eps=options.adam_eps,
        )
        self.bonus = EpisodicBonus(options.e3b_ridge, options.max_pure_expl_steps)
        self.global_bonus = GlobalBonus(options.e3b_ridge) if options.e3b_global else None
        self.bonus_std = RunningStd()
        self.squared_length = 0.0  # of features, a moving average over batches; 0 = none seen
        self._features: Tensor | None = None  # of the batch that was rewarded last, with gradient
        self._phase_lengths: deque[int] = deque(maxlen=PHASES_TO_AVERAGE)
        self._metrics: dict[str, float] = {}

    # -- rewards -------------------------------------------------------------------------------------------------

    def rewards(self, batch: ExploreBatch) -> Tensor:
        self._features = self._make_features(batch.obs)  # [N, T + 1, d]
        features = self._scaled(self._features[:, :-1].detach())
        bonuses = self.bonus(features, phase_steps(batch))
        if self.global_bonus is not None:
            bonuses = bonuses * self.global_bonus(features)
        self._note_phases(batch)
        return self._rewards(bonuses, self.bonus.first)

    def _make_features(self, obs: dict[str, Tensor]) -> Tensor:
        if self.options.e3b_features == OBSERVATION:
            return observation_features(obs)
        with torch.set_grad_enabled(self.options.e3b_features == INVERSE):
            return self.dynamics.features(obs)

    def _scaled(self, features: Tensor) -> Tensor:
        """Features [N, T, d] for the bonus.

        Nothing holds the features' length where it is while the inverse model learns, and the ridge means less and less
        as they grow: so their current length is the unit.
        """
        if not self.options.e3b_scale_features:
            return features
        squared = features.square().sum(-1).mean().item()
        self.squared_length += (squared - self.squared_length) * (LENGTH_MEMORY if self.squared_length else 1.0)
        self._metrics["e3b_feature_length"] = math.sqrt(self.squared_length)
        return features / max(math.sqrt(self.squared_length), TINY)

    def _rewards(self, bonuses: Tensor, first: Tensor) -> Tensor:
        """Rewards [N, T] of raw bonuses [N, T]; `first` [N, T] marks steps before which nothing of their phase is held.

        The first bonus is |phi|^2 / lambda whatever the explorer does, many times the others. It would make most of the
        standard deviation and of the advantages' spread, and there is nothing in it to learn.
        """
        options = self.options
        if not options.e3b_first_bonus:
            bonuses = bonuses.masked_fill(first, 0.0)
        counted = bonuses if options.e3b_first_bonus else bonuses[~first]
        if len(counted):
            self.bonus_std.update(counted)
        scaled = bonuses / self.bonus_std.scale if options.normalize_intrinsic_rewards else bonuses
        rewards = options.intrinsic_reward_coeff * scaled
        self._metrics["e3b_bonus_raw"] = bonuses.mean().item()
        self._metrics["e3b_bonus_std"] = self.bonus_std.std
        self._metrics["e3b_bonus_normalised"] = rewards.mean().item()
        return rewards

    # -- learning ------------------------------------------------------------------------------------------------

    def learn(self, batch: ExploreBatch) -> None:
        """One step of Adam on the whole batch, then `--e3b_epochs` - 1 passes over it in minibatches."""
        features, self._features = self._features, None
        assert features is not None, "call rewards() before learn()"
        if self.options.e3b_features != INVERSE:
            return
        self._update(features, batch.actions, batch.dones, batch.learning_rate)
        count = max(1, self.options.batch_size // batch.dones.shape[1])  # rollouts of a minibatch
        for _ in range(self.options.e3b_epochs - 1):
            for rows in torch.arange(len(batch.dones), device=batch.dones.device).split(count):
                features = self.dynamics.features({key: value[rows] for key, value in batch.obs.items()})
                self._update(features, batch.actions[rows], batch.dones[rows], batch.learning_rate)

    def _update(self, features: Tensor, actions: Tensor, dones: Tensor, learning_rate: float) -> None:
        """One step of Adam at the policy's current learning rate; each of the two networks is clipped by itself."""
        guess = self.dynamics.guess(features, actions, dones)
        if guess is None:  # every phase of the batch lasted one step
            return
        self.optimizer.zero_grad(set_to_none=True)
        guess.loss.backward()
        if self.options.max_grad_norm > 0.0:
            for network in (self.dynamics.encoder, self.dynamics.inverse_model):
                torch.nn.utils.clip_grad_norm_(network.parameters(), self.options.max_grad_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        self._metrics["e3b_inverse_loss"] = guess.loss.item()
        if guess.accuracy is not None:
            self._metrics["e3b_inverse_accuracy"] = guess.accuracy

    # -- metrics and state ---------------------------------------------------------------------------------------

    def _note_phases(self, batch: ExploreBatch) -> None:
        self._phase_lengths.extend((batch.step[batch.dones.bool()] + 1).tolist())
        if self._phase_lengths:
            self._metrics["e3b_phase_length"] = float(np.mean(self._phase_lengths))
        self._metrics["e3b_late_rollouts"] = float(self.bonus.late)

    def metrics(self) -> dict[str, float]:
        return self._metrics

    def state_dict(self) -> dict[str, Any]:
        return {
            "encoder": self.dynamics.encoder.state_dict(),
            "inverse_model": self.dynamics.inverse_model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "bonus_std": self.bonus_std.state_dict(),
            "squared_length": self.squared_length,
            "late_rollouts": self.bonus.late,
        } | ({"global_bonus": self.global_bonus.state_dict()} if self.global_bonus is not None else {})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.dynamics.encoder.load_state_dict(state["encoder"])
        self.dynamics.inverse_model.load_state_dict(state["inverse_model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.bonus_std.load_state_dict(state["bonus_std"])
        self.squared_length = float(state["squared_length"])
        self.bonus.late = int(state["late_rollouts"])
        if self.global_bonus is not None:
            self.global_bonus.load_state_dict(state["global_bonus"])


def phase_steps(batch: ExploreBatch) -> PhaseSteps:
    """The place of each step [N, T], on the CPU: cutting and joining pieces is a matter of small integers."""
    return PhaseSteps(*(part.cpu().numpy() for part in (batch.env, batch.phase, batch.step, batch.dones)))
