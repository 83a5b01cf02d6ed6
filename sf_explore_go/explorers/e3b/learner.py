"""APPO whose reward is the elliptical bonus.

Pure wiring: features from inverse_dynamics.py, bonuses from elliptical.py, their scale from running_std.py. For each
batch, features are computed once; with gradient they train the encoder and the inverse model, without it they give the
bonuses, which take the place of the rewards before Sample Factory's own learner sees the batch.
"""

import math
from collections import deque
from typing import Any

import numpy as np
import torch
from sample_factory.algo.utils.shared_buffers import policy_device
from sample_factory.algo.utils.tensor_dict import TensorDict, shallow_recursive_copy
from torch import Tensor

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.explorers.e3b.elliptical import EpisodicBonus, PhaseSteps
from sf_explore_go.explorers.e3b.inverse_dynamics import InverseDynamics
from sf_explore_go.explorers.e3b.running_std import RunningStd
from sf_explore_go.phases.rollouts import ENV_INDEX, PHASE_INDEX, PHASE_STEP
from sf_explore_go.training.learner import ExploreGoLearner

STATE_KEY = "e3b"  # of a checkpoint
PHASES_TO_AVERAGE = 100  # for the metric of phase lengths
LENGTH_MEMORY = 0.05  # share of the newest batch in the mean squared length of features
TINY = 1e-6  # length below which features count as zero


