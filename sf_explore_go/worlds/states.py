"""Worlds whose states can be listed: every state, where each action leads, and what it looks like."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

GOAL = -1  # in place of a next state: the action reaches the goal and ends the episode


@dataclass(frozen=True)
class StateTable:
    """All states that the contexts of a split can reach, in the order of their keys: state i has the key i.

    Reaching the goal is rewarded with 1, everything else with 0, and nothing is left to chance.
    """

    next_state: NDArray[np.int64]  # [states, actions]; GOAL where the action ends the episode
    observe: Callable[[NDArray[np.int64]], NDArray[Any]]  # states [n] -> observations [n, ...]
    places: NDArray[np.int64]  # [states, 3]: context, row and column on its map, for pictures
    goals: NDArray[np.int64]  # [contexts, 2]: row and column
    shape: tuple[int, int]  # rows and columns of a map

    @property
    def states(self) -> int:
        return self.next_state.shape[0]

    @property
    def actions(self) -> int:
        return self.next_state.shape[1]
