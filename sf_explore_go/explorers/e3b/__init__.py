"""E3B, exploration by episodic elliptical bonuses, as the explorer of Explore-Go (docs/e3b.md)."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import gymnasium as gym

from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import LearnedExplorer
from sf_explore_go.explorers.e3b.arguments import add_e3b_args, check_e3b_args
from sf_explore_go.explorers.intrinsic import IntrinsicReward, Setting

STATE = ("encoder", "inverse_model", "optimizer", "bonus_std", "squared_length", "late_rollouts")
ACTIONS = (gym.spaces.Discrete, gym.spaces.Box)


class E3BExplorer(LearnedExplorer):
    """A policy that is rewarded for states unlike the earlier ones of its own explore phase."""

    checkpoint_key: ClassVar[str] = "e3b"
    identity: ClassVar[Sequence[str]] = ("e3b_layer_norm", "e3b_scale_features", "e3b_features", "e3b_global")
    charts: ClassVar[Mapping[str, Sequence[str]]] = {
        "E3B: loss of the inverse dynamics": ["explore/e3b_inverse_loss"],
    }

    @classmethod
    def add_arguments(cls, group: argparse._ArgumentGroup) -> None:
        add_e3b_args(group)

    @classmethod
    def check_cfg(cls, cfg: Any) -> None:
        check_e3b_args(cfg)

    @classmethod
    def check(cls, action_space: gym.Space, cfg: Any) -> None:
        """The inverse model predicts the action: a class, or a vector."""
        parts: Any = action_space.spaces if isinstance(action_space, gym.spaces.Tuple) else (action_space,)
        if not all(isinstance(part, ACTIONS) for part in parts):
            raise UsageError(
                f"--explorer=e3b: the action space {action_space} must be Discrete, Box or a Tuple of these"
            )

    @classmethod
    def make_reward(cls, setting: Setting) -> IntrinsicReward:
        from sf_explore_go.explorers.e3b.reward import E3BReward

        return E3BReward(setting)

    @classmethod
    def check_checkpoint(cls, state: dict[str, Any]) -> None:
        missing = [name for name in STATE if name not in state.get(cls.checkpoint_key, {})]
        if missing:
            raise UsageError(
                f"--explorer=e3b: the explorer's checkpoint has no {', '.join(missing)} of E3B, so E3B did not write"
                " it; resume with the explorer that started the run, or choose another --experiment"
            )
