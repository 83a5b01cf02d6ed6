"""APPO on the intrinsic reward of a learned explorer."""

from typing import Any

import torch
from sample_factory.algo.utils.context import global_model_factory
from sample_factory.algo.utils.shared_buffers import policy_device
from sample_factory.algo.utils.tensor_dict import TensorDict, shallow_recursive_copy

from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.explorers.base import LearnedExplorer
from sf_explore_go.explorers.intrinsic import IntrinsicReward, Setting
from sf_explore_go.explorers.registry import resolve_explorer
from sf_explore_go.training.bonus import explore_batch
from sf_explore_go.training.learner import ExploreGoLearner


class NormalizedObs(TensorDict):
    """Observations that are normalised already."""


class ExplorerLearner(ExploreGoLearner):
    """Learner of policy 1. The environment's reward is not used."""

    reward: IntrinsicReward

    @property
    def explorer(self) -> type[LearnedExplorer]:
        explorer = resolve_explorer(self.cfg.explorer)
        assert issubclass(explorer, LearnedExplorer)
        return explorer

    def init(self) -> Any:
        # Before the parent's init, which loads a checkpoint; and not in the constructor, since a learner is made in
        # one process and works in another.
        self.reward = self.make_reward()
        return super().init()

    def make_reward(self) -> IntrinsicReward:
        torch.manual_seed(derive_seed(self.cfg.seed, self.cfg.explorer))
        setting = Setting(
            obs_space=self.env_info.obs_space,
            action_space=self.env_info.action_space,
            options=self.cfg,
            device=policy_device(self.cfg, self.policy_id),
            make_encoder=lambda: global_model_factory().make_model_encoder_func(self.cfg, self.env_info.obs_space),
        )
        return self.explorer.make_reward(setting)

    # -- one batch -----------------------------------------------------------------------------------------------

    def _prepare_batch(self, batch: TensorDict) -> tuple[TensorDict, int, int]:
        self.actor_critic.train()  # in one process with the inference worker it may stand in evaluation mode
        with torch.no_grad():
            normalized = NormalizedObs(super()._prepare_and_normalize_obs(shallow_recursive_copy(batch["obs"])))
        assert self.curr_lr is not None
        explored = explore_batch(batch, normalized, self.curr_lr)
        batch["rewards"].copy_(self.reward.rewards(explored))
        self.reward.learn(explored)
        return super()._prepare_batch(TensorDict(batch | {"obs": normalized}))

    def _prepare_and_normalize_obs(self, obs: TensorDict) -> TensorDict:
        """The parent asks for this too, but the normaliser's statistics must count a batch once."""
        return obs if isinstance(obs, NormalizedObs) else super()._prepare_and_normalize_obs(obs)

    def _record_summaries(self, train_loop_vars: Any) -> Any:
        stats = super()._record_summaries(train_loop_vars)
        stats.update({f"explore/{name}": value for name, value in self.reward.metrics().items()})
        return stats

    # -- checkpoints ---------------------------------------------------------------------------------------------

    def _get_checkpoint_dict(self) -> dict[str, Any]:
        state = super()._get_checkpoint_dict()
        state[self.explorer.checkpoint_key] = self.reward.state_dict()
        return state

    def _load_state(self, checkpoint_dict: dict[str, Any], load_progress: bool = True) -> None:
        self.explorer.check_checkpoint(checkpoint_dict)  # before anything is changed
        super()._load_state(checkpoint_dict, load_progress)
        self.reward.load_state_dict(checkpoint_dict[self.explorer.checkpoint_key])
