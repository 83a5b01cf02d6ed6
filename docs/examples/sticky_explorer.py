"""An explorer of your own: repeat a random action for a while, which carries further than a fresh one every step."""

import random
from typing import Any

import gymnasium as gym

from sf_explore_go.explorers.base import ActorExplorer


class StickyExplorer(ActorExplorer):
    """Keeps each action for 1 to 10 decisions."""

    def __init__(self, action_space: gym.Space, seed: int, cfg: Any) -> None:
        super().__init__(action_space, seed, cfg)
        action_space.seed(seed)
        self.rng = random.Random(seed)  # everything random comes from the given seed

    def begin_phase(self, obs: dict[str, Any]) -> None:
        self.left = 0

    def act(self, obs: dict[str, Any]) -> Any:
        if self.left == 0:
            self.left = self.rng.randint(1, 10)
            self.action = self.action_space.sample()
        self.left -= 1
        return self.action
