"""The replay buffer of a world whose states can be listed: it keeps numbers of states, not pictures.

An entry takes 16 bytes, so the paper's 500 000 fit into every checkpoint. A reward need not be kept: it is 1 where the
next state is the goal. A time-out leaves no trace here, since the next state goes on.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sf_explore_go.worlds.states import GOAL

COLUMNS = ("state", "action", "next_state", "bonus")


class Transitions(NamedTuple):
    """All [n]."""

    state: NDArray[Any]  # int32, as the next two
    action: NDArray[Any]
    next_state: NDArray[Any]  # GOAL: terminal
    bonus: NDArray[Any]  # float32, intrinsic reward, as it was when the step was made

    @property
    def reward(self) -> NDArray[np.float32]:
        return (self.next_state == GOAL).astype(np.float32)

    @property
    def terminal(self) -> NDArray[np.bool_]:
        return self.next_state == GOAL

    def where(self, chosen: NDArray[Any]) -> "Transitions":
        return Transitions(*(column[chosen] for column in self))


class Replay:
    """A ring: the newest entries replace the oldest."""

    def __init__(self, capacity: int) -> None:
        self._columns = Transitions(
            np.zeros(capacity, np.int32),
            np.zeros(capacity, np.int32),
            np.zeros(capacity, np.int32),
            np.zeros(capacity, np.float32),
        )
        self.capacity, self._next, self._size = capacity, 0, 0

    def __len__(self) -> int:
        return self._size

    @property
    def entries(self) -> Transitions:
        """All of them, in no particular order."""
        return Transitions(*(column[: self._size] for column in self._columns))

    def add(self, new: Transitions) -> None:
        count = len(new.state)
        places = (self._next + np.arange(count)) % self.capacity
        for column, values in zip(self._columns, new, strict=True):
            column[places] = values
        self._next = (self._next + count) % self.capacity
        self._size = min(self._size + count, self.capacity)

    def sample(self, count: int, rng: np.random.Generator) -> Transitions:
        """Uniformly, with replacement."""
        return self._columns.where(rng.integers(self._size, size=count))

    def distinct_states(self) -> int:
        return len(np.unique(self.entries.state))

    def state_dict(self) -> dict[str, Any]:
        columns = {name: torch.from_numpy(getattr(self.entries, name).copy()) for name in COLUMNS}
        return {"columns": columns, "next": self._next}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        columns = {name: saved["columns"][name].numpy() for name in COLUMNS}
        self._size, self._next = len(columns["state"]), saved["next"]
        for name, values in columns.items():
            getattr(self._columns, name)[: self._size] = values
