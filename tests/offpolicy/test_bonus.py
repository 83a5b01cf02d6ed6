"""The count bonus against the explorer's own, step by step."""

from typing import Any

import numpy as np
import torch

from sf_explore_go.explorers.counts import CountsReward, Rule
from sf_explore_go.explorers.intrinsic import ExploreBatch
from sf_explore_go.offpolicy.bonus import CountBonus
from sf_explore_go.offpolicy.environments import Steps

PAPERS = Rule("actions", 0.5, True, True)


def steps_of(state: list[int], action: list[int], number: list[int]) -> Steps:
    as_array = [np.array(values) for values in (state, action, number)]
    nothing = np.zeros(len(state), bool)
    return Steps(as_array[0], as_array[1], as_array[0], nothing, as_array[2], nothing)


def test_by_hand() -> None:
    bonus = CountBonus(PAPERS, 1.0, states=4, actions=2, num_envs=2, limit=3)
    first = bonus.count(steps_of([0, 0], [1, 1], [0, 0]))  # the same pair in both: the second one finds it counted
    np.testing.assert_allclose(first, [1, 1 / np.sqrt(2)])
    second = bonus.count(steps_of([0, 1], [1, 1], [1, 1]))
    np.testing.assert_allclose(second, [0, 1])  # not new to its episode; new at all
    third = bonus.count(steps_of([0, 0], [1, 1], [0, 2]))
    np.testing.assert_allclose(third, [1 / np.sqrt(4), 0])  # a new episode
    np.testing.assert_allclose(bonus.would_earn(np.array([0, 3]), np.array([1, 0])), [1 / np.sqrt(6), 1])
    assert bonus.ever.sum() == 6


def test_it_is_the_bonus_of_the_counts_explorer() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = CountBonus(PAPERS, 0.3, 5, 3, 4, 10), CountsReward(PAPERS, 0.3)
    for t in range(50):
        state, action = rng.integers(5, size=4), rng.integers(3, size=4)
        mine = ours.count(steps_of(state.tolist(), action.tolist(), [t % 10] * 4))
        column: dict[str, Any] = {name: torch.zeros(4, 1) for name in ExploreBatch.__dataclass_fields__}
        column |= {"env": torch.arange(4)[:, None], "phase": torch.full((4, 1), t // 10)}
        column |= {"state": torch.from_numpy(state)[:, None], "next_state": torch.from_numpy(state)[:, None]}
        column |= {"actions": torch.from_numpy(action)[:, None]}
        np.testing.assert_allclose(mine, theirs.rewards(ExploreBatch(**column))[:, 0].numpy(), rtol=1e-6)