class E3BLearner(ExploreGoLearner):
    """Learner of the explorer. The environment's reward is not used."""

    dynamics: InverseDynamics
    dynamics_optimizer: torch.optim.Adam
    bonus: EpisodicBonus
    bonus_std: RunningStd

    def init(self) -> Any:
        # Before the parent's init, which loads a checkpoint; and not in the constructor, since a learner is made in
        # one process and works in another.
        self._make_parts()
        return super().init()

    def _make_parts(self) -> None:
        torch.manual_seed(derive_seed(self.cfg.seed, "e3b"))
        self.dynamics = InverseDynamics(self.cfg, self.env_info.obs_space, self.env_info.action_space)
        self.dynamics.to(policy_device(self.cfg, self.policy_id))
        self.dynamics_optimizer = torch.optim.Adam(
            self.dynamics.parameters(),
            lr=self.cfg.learning_rate,
            betas=(self.cfg.adam_beta1, self.cfg.adam_beta2),
            eps=self.cfg.adam_eps,
        )
        self.bonus = EpisodicBonus(self.cfg.e3b_ridge, self.cfg.max_pure_expl_steps)
        self.bonus_std = RunningStd()
        self.squared_length = 0.0  # of features, a moving average over batches; 0 = none seen
        self._normalized_obs: TensorDict | None = None
        self._phase_lengths: deque[int] = deque(maxlen=PHASES_TO_AVERAGE)
        self._metrics: dict[str, float] = {}

    # -- one batch -----------------------------------------------------------------------------------------------

    def _prepare_batch(self, batch: TensorDict) -> tuple[TensorDict, int, int]:
        self.actor_critic.train()  # in one process with the inference worker it may stand in evaluation mode
        with torch.no_grad():
            self._normalized_obs = super()._prepare_and_normalize_obs(shallow_recursive_copy(batch["obs"]))
        features = self.dynamics.features(self._normalized_obs)  # [N, T + 1, d], with gradient
        bonuses = self.bonus(self._scaled(features[:, :-1].detach()), phase_steps(batch))
        batch["rewards"].copy_(self._rewards(bonuses, (batch[PHASE_STEP] == 0).to(bonuses.device)))
        self._train_dynamics(features, batch)
        self._note_phases(batch)
        return super()._prepare_batch(batch)

    def _scaled(self, features: Tensor) -> Tensor:
        """Features [N, T, d] for the bonus.

        Nothing holds the features' length where it is while the inverse model learns, and the ridge means less and less
        as they grow: so their current length is the unit.
        """
        if not self.cfg.e3b_scale_features:
            return features
        squared = features.square().sum(-1).mean().item()
        self.squared_length += (squared - self.squared_length) * (LENGTH_MEMORY if self.squared_length else 1.0)
        self._metrics["explore/e3b_feature_length"] = math.sqrt(self.squared_length)
        return features / max(math.sqrt(self.squared_length), TINY)

    def _prepare_and_normalize_obs(self, obs: TensorDict) -> TensorDict:
        """Asked for by the parent; already done above, and the normaliser's statistics must count a batch once."""
        normalized, self._normalized_obs = self._normalized_obs, None
        assert normalized is not None
        return normalized

    def _rewards(self, bonuses: Tensor, first: Tensor) -> Tensor:
        """Rewards [N, T] of raw bonuses [N, T]; `first` [N, T] marks the first step of each phase.

        With a LayerNorm the first bonus is d / lambda whatever the explorer does, many times the others. It would
        make most of the standard deviation and of the advantages' spread, and there is nothing in it to learn.
        """
        if not self.cfg.e3b_first_bonus:
            bonuses = bonuses.masked_fill(first, 0.0)
        counted = bonuses if self.cfg.e3b_first_bonus else bonuses[~first]
        if len(counted):
            self.bonus_std.update(counted)
        scaled = bonuses / self.bonus_std.scale if self.cfg.normalize_intrinsic_rewards else bonuses
        rewards = self.cfg.intrinsic_reward_coeff * scaled
        self._metrics["explore/e3b_bonus_raw"] = bonuses.mean().item()
        self._metrics["explore/e3b_bonus_std"] = self.bonus_std.std
        self._metrics["explore/e3b_bonus_normalised"] = rewards.mean().item()
        return rewards

    def _train_dynamics(self, features: Tensor, batch: TensorDict) -> None:
        """One step of Adam at the policy's current learning rate; each of the two networks is clipped by itself."""
        device = features.device
        guess = self.dynamics.guess(features, batch["actions"].to(device), batch["dones"].to(device))
        if guess is None:  # every phase of the batch lasted one step
            return
        self.dynamics_optimizer.zero_grad(set_to_none=True)
        guess.loss.backward()
        if self.cfg.max_grad_norm > 0.0:
            for network in (self.dynamics.encoder, self.dynamics.inverse_model):
                torch.nn.utils.clip_grad_norm_(network.parameters(), self.cfg.max_grad_norm)
        for group in self.dynamics_optimizer.param_groups:
            group["lr"] = self.curr_lr
        self.dynamics_optimizer.step()
        self._metrics["explore/e3b_inverse_loss"] = guess.loss.item()
        self._metrics["explore/e3b_inverse_accuracy"] = guess.accuracy

    # -- metrics -------------------------------------------------------------------------------------------------

    def _note_phases(self, batch: TensorDict) -> None:
        ended = batch["dones"].bool()
        self._phase_lengths.extend((batch[PHASE_STEP][ended] + 1).tolist())
        if self._phase_lengths:
            self._metrics["explore/e3b_phase_length"] = float(np.mean(self._phase_lengths))
        self._metrics["explore/e3b_late_rollouts"] = float(self.bonus.late)

    def _record_summaries(self, train_loop_vars: Any) -> Any:
        stats = super()._record_summaries(train_loop_vars)
        stats.update(self._metrics)
        return stats

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def _get_checkpoint_dict(self) -> dict[str, Any]:
        state = super()._get_checkpoint_dict()
        state[STATE_KEY] = {
            "encoder": self.dynamics.encoder.state_dict(),
            "inverse_model": self.dynamics.inverse_model.state_dict(),
            "optimizer": self.dynamics_optimizer.state_dict(),
            "bonus_std": self.bonus_std.state_dict(),
            "squared_length": self.squared_length,
            "late_rollouts": self.bonus.late,
        }
        return state

    def _load_state(self, checkpoint_dict: dict[str, Any], load_progress: bool = True) -> None:
        own = explorer_state(checkpoint_dict)
        super()._load_state(checkpoint_dict, load_progress)
        self.dynamics.encoder.load_state_dict(own["encoder"])
        self.dynamics.inverse_model.load_state_dict(own["inverse_model"])
        self.dynamics_optimizer.load_state_dict(own["optimizer"])
        self.bonus_std.load_state_dict(own["bonus_std"])
        self.squared_length = float(own["squared_length"])
        self.bonus.late = int(own["late_rollouts"])


def explorer_state(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """The part of a checkpoint that is E3B's own; a UsageError if any of it is missing."""
    own = checkpoint.get(STATE_KEY)
    expected = ("encoder", "inverse_model", "optimizer", "bonus_std", "squared_length", "late_rollouts")
    missing = [name for name in expected if own is None or name not in own]
    if missing:
        raise UsageError(
            f"--explorer=e3b: the explorer's checkpoint has no {', '.join(missing)} of E3B; allowed are checkpoints"
            " that E3B has written: resume with the explorer of the first part, or choose another --experiment"
        )
    assert own is not None
    return own


def phase_steps(batch: TensorDict) -> PhaseSteps:
    """The place of each step [N, T], on the CPU: cutting and joining pieces is a matter of small integers."""
    names = (ENV_INDEX, PHASE_INDEX, PHASE_STEP, "dones")
    return PhaseSteps(*(batch[name].cpu().numpy() for name in names))
