"""Many environments at once in a world whose states can be listed: steps are looked up in the world's table.

The world's own environments are only reset, never stepped, so contexts come in the same order as in a training with
APPO; k comes from the same streams too (`phases/schedule.py`). Nothing else is random, so a resumed run gets every
stream back by resetting as often as before.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sf_explore_go.core.seeding import env_seed
from sf_explore_go.phases.schedule import PhaseSchedule
from sf_explore_go.worlds.base import TRAIN
from sf_explore_go.worlds.registry import world_of
from sf_explore_go.worlds.states import GOAL, StateTable

Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Steps:
    """One step of every environment; all [n]."""

    state: Integers
    action: Integers
    next_state: Integers  # GOAL where the episode ended there; after a time-out it is the state that was reached
    exploring: Bools  # the step belongs to the explore phase
    number: Integers  # of the step in its episode, from 0
    ended: Bools  # by the goal or by the time limit

    @property
    def reward(self) -> NDArray[np.float32]:
        return (self.next_state == GOAL).astype(np.float32)


class TableEnvs:
    """`num_envs` environments of the training split. The time limit covers both phases."""

    def __init__(self, cfg: Any, table: StateTable, num_envs: int) -> None:
        world = world_of(cfg.env)
        limit = world.decisions_per_episode(cfg)
        assert limit is not None, "checked with the flags"
        self.limit, self._next_state, self._key = limit, table.next_state, world.state_key
        self._envs = [world.make_env(TRAIN, cfg) for _ in range(num_envs)]
        self.observation_space = self._envs[0].observation_space
        self._seeds = [env_seed(cfg.seed, "env", index) for index in range(num_envs)]
        self.schedules = [
            PhaseSchedule(cfg.max_pure_expl_steps, env_seed(cfg.seed, "phase", index)) for index in range(num_envs)
        ]
        self.state = np.zeros(num_envs, np.int64)
        self.number = np.zeros(num_envs, np.int64)  # of the next step in its episode
        self.explore_steps = np.zeros(num_envs, np.int64)  # the k of each episode
        self.episodes = np.zeros(num_envs, np.int64)  # begun so far

    def __len__(self) -> int:
        return len(self._envs)

    @property
    def exploring(self) -> Bools:
        """Whose next step belongs to the explore phase."""
        return self.number < self.explore_steps

    def begin(self) -> None:
        for index in range(len(self)):
            self.begin_episode(index)

    def begin_episode(self, index: int) -> None:
        first = self.episodes[index] == 0
        _, info = self._envs[index].reset(seed=self._seeds[index] if first else None)
        self.schedules[index].begin_episode()
        self.state[index], self.number[index] = self._key(info), 0
        self.explore_steps[index] = self.schedules[index].explore_steps
        self.episodes[index] += 1

    def step(self, actions: Integers) -> Steps:
        """Take a step everywhere. Environments whose episode ended stay there until `begin_episode`."""
        exploring, number, state = self.exploring, self.number.copy(), self.state.copy()
        reached = self._next_state[state, actions]
        self.number += 1
        ended = (reached == GOAL) | (self.number >= self.limit)
        self.state = np.where(reached == GOAL, state, reached)
        return Steps(state, actions, reached, exploring, number, ended)

    def state_dict(self) -> dict[str, Tensor]:
        return {name: torch.from_numpy(getattr(self, name).copy()) for name in ("state", "number", "episodes")}

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        for index, episodes in enumerate(saved["episodes"].tolist()):
            for _ in range(episodes):
                self.begin_episode(index)
        self.state, self.number = saved["state"].numpy().copy(), saved["number"].numpy().copy()

    def close(self) -> None:
        for env in self._envs:
            env.close()
