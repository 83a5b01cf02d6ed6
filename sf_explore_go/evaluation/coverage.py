"""How much of the world explore phases see, and where they leave the agent.

The measures are the same for every explorer, so that explorers compare: the share of the free cells of the map that
one phase visits, the share that the last phases visit together, and over how many cells the starts of the go phases
are spread. The last one is the exponential of the entropy of the start cells: n equally likely cells count as n.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.core.statistics import bootstrap_interval, effective_number
from sf_explore_go.evaluation.explore import Explores
from sf_explore_go.evaluation.walks import play_phases
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

    def reached(self) -> NDArray[np.float64]:
        """The share of the last phases that visited each cell."""
        return np.sum([visits > 0 for visits in self._visits], axis=0) / max(len(self), 1)

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
    """What an explorer's phases saw, and where they left the agent."""

    name: str
    coverage: Coverage
    steps: int

    def row(self, oracle: "Measured | None" = None) -> dict[str, Any]:
        """The figures; those that compare with the oracle are None without one."""
        mean, low, high = bootstrap_interval(self.coverage.shares().tolist(), bounds=(0.0, 1.0))
        scalars = self.coverage.scalars()
        return {
            "explorer": self.name, "phases": len(self.coverage), "steps": self.steps, "per_phase": mean,
            "low": low, "high": high, "together": scalars["explore/coverage_together"],
            "start_cells": scalars.get("explore/go_start_cells", 0.0),
            "start_cells_corrected": self.effective_starts(),
            "oracle_starts": None if oracle is None else self.share_of_starts(oracle),
        }  # fmt: skip

    def effective_starts(self) -> float:
        """Over how many cells the starts of go phases are spread, were there ever so many phases."""
        counts, cells = self.start_counts(), self.coverage.cells
        return min(effective_number(counts), float(cells.free.sum())) if counts.any() else 0.0

    def share_of_starts(self, oracle: "Measured") -> float:
        """Of the cells in which the oracle's go phases start, the share in which go phases of this explorer start."""
        ours, theirs = self.start_counts() > 0, oracle.start_counts() > 0
        return float((ours & theirs).sum() / max(theirs.sum(), 1))

    def start_counts(self) -> NDArray[np.int64]:
        """Starts of go phases per cell."""
        return self.coverage.cells.visit_counts(self.coverage.starts())

    def start_rows(self) -> list[dict[str, Any]]:
        return [{"explorer": self.name, "x": round(x, 1), "y": round(y, 1)} for x, y in self.coverage.starts()]


def measure(
    name: str,
    explorer: Explores,
    envs: Sequence[Any],
    cells: CellGrid,
    *,
    phases: int,
    steps: int,
    seed: int,
    threads: int = 1,
    on_phase: Callable[[], None] = lambda: None,
) -> Measured:
    """Play `phases` explore phases of `steps` decisions (fewer where the episode ends)."""
    walks = play_phases(explorer, envs, phases=phases, steps=steps, seed=seed, threads=threads, on_phase=on_phase)
    takes_over = np.random.default_rng(derive_seed(seed, "go")).integers(0, steps + 1, phases)
    coverage = Coverage(cells, phases_kept=phases)
    for walk, k in zip(walks, takes_over, strict=True):
        acted = walk.positions[:-1] if walk.ended else walk.positions  # nobody acts where an episode has ended
        coverage.add(walk.positions, acted[k] if k < len(acted) else None)
    return Measured(name, coverage, steps)
