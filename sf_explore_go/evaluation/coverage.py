"""How much of the world explore phases see, and where they leave the agent.

The measures are the same for every explorer, so that explorers compare: the share of the free cells of the map that
one phase visits, the share that the last phases visit together, and over how many cells the starts of the go phases
are spread. The last one is the exponential of the entropy of the start cells: n equally likely cells count as n.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.core.statistics import bootstrap_interval
from sf_explore_go.evaluation.explore import Explores
from sf_explore_go.worlds.cells import CellGrid

PHASES_KEPT = 200


class Coverage:
    """The last explore phases of a run."""

    def __init__(self, cells: CellGrid, phases_kept: int = PHASES_KEPT) -> None:
        self.cells = cells
        self._visits: deque[NDArray[np.int64]] = deque(maxlen=phases_kept)  # counts per cell, a phase each
        self._starts: deque[tuple[float, float]] = deque(maxlen=phases_kept)

    def add(self, positions: ArrayLike, go_start: tuple[float, float] | None) -> None:
        """One explore phase: its positions [n, 2], and where the agent took over (None if the episode ended)."""
        self._visits.append(self.cells.visit_counts(positions) * self.cells.free)
        if go_start is not None:
            self._starts.append(go_start)

    def __len__(self) -> int:
        return len(self._visits)

    def shares(self) -> NDArray[np.float64]:
        """The share of the free cells that each of the last phases visited."""
        return np.array([np.count_nonzero(visits) for visits in self._visits]) / self.cells.free.sum()

    def visits(self) -> NDArray[np.int64]:
        """Visits per cell over the last phases."""
        return np.sum(self._visits, axis=0) if self._visits else np.zeros(self.cells.free.shape, np.int64)

    def starts(self) -> list[tuple[float, float]]:
        return list(self._starts)

    def scalars(self) -> dict[str, float]:
        """tag -> value; nothing before the first phase has ended."""
        if not self._visits:
            return {}
        values = {
            "explore/coverage_per_phase": float(self.shares().mean()),
            "explore/coverage_together": float(np.count_nonzero(self.visits()) / self.cells.free.sum()),
        }
        if self._starts:
            values["explore/go_start_cells"] = effective_cells(self.cells.visit_counts(self._starts))
        return values


def effective_cells(counts: ArrayLike) -> float:
    """exp(entropy) of a histogram over cells: n equally filled cells give n."""
    shares = np.asarray(counts, dtype=float).ravel()
    shares = shares[shares > 0] / shares.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


@dataclass(frozen=True)
class Measured:
    """The result: the coverage, and the share of the map that each phase saw."""

    name: str
    coverage: Coverage
    steps: int

    def row(self) -> dict[str, Any]:
        mean, low, high = bootstrap_interval(self.coverage.shares().tolist())
        scalars = self.coverage.scalars()
        return {
            "explorer": self.name, "phases": len(self.coverage), "steps": self.steps, "per_phase": mean,
            "low": low, "high": high, "together": scalars["explore/coverage_together"],
            "start_cells": scalars.get("explore/go_start_cells", 0.0),
        }  # fmt: skip

    def start_rows(self) -> list[dict[str, Any]]:
        return [{"explorer": self.name, "x": round(x, 1), "y": round(y, 1)} for x, y in self.coverage.starts()]


def measure(
    name: str, explorer: Explores, env: Any, cells: CellGrid, *, phases: int, steps: int, seed: int
) -> Measured:
    """Play `phases` explore phases of `steps` decisions (fewer where the episode ends)."""
    coverage = Coverage(cells, phases_kept=phases)
    takes_over = np.random.default_rng(derive_seed(seed, "go")).integers(0, steps + 1, phases)
    for phase in range(phases):
        observations, infos = env.reset(seed=derive_seed(seed, "phase", phase))
        explorer.begin(observations[0], derive_seed(seed, "explorer", phase))
        positions, ended = [infos[0]["position"]], False
        while not ended and len(positions) <= steps:
            observations, _, terminated, truncated, infos = env.step([explorer.act(observations[0])])
            positions.append(infos[0]["position"])
            ended = terminated[0] or truncated[0]
        acted = positions[:-1] if ended else positions  # nobody acts where an episode has ended
        coverage.add(positions, acted[takes_over[phase]] if takes_over[phase] < len(acted) else None)
    return Measured(name, coverage, steps)
