"""An agent that knows the map: walks from anywhere to a goal by the shortest way, one action at a time."""

from collections import deque
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.doom.geometry import make_grid, scenario_geometry
from sf_explore_go.worlds.doom.scenario import Scenario, load_scenario

IDLE, TURN_LEFT, TURN_RIGHT, FORWARD, BACKWARD = range(5)
CELL = 8.0
CLEARANCE = 20.0  # kept from walls; the player itself is 16 wide each way
LOOK_AHEAD = 30  # cells
TOLERANCE = 8.0  # degrees; a decision turns by up to 14

Cell = tuple[int, int]


class Navigator:
    """Follows the distances to its goal downhill, and looks ahead as far as the way is straight and free."""

    def __init__(self, goal: int, scenario: str = "my_way_home") -> None:
        self.scenario = load_scenario(scenario)
        self.grid = walk_grid(self.scenario)
        self.distances = distances_to(self.scenario, goal)

    def action(self, position: tuple[float, float], angle: float) -> int:
        target = self._target(position)
        wanted = np.degrees(np.arctan2(target[1] - position[1], target[0] - position[0]))
        turn = (wanted - angle + 180) % 360 - 180
        if abs(turn) > TOLERANCE:
            return TURN_LEFT if turn > 0 else TURN_RIGHT
        return FORWARD

    def _target(self, position: tuple[float, float]) -> tuple[float, float]:
        cell = nearest_free(self.grid, position)
        target = _centre(self.grid, cell)
        for _ in range(LOOK_AHEAD):
            cell = min(_neighbours(self.grid, cell), key=lambda neighbour: self.distances[neighbour])
            if not self._sees(position, _centre(self.grid, cell)):
                break
            target = _centre(self.grid, cell)
        return target

    def _sees(self, a: tuple[float, float], b: tuple[float, float]) -> bool:
        """Whether the player can walk from a to b in a straight line."""
        samples = np.linspace(a, b, 2 + int(np.hypot(b[0] - a[0], b[1] - a[1]) / 4))[1:]
        grid = sight_grid(self.scenario)
        rows, columns = grid.cells_of(samples).T
        return bool(grid.free[rows, columns].all())


@cache
def walk_grid(scenario: Scenario) -> CellGrid:
    return make_grid(scenario_geometry(scenario), CELL, CLEARANCE)


@cache
def sight_grid(scenario: Scenario) -> CellGrid:
    return make_grid(scenario_geometry(scenario), CELL, 18.0)


@cache
def distances_to(scenario: Scenario, goal: int) -> NDArray[np.float64]:
    """Steps from each cell to the goal's, infinite inside walls; a breadth-first search."""
    point, grid = scenario.point(goal), walk_grid(scenario)
    distances = np.full(grid.free.shape, np.inf)
    start = nearest_free(grid, (point.x, point.y))
    distances[start] = 0
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        for neighbour in _neighbours(grid, cell):
            if grid.free[neighbour] and np.isinf(distances[neighbour]):
                distances[neighbour] = distances[cell] + 1
                queue.append(neighbour)
    return distances


def nearest_free(grid: CellGrid, position: tuple[float, float]) -> Cell:
    """The free cell that is nearest, since a player may stand closer to a wall than the clearance."""
    rows, columns = np.nonzero(grid.free)
    x, y = grid.origin
    away = (x + (columns + 0.5) * CELL - position[0]) ** 2 + (y + (rows + 0.5) * CELL - position[1]) ** 2
    best = int(away.argmin())
    return int(rows[best]), int(columns[best])


def _neighbours(grid: CellGrid, cell: Cell) -> list[Cell]:
    rows, columns = grid.free.shape
    around = [(cell[0] + dr, cell[1] + dc) for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0))]
    return [(r, c) for r, c in around if 0 <= r < rows and 0 <= c < columns]


def _centre(grid: CellGrid, cell: Cell) -> tuple[float, float]:
    x, y = grid.origin
    return x + (cell[1] + 0.5) * CELL, y + (cell[0] + 0.5) * CELL
