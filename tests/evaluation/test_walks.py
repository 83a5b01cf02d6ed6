"""Explore phases in many environments: each is what it would be alone."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import pytest

from sf_explore_go.core.errors import EnvironmentFailed
from sf_explore_go.evaluation.explore import ByItself, Nobody
from sf_explore_go.evaluation.walks import play_phases
from sf_explore_go.explorers.random import RandomExplorer


class Line:
    """A walk along a line, to the left and the right, from a start that the seed chooses. It ends at 3; its engine dies
    at the third decision of the first `deaths` phases that get so far."""

    action_space = gym.spaces.Discrete(2)

    def __init__(self, deaths: int = 0) -> None:
        self.deaths = deaths

    def reset(self, seed: int) -> tuple[list, list]:
        self.x, self.decisions = seed % 5 - 2, 0
        return [{"obs": self.x}], [{"position": (self.x, 0)}]

    def step(self, actions: list) -> tuple[list, list, list, list, list]:
        self.x += 2 * int(actions[0]) - 1
        self.decisions += 1
        died = self.decisions == 3 and self.deaths > 0
        self.deaths -= died
        info: dict[str, Any] = {"position": (self.x, 0)} | ({"engine_failed": True} if died else {})
        return [{"obs": self.x}], [0.0], [self.x == 3], [died], [info]


def walks_of(envs: Sequence[Any], threads: int = 1) -> list:
    explorer = ByItself(RandomExplorer, Line.action_space, None)
    return play_phases(explorer, envs, phases=40, steps=12, seed=3, threads=threads)


def test_a_phase_is_the_same_whoever_plays_beside_it() -> None:
    alone = walks_of([Line()])
    assert len(alone) == 40
    assert len({tuple(walk.positions) for walk in alone}) > 30
    assert any(walk.ended for walk in alone)
    assert all(len(walk.positions) == 13 or walk.ended for walk in alone)
    for count, threads in ((2, 1), (7, 1), (9, 3), (50, 2)):
        assert walks_of([Line() for _ in range(count)], threads) == alone


def test_phases_without_steps() -> None:
    walks = play_phases(Nobody(), [Line(), Line()], phases=9, steps=0, seed=3)
    assert [walk.positions[0] for walk in walks] == [walk.positions[0] for walk in walks_of([Line()])[:9]]
    assert all(len(walk.positions) == 1 and not walk.ended for walk in walks)


def test_a_phase_whose_engine_dies_is_played_again() -> None:
    assert walks_of([Line(deaths=2), Line()]) == walks_of([Line()])
    with pytest.raises(EnvironmentFailed, match="died in each of 3 attempts at phase 0; nothing was counted"):
        walks_of([Line(deaths=99)])
