"""What is known exactly where all states can be listed: optimal values and actions, and how near an agent is to them.

The optimal value of a state that is n steps from the goal is gamma^(n - 1), since the step that reaches the goal earns
1 at once; n is the length of the shortest path (breadth-first, backwards from the goal). An action is optimal if it
leads one step nearer.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sf_explore_go.worlds.states import GOAL, StateTable

UNREACHABLE = np.iinfo(np.int64).max
AT_ONCE = 1024  # states per forward pass

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Judgement:
    """Means over all states."""

    value_error: float  # |V - V*|
    optimal: float  # share of states whose likeliest action is an optimal one


class Judge(Protocol):
    """An agent that can say of observations [n, ...] what they are worth and what it would do."""

    def judge(self, observations: NDArray[Any]) -> tuple[Floats, Integers]:
        """Values [n] and likeliest actions [n]."""
        ...


def shortest_paths(next_state: Integers) -> Integers:
    """[states, actions] -> [states]: steps to the goal; UNREACHABLE where there is no way."""
    steps = np.full(len(next_state), UNREACHABLE, np.int64)
    near = (next_state == GOAL).any(axis=1)
    length = 1
    while near.any():
        steps[near] = length
        length += 1
        # states that are not settled yet and have an action into the last ones
        leads = np.where(next_state >= 0, near[next_state], False)
        near = leads.any(axis=1) & (steps == UNREACHABLE)
    return steps


def optimal_values(steps: Integers, gamma: float) -> Floats:
    return np.where(steps == UNREACHABLE, 0.0, gamma ** (np.minimum(steps, 10_000) - 1.0))


def optimal_actions(next_state: Integers, steps: Integers) -> Bools:
    """[states, actions]: whether the action leads one step nearer to the goal; none does where there is no way."""
    then = np.where(next_state == GOAL, 0, np.where(next_state >= 0, steps[next_state], UNREACHABLE))
    return (then == steps[:, None] - 1) & (steps != UNREACHABLE)[:, None]


def judge(agent: Judge, table: StateTable, gamma: float) -> Judgement:
    """Compare an agent with the optimum in every state of the table."""
    parts = np.array_split(np.arange(table.states), -(-table.states // AT_ONCE))
    judged = [agent.judge(table.observe(part)) for part in parts]
    values, actions = (np.concatenate(some) for some in zip(*judged, strict=True))
    steps = shortest_paths(table.next_state)
    right = optimal_actions(table.next_state, steps)[np.arange(table.states), actions]
    return Judgement(float(np.abs(values - optimal_values(steps, gamma)).mean()), float(right.mean()))
