"""The intrinsic reward of U: the paper's count bonus for pairs of a state and an action (`explorers/counts.py`).

There is one set of counts, of all environments and of both phases; an episode is that of the environment, so what the
explorer has done in it is not new to the agent. The rule is the one that the `--counts_*` flags describe: in the paper
1 / sqrt(N) the first time in an episode, else 0.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sf_explore_go.explorers.counts import Rule
from sf_explore_go.offpolicy.environments import Integers, Steps

NOTHING = -1


class CountBonus:
    """ever: int64 [states x actions]; done: int64 [environments, steps of an episode], the pairs of its episode."""

    def __init__(self, rule: Rule, coeff: float, states: int, actions: int, num_envs: int, limit: int) -> None:
        self._rule, self._coeff, self._actions = rule, coeff, actions
        self.ever = np.zeros(states * actions, np.int64)
        self.done = np.full((num_envs, limit), NOTHING, np.int64)

    def count(self, steps: Steps) -> NDArray[np.float32]:
        """Count one step of every environment; what each earns, [n]."""
        pairs = steps.state * self._actions + steps.action
        self.done[steps.number == 0] = NOTHING
        in_episode = (self.done == pairs[:, None]).sum(axis=1) + 1
        self.done[np.arange(len(pairs)), steps.number] = pairs
        before_me = np.tril(pairs[:, None] == pairs[None, :]).sum(axis=1)  # in this step, in the order of environments
        ever = self.ever[pairs] + before_me
        np.add.at(self.ever, pairs, 1)
        return self._earn(in_episode, ever)

    def would_earn(self, state: Integers, action: Integers) -> NDArray[np.float32]:
        """What a pair would earn now, in an episode to which it is new; nothing is counted."""
        ever = self.ever[state * self._actions + action] + 1
        return self._earn(np.ones_like(ever), ever)

    def _earn(self, in_episode: Integers, ever: Integers) -> NDArray[np.float32]:
        reward = self._rule.reward(torch.from_numpy(in_episode), torch.from_numpy(ever))
        return (self._coeff * reward).numpy()

    def state_dict(self) -> dict[str, Tensor]:
        return {"ever": torch.from_numpy(self.ever.copy()), "done": torch.from_numpy(self.done.copy())}

    def load_state_dict(self, saved: dict[str, Tensor]) -> None:
        self.ever, self.done = saved["ever"].numpy().copy(), saved["done"].numpy().copy()
