"""How far it is from cell to cell on foot, and by which cells the way leads.

Cells are numbered in the order of `np.argwhere(cells.free)`; the last number, C, stands for all that is no free cell.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sf_explore_go.worlds.cells import CellGrid

NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (1, -1))  # rows, columns; the other half are the same, seen from there


@dataclass(frozen=True)
class Ways:
    """Ways between C cells, round everything that is in the way."""

    grid: CellGrid
    numbers: NDArray[np.int64]  # [rows, columns] of the grid of cells -> number
    centres: NDArray[np.float64]  # [C + 1, 2]: x, y
    lengths: NDArray[np.float32]  # [C + 1, C + 1], map units; infinite where no way leads
    following: NDArray[np.int64]  # [C + 1, C + 1]: the next cell on the way from one to another

    def cells_at(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
        """The numbers of the cells at these places, which must be on the map."""
        rows = ((y - self.grid.origin[1]) / self.grid.cell).astype(np.int64)
        columns = ((x - self.grid.origin[0]) / self.grid.cell).astype(np.int64)
        return self.numbers[rows, columns]


def find_ways(cells: CellGrid, squares: CellGrid) -> Ways:
    """`squares` are small squares, free where a player can be; cells are neighbours if such squares of theirs are."""
    numbers = np.full(cells.free.shape, cells.free.sum())
    numbers[cells.free] = np.arange(cells.free.sum())
    outside = np.zeros((1, 2))
    centres = np.concatenate([np.argwhere(cells.free)[:, ::-1] * cells.cell + cells.cell / 2 + cells.origin, outside])
    lengths = np.full((len(centres), len(centres)), np.inf, np.float32)
    rows, columns = np.nonzero(squares.free)
    middles = np.stack([columns, rows], axis=1) * squares.cell + squares.cell / 2 + squares.origin
    owners = np.full(squares.free.shape, len(centres) - 1)
    owners[rows, columns] = numbers[tuple(cells.cells_of(middles).T)]
    for a, b in neighbours(squares.free, owners):
        lengths[a, b] = lengths[b, a] = np.hypot(*(centres[a] - centres[b]).T)
    np.fill_diagonal(lengths, 0.0)
    return Ways(cells, numbers, centres, *shortest(lengths))


def neighbours(free: NDArray[np.bool_], owners: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The owners of neighbouring free squares, in pairs. A step across a corner needs both squares beside it."""
    pairs = []
    for down, right in NEIGHBOURS:
        rows, columns = np.nonzero(free[: len(free) - down])
        inside = (columns + right >= 0) & (columns + right < free.shape[1])
        rows, columns = rows[inside], columns[inside]
        open_ = free[rows + down, columns + right] & free[rows, columns + right] & free[rows + down, columns]
        here, there = owners[rows, columns][open_], owners[rows + down, columns + right][open_]
        pairs.append((here[here != there], there[here != there]))
    return pairs


def shortest(lengths: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """From the lengths between neighbours to those between all, and the first step of each way (Floyd, Warshall)."""
    following = np.broadcast_to(np.arange(len(lengths)), lengths.shape).copy()
    for middle in range(len(lengths)):
        by_here = lengths[:, middle, None] + lengths[None, middle]
        less = by_here < lengths
        lengths = np.where(less, by_here, lengths)
        following = np.where(less, following[:, middle, None], following)
    return lengths, following
