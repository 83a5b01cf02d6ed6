"""How much of the world explore phases see, and where they leave the agent.

The measures are the same for every explorer, so that explorers compare: the share of the free cells of the map that
one phase visits, the share that the last phases visit together, and over how many cells the starts of the go phases
are spread. The last one is the exponential of the entropy of the start cells: n equally likely cells count as n.
"""

from collections import deque

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sf_explore_go.worlds.doom.geometry import CellGrid, free_cells
from sf_explore_go.worlds.grid.illustrative import ON_CROSS
from sf_explore_go.worlds.registry import World

PHASES_KEPT = 200


def world_cells(world: World) -> CellGrid:
    """The cells of a world's map, in the units of the positions that its environment reports."""
    if world.kind == "doom":
        return free_cells(world.scenario)
    return CellGrid(np.array(ON_CROSS), (-0.5, -0.5), 1.0)


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
