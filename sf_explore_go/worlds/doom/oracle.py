"""The explorer that knows the labyrinth and how the player moves: the ceiling for those that do not.

It plans some decisions ahead by a beam search through the engine's own arithmetic (motion.py), for as many new cells as
it can. What a plan is worth at its end is also a matter of how far the nearest cell that is still new is from there,
and whether the player looks that way. Where no plan leads to a new cell, it walks to the nearest one (ways.py). It
stays away from the goal, which would end the episode.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.doom.geometry import free_cells, make_grid, scenario_geometry
from sf_explore_go.worlds.doom.motion import (
    ACTIONS,
    BACKWARD,
    FORWARD,
    SQUARE,
    TURN,
    TURN_LEFT,
    TURN_RIGHT,
    Motion,
    Players,
    one_player,
)
from sf_explore_go.worlds.doom.scenario import Scenario
from sf_explore_go.worlds.doom.ways import Ways, find_ways

DEPTH = 8  # decisions of a plan
WIDTH = 48  # plans that are kept from one decision to the next
FOLLOWED = 4  # decisions of a plan that are made before there is a new one
PER_UNIT, PER_DEGREE, PER_SPEED = 0.008, 0.01, 0.05  # new cells that way, turning and velocity are worth
NOISE = 0.02  # new cells; tours from the same start differ
ALIKE, ALIKE_ANGLE = 8.0, 15.0  # map units and degrees: of plans that end so close with as many cells, one is kept
KIND = np.array([1.0, 1e4, 1e8, 1e11])  # makes one number of place, angle and gain
REACH = 38.0  # map units, along each axis: from so far away the vest is taken
TAKES_VEST = 10.0  # new cells that it costs
OFF = 3.0  # map units from where it should be: the player has met something that the plan did not know of
PATIENCE = 12  # decisions without a new cell, after which the nearest one is given up


class Oracle:
    """Chooses the actions of one explore phase after another, from `info`."""

    def __init__(self, scenario: Scenario, tics: int) -> None:
        self._scenario, self._tics = scenario, tics
        self._motion = Motion(squares_of(scenario), tics)

    def begin(self, info: dict[str, Any], seed: int) -> None:
        goal = self._scenario.point(info["goal"])
        self._search = Search(self._motion, ways_round(self._scenario, goal.id), (goal.x, goal.y), seed)
        x, y = info["position"]
        self._me = one_player(x, y, info["angle"])
        cell = self._search.cells_of(self._me)[0]
        self._seen = ~np.isfinite(self._search.ways.lengths[cell])  # what cannot be reached is no aim
        self._plan: list[int] = []
        self._waited = 0

    def act(self, info: dict[str, Any]) -> int:
        self._look(info)
        if not self._plan:
            self._plan = self._search.plan(self._me, self._seen) or [self._walk()]
        action = self._plan.pop(0)
        self._me = self._motion.after(self._me, np.array([action]))
        return action

    def _look(self, info: dict[str, Any]) -> None:
        """Where the decision has really led, and which cell that is."""
        x, y = np.array(info["position"])[:, None]
        near_x, near_y = np.abs(x - self._me.x) < OFF, np.abs(y - self._me.y) < OFF
        if not (near_x & near_y).all():
            self._plan = []
        vx, vy, angle = self._me.vx * near_x, self._me.vy * near_y, np.array([info["angle"]])
        self._me = replace(self._me, x=x, y=y, vx=vx, vy=vy, angle=angle)
        cell = self._search.cells_of(self._me)[0]
        self._waited = self._waited + 1 if self._seen[cell] else 0
        self._seen[cell] = True
        if self._waited > PATIENCE:
            self._seen[self._search.nearest(cell, self._seen)] = True
            self._waited = 0

    def _walk(self) -> int:
        """One decision on the way to the nearest new cell, forwards or backwards."""
        turn = float(self._search.turn_to_nearest(self._me, self._seen[None])[0])
        tolerance = TURN * self._tics / 2
        if abs(turn) <= tolerance:
            return FORWARD
        if abs(turn) >= 180 - tolerance:
            return BACKWARD
        return TURN_LEFT if (turn > 0) == (abs(turn) <= 90) else TURN_RIGHT


@dataclass(frozen=True)
class Beam:
    """N plans: where they lead, what they see ([N, C + 1]), how many new cells that are, and their actions."""

    players: Players
    seen: NDArray[np.bool_]
    gains: NDArray[np.float64]
    actions: NDArray[np.int64]  # [N, decisions so far]


class Search:
    """Plans of one phase."""

    def __init__(self, motion: Motion, ways: Ways, vest: tuple[float, float], seed: int) -> None:
        self._motion, self.ways, self._vest = motion, ways, vest
        self._rng = np.random.default_rng(seed)

    def plan(self, me: Players, seen: NDArray[np.bool_]) -> list[int]:
        """The next decisions; none if no new cell is within reach."""
        beam = Beam(me, seen[None], np.zeros(1), np.zeros((1, 0), np.int64))
        for _ in range(DEPTH):
            beam, scores = self._deepen(beam)
        best = scores.argmax()
        return beam.actions[best, :FOLLOWED].tolist() if beam.gains[best] > 0 else []

    def _deepen(self, beam: Beam) -> tuple[Beam, NDArray[np.float64]]:
        """One more decision for each plan, whatever it may be; the best of these plans, and their scores."""
        parents = np.repeat(np.arange(len(beam.gains)), len(ACTIONS))
        actions = np.tile(np.array(ACTIONS), len(beam.gains))
        before = beam.players.pick(parents)
        players = self._motion.after(before, actions)
        cells, seen = self.cells_of(players), beam.seen[parents]
        each = np.arange(len(cells))
        gains = beam.gains[parents] + ~seen[each, cells] - TAKES_VEST * self._takes_vest(before, players)
        seen[each, cells] = True
        scores = gains + self._prospects(players, cells, seen)
        kept = best_of_each_kind(players, gains, scores)
        paths = np.concatenate([beam.actions[parents[kept]], actions[kept, None]], axis=1)
        return Beam(players.pick(kept), seen[kept], gains[kept], paths), scores[kept]

    def _prospects(self, players: Players, cells: NDArray[np.int64], seen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """What the ends of plans are worth beyond the cells that they have seen."""
        nearest = self.nearest(cells, seen)
        turn = np.abs(self._turn(players, cells, nearest))
        way, turn = self.ways.lengths[cells, nearest], np.minimum(turn, 180 - turn)  # backwards is as good
        speed = np.hypot(players.vx, players.vy)
        return (
            PER_SPEED * speed - PER_UNIT * np.minimum(way, 1e4) - PER_DEGREE * turn + NOISE * self._rng.random(len(way))
        )

    def nearest(self, cells: Any, seen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The nearest new cells: [N], [N, C + 1] -> [N]."""
        return np.where(seen, np.float32(np.inf), self.ways.lengths[cells]).argmin(axis=-1)

    def turn_to_nearest(self, players: Players, seen: NDArray[np.bool_]) -> NDArray[np.float64]:
        cells = self.cells_of(players)
        return self._turn(players, cells, self.nearest(cells, seen))

    def _turn(self, players: Players, cells: NDArray[np.int64], to: NDArray[np.int64]) -> NDArray[np.float64]:
        """Degrees to the left, to look two cells ahead on the way."""
        ahead = self.ways.centres[self.ways.following[self.ways.following[cells, to], to]]
        wanted = np.degrees(np.arctan2(ahead[:, 1] - players.y, ahead[:, 0] - players.x))
        return (wanted - players.angle + 180) % 360 - 180

    def _takes_vest(self, before: Players, after: Players) -> NDArray[np.bool_]:
        """Whether the way between the two, about straight, comes too close."""
        close = np.zeros(len(after.x), np.bool_)
        for share in (1 / 3, 2 / 3, 1.0):
            x, y = before.x + share * (after.x - before.x), before.y + share * (after.y - before.y)
            close |= (np.abs(x - self._vest[0]) < REACH) & (np.abs(y - self._vest[1]) < REACH)
        return close

    def cells_of(self, players: Players) -> NDArray[np.int64]:
        """The numbers of the players' cells."""
        return self.ways.cells_at(players.x, players.y)


