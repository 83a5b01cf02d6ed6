"""A corridor: walk to the cell that the context names. Test goals are cells that no training context names."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from sf_explore_go.core.contexts import in_equal_numbers
from sf_explore_go.worlds.base import World
from sf_explore_go.worlds.cells import CellGrid

LENGTH, TIME_LIMIT = 15, 40
GOALS = {"train": (0, 4, 10, 14), "test": (2, 6, 8, 12)}


class CorridorEnv(gym.Env):
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, goals: Sequence[int], render_mode: str | None = None) -> None:
        self.goals, self.render_mode = goals, render_mode
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)  # own cell and goal
        self.action_space = gym.spaces.Discrete(2)  # left, right

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        chosen = (options or {}).get("context")
        self.goal = int(self.np_random.choice(self.goals)) if chosen is None else int(chosen)
        self.cell, self.steps = LENGTH // 2, 0
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.cell = min(max(self.cell + (1 if action == 1 else -1), 0), LENGTH - 1)
        self.steps += 1
        found = self.cell == self.goal
        return self._observation(), float(found), found, self.steps == TIME_LIMIT and not found, self._info()

    def render(self) -> Any:
        picture = np.full((1, LENGTH, 3), 220, np.uint8)
        picture[0, self.goal], picture[0, self.cell] = (0, 160, 0), (200, 0, 0)
        return picture.repeat(24, axis=0).repeat(24, axis=1)

    def _observation(self) -> np.ndarray:
        return np.array([self.cell, self.goal], np.float32) * 2 / (LENGTH - 1) - 1

    def _info(self) -> dict[str, Any]:
        return {"context": self.goal, "position": (self.cell, 0), "success": self.cell == self.goal}


class Corridor(World):
    presets = {"corridor": {"train_for_env_steps": 60_000, "milestone_step_freq": 20_000, "max_pure_expl_steps": 10}}  # noqa: RUF012

    def make_env(self, split: str, cfg: Any, render_mode: str | None = None) -> gym.Env:
        return CorridorEnv(GOALS[split], render_mode)

    def decisions_per_episode(self, cfg: Any) -> int:
        return TIME_LIMIT

    def evaluation_contexts(self, cfg: Any, split: str, count: int, seed: int) -> Sequence[int]:
        return in_equal_numbers(GOALS[split], count, seed)

    def cells(self) -> CellGrid:
        return CellGrid(np.ones((1, LENGTH), bool), origin=(-0.5, -0.5), cell=1.0)
