"""Uniformly random actions: the pure exploration of the paper's illustrative CMDP and of DeepMind Control."""

from typing import Any, ClassVar

import gymnasium as gym

from sf_explore_go.explorers.base import ActorExplorer


class RandomExplorer(ActorExplorer):
    """Samples the action space, from a generator of its own."""

    looks: ClassVar[bool] = False

    def __init__(self, action_space: gym.Space, seed: int, cfg: Any) -> None:
        super().__init__(action_space, seed, cfg)
        action_space.seed(seed)

    def act(self, obs: dict[str, Any]) -> Any:
        return self.action_space.sample()
