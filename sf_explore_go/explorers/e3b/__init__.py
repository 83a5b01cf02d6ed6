"""E3B, exploration by episodic elliptical bonuses, as the explorer of Explore-Go (docs/e3b.md)."""

from typing import Any

import gymnasium as gym

from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import LearnedExplorer
from sf_explore_go.explorers.e3b.arguments import check_e3b_args


class E3BExplorer(LearnedExplorer):
    """A policy that is rewarded for states unlike the earlier ones of its own explore phase."""

    @classmethod
    def check(cls, action_space: gym.Space) -> None:
        """The inverse model predicts the action as a class, so there must be finitely many."""
        parts = action_space.spaces if isinstance(action_space, gym.spaces.Tuple) else (action_space,)
        if not all(isinstance(part, gym.spaces.Discrete) for part in parts):
            raise UsageError(
                f"--explorer=e3b: the action space {action_space} is not discrete; allowed are Discrete and Tuple of"
                " Discrete"
            )

    @classmethod
    def check_cfg(cls, cfg: Any) -> None:
        check_e3b_args(cfg)

    @classmethod
    def learner_class(cls) -> type:
        from sf_explore_go.explorers.e3b.learner import E3BLearner  # Sample Factory's learner, which takes a second

        return E3BLearner

    @classmethod
    def check_checkpoint(cls, state: dict[str, Any]) -> None:
        from sf_explore_go.explorers.e3b.learner import explorer_state

        explorer_state(state)
