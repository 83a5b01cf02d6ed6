"""How the player moves: the engine's own arithmetic, for many imagined players at once.

In each tic a held button adds THRUST to the velocity, the player moves, and friction takes its share, so one that turns
or does nothing goes on sliding. Turning is slow at first. At a wall the player stops and slides along it with what is
left of the tic. Half of the predictions of a decision are exact to 0.02 map units, nine in ten to 2; the others are
rubs against corners.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sf_explore_go.worlds.cells import CellGrid

IDLE, TURN_LEFT, TURN_RIGHT, FORWARD, BACKWARD = ACTIONS = range(5)
THRUST = 0.78125  # map units per tic, gained in each tic
FRICTION = 0.90625  # what a tic leaves of the velocity
TURN, SLOW_TURN, SLOW_TICS = 3.515625, 1.7578125, 5  # degrees per tic; slow in the first tics of a turn
PULL_BACK = 1 / 32  # of a tic's way: so far from a wall the engine stops
SQUARE = 16.0  # walls of the labyrinth lie on lines so far apart, and the player is as wide each way

TURNS = np.array([0.0, 1.0, -1.0, 0.0, 0.0])  # by action
THRUSTS = np.array([0.0, 0.0, 0.0, THRUST, -THRUST])

Floats = NDArray[np.float64]
Course = tuple[Floats, Floats, Floats, Floats]  # x, y and the velocity along each


@dataclass(frozen=True)
class Players:
    """N players: map units, map units per tic, degrees, and for how many tics they have been turning; [N] each."""

    x: Floats
    y: Floats
    vx: Floats
    vy: Floats
    angle: Floats
    turning: Floats

    def pick(self, rows: NDArray[Any]) -> "Players":
        return Players(*(values[rows] for values in (self.x, self.y, self.vx, self.vy, self.angle, self.turning)))


def one_player(x: float, y: float, angle: float) -> Players:
    """Standing still."""
    return Players(*(np.array([value]) for value in (x, y, 0.0, 0.0, angle, 0.0)))


class Motion:
    """Decisions of `tics` tics; `free` are the squares between the walls in which a player's middle can be."""

    def __init__(self, free: CellGrid, tics: int) -> None:
        self._free, self._tics = free, tics

    def after(self, players: Players, actions: NDArray[np.int64]) -> Players:
        """The players after one decision each."""
        x, y, vx, vy, angle, turning = (getattr(players, name) for name in Players.__dataclass_fields__)
        radians, thrust, turns = np.radians(angle), THRUSTS[actions], TURNS[actions]
        ax, ay = thrust * np.cos(radians), thrust * np.sin(radians)
        for _ in range(self._tics):
            x, y, vx, vy = self._tic(x, y, vx + ax, vy + ay)
            vx, vy = vx * FRICTION, vy * FRICTION
        slow = np.clip(SLOW_TICS - turning, 0, self._tics)
        angle = (angle + turns * (slow * SLOW_TURN + (self._tics - slow) * TURN)) % 360.0
        return Players(x, y, vx, vy, angle, np.where(turns != 0, turning + self._tics, 0.0))

    def _tic(self, x: Floats, y: Floats, vx: Floats, vy: Floats) -> Course:
        new_x, new_y = x + vx, y + vy
        hits = np.flatnonzero(~self._is_free(new_x, new_y))
        if len(hits):
            new_x[hits], new_y[hits], vx[hits], vy[hits] = self._slide(x[hits], y[hits], vx[hits], vy[hits])
        return new_x, new_y, vx, vy

    def _slide(self, x: Floats, y: Floats, vx: Floats, vy: Floats) -> Course:
        """Up to the wall, then along it with what is left of the tic; a corner stops like a wall to the side."""
        stops_x = ~self._is_free(x + vx, y)
        stops_y = ~self._is_free(x, y + vy) | ~stops_x
        until_x = np.where(stops_x, self._until_line(x, vx, 0), 1.0)
        until_y = np.where(stops_y, self._until_line(y, vy, 1), 1.0)
        short_x, short_y = np.maximum(until_x - PULL_BACK, 0.0), np.maximum(until_y - PULL_BACK, 0.0)
        new_x = x + vx * np.where(stops_x, short_x, short_y + 1.0 - until_y)
        new_y = y + vy * np.where(stops_y, short_y, short_x + 1.0 - until_x)
        return new_x, new_y, np.where(stops_x, 0.0, vx * (1.0 - until_y)), np.where(stops_y, 0.0, vy * (1.0 - until_x))

    def _until_line(self, place: Floats, velocity: Floats, axis: int) -> Floats:
        """The share of this tic's way that leads to the next line between squares."""
        squares = (place - self._free.origin[axis]) / self._free.cell
        line = np.where(velocity > 0, np.ceil(squares), np.floor(squares))
        return np.clip((line - squares) * self._free.cell / np.where(velocity == 0, 1.0, velocity), 0.0, 1.0)

    def _is_free(self, x: Floats, y: Floats) -> NDArray[np.bool_]:
        grid = self._free
        rows = ((y - grid.origin[1]) / grid.cell).astype(np.int64)
        columns = ((x - grid.origin[0]) / grid.cell).astype(np.int64)
        return grid.free[rows, columns]
