"""Exact values: shortest paths against value iteration, and the metrics of a tabular agent against those by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sf_explore_go.evaluation.exact import judge, optimal_actions, optimal_values, shortest_paths
from sf_explore_go.worlds.grid.rooms import draw_contexts, table_of
from sf_explore_go.worlds.states import GOAL, StateTable

GAMMA = 0.99


def value_iteration(next_state: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Values [states] and action values [states, actions], by Bellman's equation alone."""
    values = np.zeros(len(next_state))
    while True:
        action_values = np.where(next_state == GOAL, 1.0, gamma * values[next_state])
        following = action_values.max(axis=1)
        if np.abs(following - values).max() < 1e-13:
            return following, action_values
        values = following


@pytest.mark.parametrize(("size", "count"), [(9, 40), (19, 4)])
def test_optimal_values_and_actions_are_those_of_value_iteration(size: int, count: int) -> None:
    table = table_of(draw_contexts("train", size, count, 1, seed=8), size)
    values, action_values = value_iteration(table.next_state, GAMMA)
    steps = shortest_paths(table.next_state)
    np.testing.assert_allclose(optimal_values(steps, GAMMA), values, atol=1e-11)
    best = np.isclose(action_values, values[:, None], atol=1e-9)
    np.testing.assert_array_equal(optimal_actions(table.next_state, steps), best)


# A corridor of four states: 0 <-> 1 <-> 2 -> goal, and 3, from which there is no way. Actions: left, right.
CORRIDOR = np.array([[0, 1], [0, 2], [1, GOAL], [3, 3]])


def test_a_hand_made_corridor() -> None:
    steps = shortest_paths(CORRIDOR)
    assert steps[:3].tolist() == [3, 2, 1]
    np.testing.assert_allclose(optimal_values(steps, 0.5), [0.25, 0.5, 1.0, 0.0])
    assert optimal_actions(CORRIDOR, steps).tolist() == [[False, True]] * 3 + [[False, False]]


class Tabular:
    """An agent whose values and actions are written down; it sees the number of the state."""

    def __init__(self, values: list[float], actions: list[int]) -> None:
        self.values, self.actions = np.array(values), np.array(actions)

    def judge(self, observations: np.ndarray) -> Any:
        states = observations[:, 0]
        return self.values[states], self.actions[states]


def test_the_metrics_of_a_tabular_agent() -> None:
    places = np.array([(0, 0, column) for column in range(4)])
    table = StateTable(CORRIDOR, lambda states: states[:, None].astype(np.uint8), places, np.array([[0, 3]]), (1, 4))
    found = judge(Tabular([0.25, 0.75, 0.5, 0.5], [1, 0, 1, 1]), table, gamma=0.5)
    assert found.value_error == pytest.approx((0 + 0.25 + 0.5 + 0.5) / 4)
    assert found.optimal == 0.5  # in states 0 and 2


def test_an_agent_with_the_optimal_values_has_no_error() -> None:
    """Through the same code, over many states at once, so that parts are put together in their order."""
    table = table_of(draw_contexts("train", 9, 40, 1, seed=8), 9)
    values, action_values = value_iteration(table.next_state, GAMMA)
    numbered = replace(table, observe=lambda states: states[:, None])
    found = judge(Tabular(values.tolist(), action_values.argmax(axis=1).tolist()), numbered, GAMMA)
    assert found.value_error < 1e-11
    assert found.optimal == 1.0
