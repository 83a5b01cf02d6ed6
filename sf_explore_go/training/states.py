"""Which states a training has met, where they can be listed: one shared table that all rollout workers write to.

It is written where steps are made, like the frames (accounting.py), so nothing is lost or counted twice: a pair of
state and action is marked when it is met in either phase, a state is stamped when the agent meets it. Stamps are the
run's go steps, by the pace of the environments that make them; in one process they are exact.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sf_explore_go.phases.schedule import Phase
from sf_explore_go.worlds.base import TRAIN
from sf_explore_go.worlds.registry import world_of

STATES = "states"  # in a checkpoint


@dataclass(frozen=True)
class Met:
    """Shares of what the training contexts hold."""

    explored: float  # pairs of state and action, met so far in either phase
    recent: float  # states among the agent's last samples


class StateMemory:
    """met: uint8 [states, actions]; last: int64 [states], the go step of the last visit, 0 for none; starts: int64
    [states], how many go phases began there."""

    def __init__(self, states: int, actions: int, window: int, *, share: bool) -> None:
        self.met, self.last = torch.zeros((states, actions), dtype=torch.uint8), torch.zeros(states, dtype=torch.int64)
        self.starts = torch.zeros(states, dtype=torch.int64)
        self.window = window
        if share:
            for tensor in (self.met, self.last, self.starts):
                tensor.share_memory_()

    def recorder(self, groups: int, begun_at: int) -> "StateRecorder":
        return StateRecorder(self, groups, begun_at)

    def share(self) -> Met:
        begin = int(self.last.max()) - self.window
        recent = (self.last > max(begin, 0)).double().mean()
        return Met(float(self.met.double().mean()), float(recent))

    def state_dict(self) -> dict[str, Tensor]:
        return {
            "met": torch.from_numpy(np.packbits(self.met.numpy())),
            "last": self.last.clone(),
            "starts": self.starts.clone(),
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        bits = np.unpackbits(state["met"].cpu().numpy(), count=self.met.numel())
        self.met.copy_(torch.from_numpy(bits).view_as(self.met))
        self.last.copy_(state["last"])
        self.starts.copy_(state["starts"])


class StateRecorder:
    """The pen of one group of environments."""

    def __init__(self, memory: StateMemory, groups: int, begun_at: int) -> None:
        self._met, self._last, self._starts = memory.met.numpy(), memory.last.numpy(), memory.starts.numpy()
        self._pace, self._now = groups, begun_at

    def begin_go(self, state: int) -> None:
        self._starts[state] += 1

    def note(self, state: int, action: int, phase: Phase) -> None:
        self._met[state, action] = 1
        if phase is Phase.GO:
            self._now += self._pace
            self._last[state] = self._now


def make_memory(cfg: Any) -> StateMemory | None:
    """For a world whose states can be listed; None for others."""
    table = world_of(cfg.env).state_table(cfg, TRAIN)
    if table is None:
        return None
    return StateMemory(table.states, table.actions, cfg.recent_steps, share=not cfg.serial_mode)