def best_of_each_kind(players: Players, gains: NDArray[Any], scores: NDArray[Any]) -> NDArray[np.int64]:
    """The rows of the best plans; of those that are alike, the best one."""
    kinds = np.stack([players.x / ALIKE, players.y / ALIKE, players.angle / ALIKE_ANGLE, gains]).round()
    order = np.argsort(-scores, kind="stable")
    _, first = np.unique((KIND @ kinds)[order], return_index=True)  # the first of a kind is its best
    return order[np.sort(first)[:WIDTH]]


@cache
def squares_of(scenario: Scenario) -> CellGrid:
    """Where a player's middle can be; since all walls lie on such lines, exactly."""
    return make_grid(scenario_geometry(scenario), SQUARE)


@cache
def ways_round(scenario: Scenario, goal: int) -> Ways:
    """The ways that do not take the vest."""
    squares, vest = squares_of(scenario), scenario.point(goal)
    rows, columns = np.indices(squares.free.shape)
    x, y = (
        indices * SQUARE + SQUARE / 2 + start for indices, start in zip((columns, rows), squares.origin, strict=True)
    )
    takes = (np.abs(x - vest.x) < REACH + SQUARE / 2) & (np.abs(y - vest.y) < REACH + SQUARE / 2)
    return find_ways(free_cells(scenario), replace(squares, free=squares.free & ~takes))
