"""Four Rooms as tables: the topology, where every action leads, and the sets of contexts.

A grid of n x n cells (n odd) has a wall round it and a wall through its middle in each direction. Each of the four
arms of that cross has one door, so a topology is four whole numbers, one per arm. The agent has a cell and a direction;
it can turn left, turn right or walk forward. All of it is MiniGrid's `FourRooms` with its full observation, computed
once per context instead of at every step; the tests compare every state and action with MiniGrid.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.worlds.states import GOAL, StateTable

Cell = tuple[int, int]  # row, column
Doors = tuple[int, int, int, int]  # along the northern, eastern, southern and western arm of the cross, from 0

LEFT, RIGHT, FORWARD = range(3)  # actions
DIRECTIONS: tuple[Cell, ...] = ((0, 1), (1, 0), (0, -1), (-1, 0))  # east, south, west, north: MiniGrid's 0 to 3
WALL, FLOOR, TARGET, AGENT = (2, 5, 0), (1, 0, 0), (8, 1, 0), (10, 0, 0)  # MiniGrid's object, colour, state
SMALLEST = 5


@dataclass(frozen=True)
class RoomContext:
    """One task: where the doors and the goal are, and where the agent starts."""

    doors: Doors
    goal: Cell
    start: Cell
    direction: int


def check_size(size: int, flag: str = "grid_size") -> None:
    if size < SMALLEST or size % 2 == 0:
        raise UsageError(f"{flag}={size}: it must be an odd number, at least {SMALLEST}, so that there are four rooms")


def side(size: int) -> int:
    """Cells along a side of a room."""
    return (size - 3) // 2


def topologies(size: int) -> int:
    return int(side(size) ** 4)


def doors_of(topology: int, size: int) -> Doors:
    """The topologies of a size, counted from 0."""
    north, east, south, west = np.unravel_index(topology, (side(size),) * 4)
    return int(north), int(east), int(south), int(west)


def door_cells(doors: Doors, size: int) -> list[Cell]:
    middle = size // 2
    north, east, south, west = doors
    return [(1 + north, middle), (middle, middle + 1 + east), (middle + 1 + south, middle), (middle, 1 + west)]


def free_cells(doors: Doors, size: int) -> NDArray[np.bool_]:
    """[size, size]: where the agent can be."""
    free = np.zeros((size, size), bool)
    free[1:-1, 1:-1] = True
    free[size // 2, :] = free[:, size // 2] = False
    for cell in door_cells(doors, size):
        free[cell] = True
    return free


@dataclass(frozen=True)
class Layout:
    """A topology with a goal. State 4 i + d is the i-th free cell, row by row and without the goal, facing d."""

    cells: tuple[Cell, ...]
    next_state: NDArray[np.int64]  # [states, actions]
    steps: list[list[int]]  # the same as plain numbers, which are faster one by one
    picture: NDArray[np.uint8]  # [3, size, size]: the observation without the agent
    index: dict[Cell, int]  # of the cells

    def state(self, cell: Cell, direction: int) -> int:
        return 4 * self.index[cell] + direction

    def observe(self, state: int) -> NDArray[np.uint8]:
        return self.look(self.cells[state >> 2], state & 3)

    def look(self, cell: Cell, direction: int) -> NDArray[np.uint8]:
        seen = self.picture.copy()
        row, column = cell
        seen[0, row, column], seen[1, row, column] = AGENT[:2]
        seen[2, row, column] = direction
        return seen


@lru_cache(maxsize=2048)
def layout_of(doors: Doors, goal: Cell, size: int) -> Layout:
    free = free_cells(doors, size)
    picture = np.where(free[..., None], np.array(FLOOR), np.array(WALL)).astype(np.uint8)
    picture[goal] = TARGET
    inside = free.copy()
    inside[goal] = False
    cells = tuple((int(row), int(column)) for row, column in np.argwhere(inside))
    numbers = np.full((size, size), -2)  # -2: a wall
    numbers[inside] = np.arange(len(cells))
    numbers[goal] = -1
    next_state = np.empty((len(cells), 4, 3), np.int64)
    own = np.arange(len(cells))
    for direction, (down, across) in enumerate(DIRECTIONS):
        rows, columns = np.array(cells).T
        ahead = numbers[rows + down, columns + across]
        next_state[:, direction, LEFT] = 4 * own + (direction - 1) % 4
        next_state[:, direction, RIGHT] = 4 * own + (direction + 1) % 4
        walked = np.where(ahead == -2, own, ahead)
        next_state[:, direction, FORWARD] = np.where(walked == -1, GOAL, 4 * walked + direction)
    flat = next_state.reshape(-1, 3)
    index = {cell: i for i, cell in enumerate(cells)}
    return Layout(cells, flat, flat.tolist(), np.ascontiguousarray(picture.transpose(2, 0, 1)), index)


def states_per_context(size: int) -> int:
    return 4 * (4 * side(size) ** 2 + 4 - 1)


def table_of(contexts: tuple[RoomContext, ...], size: int) -> StateTable:
    """All states of these contexts: the c-th context has the keys from c times `states_per_context`."""
    count = states_per_context(size)
    layouts = [layout_of(context.doors, context.goal, size) for context in contexts]
    blocks = [np.where(one.next_state == GOAL, GOAL, one.next_state + c * count) for c, one in enumerate(layouts)]

    def observe(states: NDArray[np.int64]) -> NDArray[np.uint8]:
        return np.stack([layouts[state // count].observe(state % count) for state in states.tolist()])

    cells = [(c, *cell) for c, one in enumerate(layouts) for cell in one.cells]
    places, goals = np.repeat(np.array(cells), 4, axis=0), np.array([context.goal for context in contexts])
    return StateTable(np.concatenate(blocks), observe, places, goals, (size, size))


# -- sets of contexts --------------------------------------------------------------------------------------------------


def draw_contexts(split: str, size: int, num_contexts: int, test_contexts: int, seed: int) -> tuple[RoomContext, ...]:
    """The contexts of a split.

    Training contexts have different topologies. Those of `test` and `validation` have none of the training set's; they
    share what is left among them, `validation` from one end and `test` from the other, so that they have nothing in
    common as long as there is enough, and `test` does not change with the size of the training set. `reachable` is the
    training set with another start.
    """
    order = np.random.default_rng(derive_seed(seed, "topologies", size)).permutation(topologies(size)).tolist()
    check_number(num_contexts, size)
    trained, rest = order[:num_contexts], order[num_contexts:]
    if split in ("train", "reachable"):
        contexts = tuple(draw_one(doors_of(one, size), size, seed, "train", i) for i, one in enumerate(trained))
        return tuple(moved(one, size, seed, i) for i, one in enumerate(contexts)) if split == "reachable" else contexts
    chosen = rest[::-1] if split == "test" else rest
    return tuple(draw_one(doors_of(chosen[i % len(chosen)], size), size, seed, split, i) for i in range(test_contexts))


def check_number(num_contexts: int, size: int, flag: str = "num_contexts") -> None:
    most = topologies(size) - 1
    if not 1 <= num_contexts <= most:
        raise UsageError(
            f"{flag}={num_contexts}: it must be from 1 to {most}; a grid of {size} x {size} has {most + 1} topologies,"
            " each training context has its own, and test contexts need at least one more"
        )


def draw_one(doors: Doors, size: int, seed: int, split: str, index: int) -> RoomContext:
    rng = np.random.default_rng(derive_seed(seed, "context", split, size, index))
    free = free_cells(doors, size)
    in_rooms = free.copy()
    for cell in door_cells(doors, size):
        in_rooms[cell] = False
    goal = pick(in_rooms, rng)
    free[goal] = False
    return RoomContext(doors, goal, pick(free, rng), int(rng.integers(4)))


def moved(context: RoomContext, size: int, seed: int, index: int) -> RoomContext:
    """The same task from another cell and in another direction."""
    rng = np.random.default_rng(derive_seed(seed, "context", "reachable", size, index))
    free = free_cells(context.doors, size)
    free[context.goal] = free[context.start] = False
    turned = (context.direction + 1 + int(rng.integers(3))) % 4
    return replace(context, start=pick(free, rng), direction=turned)


def pick(where: NDArray[np.bool_], rng: np.random.Generator) -> Cell:
    places = np.argwhere(where)
    row, column = places[int(rng.integers(len(places)))]
    return int(row), int(column)
