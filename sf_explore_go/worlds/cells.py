"""A map as square cells: where positions lie, and how often each cell was visited."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Bools = NDArray[np.bool_]
LIGHT, DARK, GREY = np.array([245.0, 241, 232]), np.array([77.0, 0, 75]), np.array([120.0, 120, 120])  # RGB


@dataclass(frozen=True)
class CellGrid:
    """Square cells over the map; `free[row, column]` says whether a position can lie in the cell."""

    free: Bools
    origin: tuple[float, float]  # x, y of the south-west corner of cell (0, 0)
    cell: float  # side, map units

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """x min, x max, y min, y max, as matplotlib's `imshow` wants it."""
        (x, y), (rows, columns) = self.origin, self.free.shape
        return x, x + columns * self.cell, y, y + rows * self.cell

    def cells_of(self, positions: ArrayLike) -> NDArray[np.int64]:
        """Row and column of the cell of each (N, 2) position; positions outside go to the nearest cell."""
        x, y = np.asarray(positions, dtype=np.float64).reshape(-1, 2).T
        indices = np.floor(np.stack([y - self.origin[1], x - self.origin[0]], axis=1) / self.cell)
        return np.clip(indices, 0, np.array(self.free.shape) - 1).astype(np.int64)

    def cell_of(self, x: float, y: float) -> tuple[int, int]:
        """Row and column of the cell of one position."""
        row, column = self.cells_of((x, y))[0]
        return int(row), int(column)

    def visit_counts(self, positions: ArrayLike) -> NDArray[np.int64]:
        """How many of the (N, 2) positions lie in each cell; the shape is that of `free`."""
        counts = np.zeros(self.free.shape, dtype=np.int64)
        np.add.at(counts, tuple(self.cells_of(positions).T), 1)
        return counts


def cell_figure(
    cells: CellGrid, *, heat: NDArray[Any] | None = None, title: str | None = None, dpi: float = 110.0
) -> "Figure":
    """The cells, those that can be entered light, and visits on them: the plainest map."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.imshow(np.where(cells.free, 0.95, 0.3), extent=cells.extent, origin="lower", cmap="gray", vmin=0, vmax=1)
    if heat is not None:
        visits = axes.imshow(np.ma.masked_less_equal(heat, 0), extent=cells.extent, origin="lower", cmap="BuPu", vmin=0)
        figure.colorbar(visits, label="visits per cell")
    axes.set_title(title or "")
    return figure


def cell_image(cells: CellGrid, heat: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Visits as a plain picture of about this width, north up: the darker, the more; grey cells cannot be entered."""
    share = (np.log1p(heat) / np.log1p(max(float(heat.max()), 1.0)))[..., None]
    colours = np.where(cells.free[..., None], LIGHT + share * (DARK - LIGHT), GREY).astype(np.uint8)
    size = max(1, width // cells.free.shape[1])
    return np.ascontiguousarray(colours[::-1].repeat(size, axis=0).repeat(size, axis=1))
