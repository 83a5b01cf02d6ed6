"""Four Rooms (section 5 of the paper): find the goal in four rooms whose doors change from context to context."""

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.grid.rooms import (
    DIRECTIONS,
    WALL,
    Cell,
    Layout,
    check_size,
    draw_contexts,
    layout_of,
    states_per_context,
)

SPLITS = ("train", "test", "reachable", "validation")
TIME_LIMIT = 100
TILE = 24  # pixels of a cell in a film
GREY, LIGHT, GREEN, RED = (110, 110, 110), (245, 241, 232), (60, 160, 60), (200, 40, 40)


class FourRoomsEnv(gym.Env):
    """Four rooms with one door in each wall between them; reach the green square.

    | what | value |
    |---|---|
    | observation | uint8 (3, n, n): MiniGrid's object, colour and state of every cell, rows from north to south |
    | actions | Discrete(3): turn left, turn right, forward; a wall leaves the agent where it is |
    | reward | 1 on reaching the goal, else 0 |
    | terminated | at the goal |
    | truncated | after 100 steps |
    | contexts | doors, goal, start and direction; `train`, `reachable` (the same from other starts), `test` and \
`validation` (topologies that no training context has) |
    | order | every context once, in an order drawn from the seed, then again in another |
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012 - declared so by Gymnasium

    def __init__(
        self,
        split: str = "train",
        grid_size: int = 19,
        num_contexts: int = 200,
        test_contexts: int = 200,
        context_seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        if split not in SPLITS:
            raise UsageError(f"split={split!r}: it must be {', '.join(SPLITS)}")
        check_size(grid_size)
        self.split, self.size, self.render_mode = split, grid_size, render_mode
        self.contexts = draw_contexts(split, grid_size, num_contexts, test_contexts, context_seed)
        self.observation_space = gym.spaces.Box(0, 255, (3, grid_size, grid_size), np.uint8)
        self.action_space = gym.spaces.Discrete(3)
        self._states = states_per_context(grid_size)
        self._order: Iterator[int] = iter(())
        self.context, self.state, self.steps = 0, 0, 0  # the state is one of its layout, GOAL at the goal
        self._facing = 0
        self._layout: Layout

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        if seed is not None:
            self._order = iter(())
        chosen = (options or {}).get("context")
        if chosen is not None and (not isinstance(chosen, int) or not 0 <= chosen < len(self.contexts)):
            raise UsageError(f"context={chosen!r}: it must be from 0 to {len(self.contexts) - 1}")
        self.context = self._next_context() if chosen is None else chosen
        context = self.contexts[self.context]
        self._layout = layout_of(context.doors, context.goal, self.size)
        self.state, self.steps = self._layout.state(context.start, context.direction), 0
        return self._layout.observe(self.state), self._info(success=False)

    def _next_context(self) -> int:
        following = next(self._order, None)
        if following is None:
            self._order = iter(self.np_random.permutation(len(self.contexts)).tolist())
            following = next(self._order)
        return following

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        facing = self.state & 3
        self.state = self._layout.steps[self.state][action]
        self.steps += 1
        success = self.state < 0
        if success:
            self._facing = facing
        seen = self._layout.look(*self._place())
        return seen, float(success), success, self.steps >= TIME_LIMIT and not success, self._info(success=success)

    def _place(self) -> tuple[Cell, int]:
        if self.state < 0:
            return self.contexts[self.context].goal, self._facing
        return self._layout.cells[self.state >> 2], self.state & 3

    def _info(self, *, success: bool) -> dict[str, Any]:
        (row, column), _ = self._place()
        key = -1 - self.context if success else self.context * self._states + self.state
        position = (float(column), float(self.size - 1 - row))
        return {"context": self.context, "position": position, "success": success, "state": key}

    def render(self) -> Any:
        return draw(self._layout, *self._place(), self.contexts[self.context].goal)


def draw(layout: Layout, cell: Cell, facing: int, goal: Cell) -> NDArray[np.uint8]:
    """[height, width, RGB]: walls grey, the goal green, the agent a red triangle that points ahead."""
    walls = layout.picture[0] == WALL[0]
    colours = np.where(walls[..., None], np.array(GREY), np.array(LIGHT)).astype(np.uint8)
    colours[goal] = GREEN
    picture = colours.repeat(TILE, axis=0).repeat(TILE, axis=1)
    top, left = cell[0] * TILE, cell[1] * TILE
    picture[top : top + TILE, left : left + TILE][triangle(facing)] = RED
    return picture


def triangle(facing: int) -> NDArray[np.bool_]:
    """[TILE, TILE]: a triangle whose tip points in a direction."""
    down, across = np.mgrid[0:TILE, 0:TILE] / (TILE - 1) - 0.5
    ahead = down * DIRECTIONS[facing][0] + across * DIRECTIONS[facing][1]
    aside = down * DIRECTIONS[facing][1] - across * DIRECTIONS[facing][0]
    return (ahead > -0.35) & (ahead + 2 * np.abs(aside) < 0.38)
