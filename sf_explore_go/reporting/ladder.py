"""One picture of all explorers, from the one that sees least of the map to the one that sees most."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from sf_explore_go.evaluation.coverage import Measured
from sf_explore_go.worlds.cells import DARK, LIGHT

INK, GREY, PALE, DOT = "#3a3f47", "#8a8f98", "#e8e4da", "#0072b2"
VISITS = LinearSegmentedColormap.from_list("visits", ["#e6dcec", "#8c6bb1", tuple(DARK / 255)])
COLUMN = 2.3  # inches per explorer
LONGEST = 16  # letters of a name in one line

Result = tuple[Measured, dict[str, Any]]


def ladder_figure(results: Sequence[Result]) -> Figure:
    """Above: the share of the map that a phase sees, with its interval. Below: where the phases have been."""
    ordered = sorted(results, key=lambda result: result[1]["per_phase"])
    figure = Figure(figsize=(max(5.0, 1.0 + COLUMN * len(ordered)), 5.6), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    rows = figure.add_gridspec(2, len(ordered), height_ratios=[3, 2.2])
    draw_rungs(figure.add_subplot(rows[0, :]), [row for _, row in ordered])
    top = max(float(measured.coverage.reached().max()) for measured, _ in ordered)
    for column, (measured, row) in enumerate(ordered):
        draw_visits(figure.add_subplot(rows[1, column]), measured, row, top)
    figure.suptitle(title(ordered), x=0.01, ha="left", fontsize=13, fontweight="bold", color=INK)
    return figure


def title(results: Sequence[Result]) -> str:
    steps = max(row["steps"] for _, row in results)
    return f"How much of the map an explore phase of {steps} decisions sees"


def draw_rungs(axes: Axes, rows: Sequence[dict[str, Any]]) -> None:
    """A dot with its 95 % interval for each explorer, on a step of its own height."""
    for column, row in enumerate(rows):
        axes.bar(column, row["per_phase"], width=0.72, color=PALE, zorder=1)
        errors = [[row["per_phase"] - row["low"]], [row["high"] - row["per_phase"]]]
        axes.errorbar(column, row["per_phase"], errors, fmt="o", color=DOT, markersize=6, capsize=4, zorder=3)
        axes.annotate(
            f"{row['per_phase']:.1%}", (column, row["high"]), xytext=(0, 6), textcoords="offset points",
            ha="center", fontsize=11, fontweight="bold", color=INK,
        )  # fmt: skip
    axes.set_xlim(-0.5, len(rows) - 0.5)
    axes.set_ylim(0, 1.15 * max(max(row["high"] for row in rows), 0.01))
    axes.set_xticks([])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylabel("free cells per phase", color=INK)
    axes.set_title(
        f"mean and 95 % interval over {rows[0]['phases']} phases; below: the darker, the more phases visit the cell",
        loc="left", fontsize=9, color=GREY,
    )  # fmt: skip
    axes.tick_params(colors=INK, length=0)
    axes.grid(axis="y", alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GREY)


def draw_visits(axes: Axes, measured: Measured, row: dict[str, Any], top: float) -> None:
    """The map as cells: free ones light, visited ones the darker the more phases have been there."""
    cells, reached = measured.coverage.cells, measured.coverage.reached()
    floor: Any = np.ma.masked_array(np.zeros(cells.free.shape), mask=~cells.free)
    where: dict[str, Any] = {"extent": cells.extent, "origin": "lower", "interpolation": "nearest"}
    axes.imshow(floor, cmap=LinearSegmentedColormap.from_list("floor", [tuple(LIGHT / 255)] * 2), **where)
    axes.imshow(np.ma.masked_less_equal(reached, 0), cmap=VISITS, norm=PowerNorm(0.6, 0.0, top), **where)
    axes.set_title(in_lines(row["explorer"]), fontsize=11, fontweight="bold", color=INK)
    together = f"{row['together']:.0%} of the map together"
    axes.set_xlabel(f"{together}\n{row['start_cells_corrected']:.0f} effective start cells", fontsize=8.5, color=GREY)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def in_lines(name: str) -> str:
    """`e3b (RUN)` with the run in a line of its own, and no line too long; a file's name without its folders."""
    explorer, _, run = name.partition(" (")
    short = explorer.rpartition("/")[2].rpartition(":")[2]
    lines = [short, f"({run}"] if run else [short]
    return "\n".join(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines)
