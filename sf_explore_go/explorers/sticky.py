"""Sticky: actions that last. The best explorer here that learns nothing.

Uniformly random actions go to and fro and hardly leave their room. This explorer draws an action, holds it for n
decisions, then draws another one; n has a heavy tail,

    P(n) ~ 1 / n**tail,  n = 1 .. longest,

so that short moves are common and long ones not rare (temporally extended exploration: Dabney, Ostrovski, Barreto,
2021). In a Discrete space, actions may have weights, and longest times of their own: whoever turns as long as it walks
spins, and whoever walks for too long stands at a wall.
"""

import argparse
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import ActorExplorer


class StickyExplorer(ActorExplorer):
    """Draws an action, holds it for a random time, then draws another one."""

    looks: ClassVar[bool] = False

    def __init__(self, action_space: gym.Space, seed: int, cfg: Any) -> None:
        super().__init__(action_space, seed, cfg)
        action_space.seed(seed)
        self._rng = np.random.default_rng(seed)
        self._action: Any = None  # that is held
        self._left = 0  # decisions for which it still is

    @classmethod
    def add_arguments(cls, group: argparse._ArgumentGroup) -> None:
        group.add_argument(
            "--sticky_tail", type=float, default=1.0, help="number: an action lasts n decisions with P(n) ~ 1 / n**tail"
        )
        group.add_argument(
            "--sticky_longest",
            type=int,
            nargs="+",
            default=[8],
            help="decisions: how long an action lasts at most; one number, or one for each action of a Discrete space",
        )
        group.add_argument(
            "--sticky_weights",
            type=float,
            nargs="+",
            help="a number for each action of a Discrete space: how likely it is (all alike)",
        )

    @classmethod
    def check_cfg(cls, cfg: Any) -> None:
        if min(cfg.sticky_longest) < 1:
            raise UsageError(f"--sticky_longest={numbers(cfg.sticky_longest)}: it must be at least 1")
        weights = cfg.sticky_weights
        if weights is not None and (min(weights) < 0 or np.count_nonzero(weights) < 2):
            raise UsageError(
                f"--sticky_weights={numbers(weights)}: they must be at least 0, and above 0 for two actions or more"
            )

    @classmethod
    def check(cls, action_space: gym.Space, cfg: Any) -> None:
        per_action = {"sticky_weights": cfg.sticky_weights, "sticky_longest": cfg.sticky_longest}
        if len(cfg.sticky_longest) == 1:
            del per_action["sticky_longest"]
        for name, values in per_action.items():
            if values is None or (isinstance(action_space, gym.spaces.Discrete) and len(values) == action_space.n):
                continue
            if isinstance(action_space, gym.spaces.Discrete):
                must = f"there must be one for each of the {action_space.n} actions"
            else:
                must = f"numbers for each action must be left out, since the action space is {action_space}"
            raise UsageError(f"--{name}={numbers(values)}: {must}")

    def begin_phase(self, obs: dict[str, Any]) -> None:
        self._action, self._left = None, 0

    def act(self, obs: dict[str, Any]) -> Any:
        if self._left == 0:
            self._action = self._draw()
            self._left = self._duration()
        self._left -= 1
        return self._action

    def _draw(self) -> Any:
        """Another action than the last one, by the weights; any, in a space of another kind."""
        if not isinstance(self.action_space, gym.spaces.Discrete):
            return self.action_space.sample()
        count = int(self.action_space.n)
        weights = np.array(self.cfg.sticky_weights or [1.0] * count)
        if self._action is not None and count > 1:
            weights[self._action - self.action_space.start] = 0.0
        return self.action_space.start + int(self._rng.choice(count, p=weights / weights.sum()))

    def _duration(self) -> int:
        longest = self.cfg.sticky_longest
        most = longest[0] if len(longest) == 1 else longest[self._action - self.action_space.start]  # type: ignore[attr-defined]
        chances = np.arange(1.0, most + 1) ** -self.cfg.sticky_tail
        return 1 + int(self._rng.choice(most, p=chances / chances.sum()))


def numbers(values: list[Any]) -> str:
    """As on a command line."""
    return " ".join(f"{value:g}" for value in values)
