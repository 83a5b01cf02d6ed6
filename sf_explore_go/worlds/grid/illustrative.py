"""The paper's illustrative CMDP (section 3.2 and its appendix): a cross in which only the colours change."""

from typing import Any

import gymnasium as gym
import numpy as np

from sf_explore_go.core.errors import UsageError

Cell = tuple[int, int]  # row, column

CENTRE: Cell = (2, 2)
NORTH, EAST, SOUTH, WEST = (0, 2), (2, 4), (4, 2), (2, 0)
ARM_ENDS: tuple[Cell, ...] = (NORTH, EAST, SOUTH, WEST)
UP, DOWN, LEFT, RIGHT = range(4)
MOVES: dict[int, Cell] = {UP: (-1, 0), DOWN: (1, 0), LEFT: (0, -1), RIGHT: (0, 1)}

# Stepping sideways off the end of an arm leads to the end of the arm on that side.
SHORTCUTS: dict[tuple[Cell, int], Cell] = {
    (NORTH, RIGHT): EAST,
    (NORTH, LEFT): WEST,
    (SOUTH, RIGHT): EAST,
    (SOUTH, LEFT): WEST,
    (EAST, UP): NORTH,
    (EAST, DOWN): SOUTH,
    (WEST, UP): NORTH,
    (WEST, DOWN): SOUTH,
}

BLUE, GREEN, RED, MAGENTA, WHITE = (0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1)
AGENT_COLOUR, GOAL_COLOUR = (0.5, 0, 0), (0, 0.5, 0)

# A context is a background and a start. Each training background has its own arm; white is never seen in training.
CONTEXTS: dict[str, tuple[tuple[tuple[int, int, int], Cell], ...]] = {
    "train": tuple(zip((BLUE, GREEN, RED, MAGENTA), ARM_ENDS, strict=True)),
    "test": tuple((WHITE, end) for end in ARM_ENDS),
}
TIME_LIMIT = 20
ON_CROSS = tuple(tuple(row == 2 or column == 2 for column in range(5)) for row in range(5))


class IllustrativeEnv(gym.Env):
    """A 5x5 cross; reach the green square in the middle.

    | what | value |
    |---|---|
    | observation | float32 (3, 5, 5), RGB in 0 .. 1: background everywhere, agent (0.5, 0, 0), goal (0, 0.5, 0) |
    | actions | Discrete(4): up, down, left, right; a wall leaves the agent where it is |
    | arm ends | stepping sideways off the end of an arm moves to the end of the arm on that side |
    | reward | 1 on reaching the goal, else 0 |
    | terminated | at the goal |
    | truncated | after 20 steps |
    | contexts | `train`: four backgrounds, each with its own arm; `test`: the four arms on white |
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - declared so by Gymnasium

    def __init__(self, split: str = "train", render_mode: str | None = None) -> None:
        if split not in CONTEXTS:
            raise UsageError(f"split={split!r}: it must be {' or '.join(CONTEXTS)}")
        self.split = split
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Box(0.0, 1.0, (3, 5, 5), np.float32)
        self.action_space = gym.spaces.Discrete(4)
        self.contexts = CONTEXTS[split]
        self.context = 0  # index into contexts
        self.position: Cell = NORTH
        self.steps = 0
        self.total_steps = 0  # over all episodes

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        chosen = (options or {}).get("context")
        if chosen is not None and (not isinstance(chosen, int) or not 0 <= chosen < len(self.contexts)):
            raise UsageError(f"context={chosen!r}: it must be from 0 to {len(self.contexts) - 1}")
        self.context = int(self.np_random.integers(len(self.contexts))) if chosen is None else chosen
        self.position = self.contexts[self.context][1]
        self.steps = 0
        return self._observation(), self._info(success=False)

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.position = next_cell(self.position, int(action))
        self.steps += 1
        self.total_steps += 1
        success = self.position == CENTRE
        timed_out = self.steps >= TIME_LIMIT and not success
        info = self._info(success=success)
        if success or timed_out:
            info["episode_extra_stats"] = {"success": float(success)}
        return self._observation(), float(success), success, timed_out, info

    def render(self) -> Any:
        picture = (self._observation().transpose(1, 2, 0) * 255).astype(np.uint8)
        return picture.repeat(32, axis=0).repeat(32, axis=1)

    def _observation(self) -> np.ndarray:
        background = np.array(self.contexts[self.context][0], np.float32)
        picture = np.broadcast_to(background[:, None, None], (3, 5, 5)).copy()
        picture[:, CENTRE[0], CENTRE[1]] = GOAL_COLOUR
        picture[:, self.position[0], self.position[1]] = AGENT_COLOUR
        return picture

    def _info(self, *, success: bool) -> dict[str, Any]:
        row, column = self.position
        return {"context": self.context, "position": (column, row), "success": success}


def next_cell(cell: Cell, action: int) -> Cell:
    """Where an action leads: a neighbour on the cross, another arm's end, or nowhere."""
    if (cell, action) in SHORTCUTS:
        return SHORTCUTS[cell, action]
    row, column = cell[0] + MOVES[action][0], cell[1] + MOVES[action][1]
    inside = 0 <= row < 5 and 0 <= column < 5
    return (row, column) if inside and ON_CROSS[row][column] else cell
