"""Explore, then go: how many decisions of an episode belong to the explorer.

Explore-Go (section 4 of the paper): at the start of every training episode k ~ Uniform{0, ..., K} is drawn, both ends
included; the explorer decides the first k steps and the agent the rest. An episode that ends while exploring has no
go phase, and the next episode draws anew. K may grow over a training (`growth.py`), which is ours, not the paper's.
"""

import random
from collections.abc import Callable
from enum import IntEnum

AGENT, EXPLORER = 0, 1  # policy ids


class Phase(IntEnum):
    """Who acts. The values index per-phase counters."""

    EXPLORE = 0
    GO = 1


class PhaseSchedule:
    """Draws k at every episode start and tells the phase of each step of one environment.

    `max_explore_steps` is K, or a function that is asked for it at every episode start.
    """

    def __init__(self, max_explore_steps: int | Callable[[], int], seed: int) -> None:
        self._max_explore_steps = max_explore_steps
        self._rng = random.Random(seed)
        self.explore_steps = 0  # the k of this episode
        self.step = 0  # decisions made in this episode

    @property
    def phase(self) -> Phase:
        """The phase of the next step."""
        return Phase.EXPLORE if self.step < self.explore_steps else Phase.GO

    @property
    def switches_next(self) -> bool:
        """Whether the next step is the last one of the explore phase."""
        return self.step == self.explore_steps - 1

    def begin_episode(self) -> Phase:
        """Draw k; returns the phase of the first step (GO when k = 0)."""
        longest = self._max_explore_steps
        self.explore_steps = self._rng.randint(0, longest() if callable(longest) else longest)
        self.step = 0
        return self.phase

    def advance(self) -> bool:
        """Count one decision; True if it was the last one of the explore phase."""
        self.step += 1
        return self.step == self.explore_steps
