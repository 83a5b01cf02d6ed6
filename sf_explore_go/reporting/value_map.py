"""Value maps: what agents think of every cell of one context, beside the optimum, and where their go phases began."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from sf_explore_go.worlds.states import StateTable

WALL, WRONG, GOAL = "#6e6e6e", "#d55e00", "#009e73"


@dataclass(frozen=True)
class Opinion:
    """Of one agent on the states of one context, and where its go phases began in all training contexts."""

    values: NDArray[np.float64]  # [states of the context]
    right: NDArray[np.bool_]  # [states of the context]: the likeliest action is an optimal one
    starts: NDArray[np.int64] | None = None  # [rows, columns]


@dataclass(frozen=True)
class ValueMap:
    """The map of one context."""

    places: NDArray[np.int64]  # [states, 2]: row and column
    goal: NDArray[np.int64]  # row and column
    shape: tuple[int, int]

    def figure(self, optimum: NDArray[np.float64], opinions: Mapping[str, Opinion], title: str) -> Figure:
        """A cell shows the best of its directions; a cross marks cells in which the agent does not act optimally in
        every direction. Below, where go phases began."""
        with_starts = any(one.starts is not None for one in opinions.values())
        columns = 1 + len(opinions)
        picture = Figure(figsize=(3.4 * columns, 3.9 * (1 + with_starts)), layout="constrained")
        FigureCanvasAgg(picture)
        rows = picture.subplots(1 + with_starts, columns, squeeze=False)
        lowest = max(0.0, float(optimum.min()) - 0.1)
        shown = self._draw(rows[0][0], optimum, lowest)
        rows[0][0].set_title("optimum V*", fontsize=10)
        for axes, (name, one) in zip(rows[0][1:], opinions.items(), strict=True):
            self._draw(axes, one.values, lowest)
            wrong = self.places[~one.right]
            axes.plot(wrong[:, 1], wrong[:, 0], "x", color=WRONG, markersize=4, markeredgewidth=0.9)
            error = np.abs(one.values - optimum).mean()
            axes.set_title(f"{name}\n|V - V*| = {error:.3f}, optimal in {one.right.mean():.0%}", fontsize=9)
        picture.colorbar(shown, ax=rows[0].tolist(), shrink=0.8, label="value")
        if with_starts:
            rows[1][0].set_axis_off()
            for axes, one in zip(rows[1][1:], opinions.values(), strict=True):
                draw_starts(axes, one.starts)
        picture.suptitle(title, fontsize=11)
        return picture

    def _draw(self, axes: Axes, values: NDArray[np.float64], lowest: float) -> AxesImage:
        best = np.full(self.shape, -np.inf)
        np.maximum.at(best, tuple(self.places.T), values)
        bare(axes)
        axes.plot(self.goal[1], self.goal[0], "s", color=GOAL, markersize=10)
        return axes.imshow(np.ma.masked_invalid(best), vmin=lowest, vmax=1, cmap="viridis")


def draw_starts(axes: Axes, starts: NDArray[np.int64] | None) -> None:
    bare(axes)
    if starts is not None:
        axes.imshow(np.ma.masked_equal(starts, 0), cmap="BuPu", vmin=0)
        axes.set_title(f"where {starts.sum():,} go phases began,\nall training contexts", fontsize=9)


def bare(axes: Axes) -> None:
    axes.set_facecolor(WALL)
    axes.set_xticks([])
    axes.set_yticks([])


def cell_counts(counts: NDArray[np.int64], table: StateTable) -> NDArray[np.int64]:
    """[states] -> [rows, columns], over all contexts and directions."""
    total = np.zeros(table.shape, np.int64)
    np.add.at(total, tuple(table.places[:, 1:].T), counts)
    return total
