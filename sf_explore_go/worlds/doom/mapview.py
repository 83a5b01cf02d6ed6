"""The labyrinth as a picture: rooms, points, goals, starts with their angles, and trajectories or visits on top.

Everything is plain data in map units, so the same picture serves the command line, the README and TensorBoard. Marks
are drawn in map units too, so a small picture is the large one, scaled. Figures are made without pyplot: no global
state, no display, safe in worker processes and threads.
"""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D
from numpy.typing import ArrayLike, NDArray

from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.doom.geometry import Geometry, free_cells, scenario_geometry
from sf_explore_go.worlds.doom.scenario import SPLITS, Point, Scenario

# Okabe and Ito's palette: told apart with every common kind of colour blindness. Shapes differ as well.
SPLIT_COLOURS = {"train": "#0072B2", "test": "#D55E00"}
SPLIT_NAMES = {"train": "training", "test": "test"}
EXPLORE, GO = "#CC79A7", "#009E73"
TRAJECTORIES = ("#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A5195", "#444444")
FLOOR, SHADOW, DOORWAY, WALL, INK = "#F5F1E8", "#E3DCCB", "#D8CFBA", "#2F3640", "#3A3F47"

VISITS = LinearSegmentedColormap.from_list("visits", colormaps["BuPu"](np.linspace(0.22, 1.0, 64)))

SIZE = (9.0, 6.6)  # inches; at 110 dots per inch 990 x 726 pixels, the width of a README
FORMATS = ("png", "svg", "pdf", "jpg")


class Start(NamedTuple):
    """Where an episode starts: map units, degrees counter-clockwise from east, and the goal of its context."""

    x: float
    y: float
    angle: float
    goal: int


class MapOptions(TypedDict, total=False):
    """What `draw_map` takes, for the functions that pass it on."""

    starts: Sequence[tuple[float, float, float, int]]
    trajectories: Sequence[ArrayLike]
    phases: Sequence[ArrayLike]
    heat: NDArray[Any] | None
    heat_cell: float
    rates: Mapping[int, float] | None
    title: str | None


def draw_map(
    ax: Axes,
    where: Scenario | Geometry,
    *,
    starts: Sequence[tuple[float, float, float, int]] = (),
    trajectories: Sequence[ArrayLike] = (),
    phases: Sequence[ArrayLike] = (),
    heat: NDArray[Any] | None = None,
    heat_cell: float = 32.0,
    rates: Mapping[int, float] | None = None,
    title: str | None = None,
) -> None:
    """Draw a scenario and what happened in it, or the bare plan of another map; the legend goes right of the axes.

    starts: (x, y, angle in degrees, goal) each. trajectories: (N, 2) positions each; phases: for each of them N flags,
    true where the explorer acted. heat: visits per cell, shaped as `free_cells(where, heat_cell).free`. rates: goal ->
    success rate, which takes the place of the points' ids.
    """
    if isinstance(where, Geometry):
        _draw_plan(ax, where)
        _finish(ax, where, title, [])
        return
    geometry = scenario_geometry(where)
    _draw_plan(ax, geometry)
    if heat is not None:
        _draw_heat(ax, heat, free_cells(where, heat_cell), geometry)
    handles = _draw_trajectories(ax, trajectories, phases)
    if rates is not None:
        handles = _draw_rates(ax, where, rates) + handles
    else:
        handles = _draw_points(ax, where) + _draw_starts(ax, where, starts) + handles
    _finish(ax, geometry, title, handles)


def map_figure(where: Scenario | Geometry, *, dpi: float = 110.0, **options: Unpack[MapOptions]) -> Figure:
    """A figure with the map and its legend."""
    figure = Figure(figsize=SIZE, dpi=dpi, facecolor="white")
    FigureCanvasAgg(figure)
    draw_map(figure.add_axes((0.02, 0.03, 0.76, 0.88)), where, **options)
    return figure


def save_map(
    path: str | Path, where: Scenario | Geometry, *, dpi: float = 160.0, **options: Unpack[MapOptions]
) -> None:
    """Write the picture to a file; the suffix chooses the format."""
    check_picture_path(path)
    try:
        map_figure(where, dpi=dpi, **options).savefig(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror or error})") from error


def check_picture_path(path: str | Path) -> None:
    """Refuse a path that cannot become a picture, before any work is done for it."""
    path = Path(path)
    if path.suffix.lower().removeprefix(".") not in FORMATS:
        raise UsageError(f"{path}: a picture's name must end in {' or '.join('.' + format for format in FORMATS)}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: the folder {path.parent} does not exist")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{path}: cannot be written; it must be a file in a writable folder")


def map_image(where: Scenario | Geometry, *, width: int = 720, **options: Unpack[MapOptions]) -> NDArray[np.uint8]:
    """The picture as an array (height, width, 3), for TensorBoard."""
    figure = map_figure(where, dpi=width / SIZE[0], **options)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


# --- layers, from the floor up ----------------------------------------------------------------------------------------


def _draw_plan(ax: Axes, geometry: Geometry) -> None:
    ax.add_collection(LineCollection(list(geometry.walls), colors=SHADOW, linewidths=9, capstyle="round", zorder=1))
    ax.add_patch(PathPatch(_floor(geometry), facecolor=FLOOR, edgecolor="none", zorder=2))
    ax.add_collection(LineCollection(list(geometry.openings), colors=DOORWAY, linewidths=0.8, zorder=2.5))
    ax.add_collection(LineCollection(list(geometry.walls), colors=WALL, linewidths=2.2, capstyle="round", zorder=5))


def _floor(geometry: Geometry) -> Outline:
    outlines = [Outline(loop, closed=True) for room in geometry.rooms for loop in room]
    return Outline.make_compound_path(*outlines)


def _draw_heat(ax: Axes, heat: NDArray[Any], grid: CellGrid, geometry: Geometry) -> None:
    if heat.shape != grid.free.shape:
        raise ValueError(f"heat has the shape {heat.shape}; cells of {grid.cell} units need {grid.free.shape}")
    if not (heat > 0).any():
        return
    low = float(heat[heat > 0].min())
    top = max(float(heat.max()), 2 * low)
    image = ax.imshow(
        np.ma.masked_less_equal(heat, 0),
        extent=grid.extent,
        origin="lower",
        cmap=VISITS,
        norm=LogNorm(low, top),
        zorder=3,
    )
    image.set_clip_path(PathPatch(_floor(geometry), transform=ax.transData))
    scale = ax.inset_axes((1.03, 0.12, 0.026, 0.34))
    bar = ax.figure.colorbar(image, cax=scale, ticks=_plain_ticks(low, top), format="%g")
    bar.minorticks_off()
    bar.set_label(f"visits per cell of {grid.cell:g} × {grid.cell:g} units", size=9, color=INK)
    bar.outline.set_visible(False)
    scale.tick_params(labelsize=8.5, colors=INK)


def _plain_ticks(low: float, top: float) -> list[float]:
    """1, 2, 5, 10, 20, 50 ... between two positive numbers; those two if there is none."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(top)) + 1)
    ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    return [tick for tick in ticks if low <= tick <= top] or [low, top]


def _draw_trajectories(ax: Axes, trajectories: Sequence[ArrayLike], phases: Sequence[ArrayLike]) -> list[Artist]:
    if phases and len(phases) != len(trajectories):
        raise ValueError(f"{len(phases)} phases for {len(trajectories)} trajectories")
    alpha = float(np.clip(6 / max(len(trajectories), 1), 0.25, 0.9))
    for i, positions in enumerate(trajectories):
        xy = np.asarray(positions, dtype=np.float64).reshape(-1, 2)
        colours = [TRAJECTORIES[i % len(TRAJECTORIES)]] * len(xy)
        if phases:
            colours = [EXPLORE if explore else GO for explore in np.asarray(phases[i], dtype=np.bool_)]
        _draw_trajectory(ax, xy, colours, alpha)
    if not trajectories:
        return []
    if phases:
        return [_line("explore phase", EXPLORE), _line("go phase (dot: end)", GO)]
    return [_line("trajectory (dot: its end)", TRAJECTORIES[0])]


def _draw_trajectory(ax: Axes, xy: NDArray[np.float64], colours: Sequence[str], alpha: float) -> None:
    """Positions (N, 2) and the colour of each step from one to the next; a larger dot marks the end."""
    if len(colours) != len(xy):
        raise ValueError(f"{len(colours)} phase flags for a trajectory of {len(xy)} positions")
    steps = list(np.stack([xy[:-1], xy[1:]], axis=1)) if len(xy) > 1 else []
    ax.add_collection(LineCollection(steps, colors=colours, linewidths=1.5, alpha=alpha, capstyle="round", zorder=4))
    for i, radius, height in ((0, 4.5, 5.5), (-1, 7.5, 8.0)) if len(xy) else ():
        dot = Circle(
            (xy[i, 0], xy[i, 1]), radius, facecolor=colours[i], edgecolor="white", linewidth=0.8, zorder=height
        )
        ax.add_patch(dot)


def _draw_points(ax: Axes, scenario: Scenario) -> list[Artist]:
    for split in SPLITS:
        for goal in scenario.goals(split):
            point = scenario.point(goal)
            ax.add_patch(_badge(point, split))
            ax.add_patch(_number(point))
    return [
        _mark(f"{SPLIT_NAMES[split]} goal ({len(scenario.goals(split))})", SPLIT_COLOURS[split], _shape(split))
        for split in SPLITS
    ]


def _shape(split: str) -> str:
    return "s" if split == "train" else "o"


def _badge(point: Point, split: str) -> Circle | FancyBboxPatch:
    style: dict[str, Any] = {"facecolor": SPLIT_COLOURS[split], "edgecolor": "white", "linewidth": 1.2, "zorder": 6}
    if split == "test":
        return Circle((point.x, point.y), 16.5, **style)
    rounded = "round,pad=0,rounding_size=5"
    return FancyBboxPatch((point.x - 15.5, point.y - 15.5), 31, 31, boxstyle=rounded, **style)


def _number(point: Point) -> PathPatch:
    """The point's id, centred on the point."""
    return _text(str(point.id), point.x, point.y, 17, "white")


def _text(text: str, x: float, y: float, size: float, colour: str) -> PathPatch:
    """Text as an outline in map units, centred."""
    outline = TextPath((0, 0), text, size=size, prop=FontProperties(family="DejaVu Sans", weight="bold"))
    box = outline.get_extents()
    move = Affine2D().translate(x - (box.x0 + box.x1) / 2, y - (box.y0 + box.y1) / 2)
    return PathPatch(outline.transformed(move), facecolor=colour, edgecolor="none", zorder=7)


RATES = LinearSegmentedColormap.from_list("rates", ("#B2182B", "#F4A582", "#F7F7F7", "#92C5DE", "#2166AC"))


def _draw_rates(ax: Axes, scenario: Scenario, rates: Mapping[int, float]) -> list[Artist]:
    """Goals as discs (training goals as squares) in the colour of their success, with it in per cent."""
    splits = [split for split in SPLITS if any(goal in rates for goal in scenario.goals(split))]
    for split in splits:
        for goal in scenario.goals(split):
            if goal in rates:
                _draw_rate(ax, scenario.point(goal), split, rates[goal])
    scale = ax.inset_axes((1.03, 0.12, 0.026, 0.34))
    bar = ax.figure.colorbar(ScalarMappable(Normalize(0, 100), RATES), cax=scale)
    bar.set_label("success (%)", size=9, color=INK)
    bar.outline.set_edgecolor(SHADOW)
    scale.tick_params(labelsize=8.5, colors=INK)
    return [_mark(f"{SPLIT_NAMES[split]} goal", DOORWAY, _shape(split)) for split in splits]


def _draw_rate(ax: Axes, point: Point, split: str, rate: float) -> None:
    dark = abs(rate - 0.5) > 0.32
    style: dict[str, Any] = {"facecolor": RATES(rate), "edgecolor": WALL, "linewidth": 1.0, "zorder": 6}
    if split == "test":
        ax.add_patch(Circle((point.x, point.y), 25, **style))
    else:
        corner = (point.x - 23, point.y - 23)
        ax.add_patch(FancyBboxPatch(corner, 46, 46, boxstyle="round,pad=0,rounding_size=6", **style))
    ax.add_patch(_text(f"{100 * rate:.0f}", point.x, point.y, 19, "white" if dark else INK))


def _draw_starts(ax: Axes, scenario: Scenario, starts: Sequence[tuple[float, float, float, int]]) -> list[Artist]:
    drawn: list[Start] = []
    seen = set()
    for start in (Start(*start) for start in starts):
        split = "train" if start.goal in scenario.train_goals else "test"
        seen.add(split)
        ax.add_patch(_arrow(start, SPLIT_COLOURS[split], row=sum(_alike(start, other) for other in drawn)))
        drawn.append(start)
    return [
        _mark(f"start and angle of\na {SPLIT_NAMES[split]} context", SPLIT_COLOURS[split], _dart_marker())
        for split in SPLITS
        if split in seen
    ]


DART = np.array([[41.0, 0.0], [19.5, 10.0], [24.0, 0.0], [19.5, -10.0]])  # tip, wing, notch, wing; outside the badge


def _alike(a: Start, b: Start) -> bool:
    """Whether the two arrows would hide each other."""
    turn = (a.angle - b.angle + 180) % 360 - 180
    return abs(turn) < 15 and (a.x - b.x) ** 2 + (a.y - b.y) ** 2 < 25


def _arrow(start: Start, colour: str, row: int = 0) -> Polygon:
    """An arrow beside the badge; those that would hide each other stand in rows, one behind the other."""
    turn = Affine2D().translate(row * 18.0, 0).rotate_deg(start.angle).translate(start.x, start.y)
    return Polygon(turn.transform(DART), facecolor=colour, edgecolor="white", linewidth=0.7, zorder=6.5)


def _dart_marker() -> Outline:
    return Outline(DART - DART.mean(axis=0), closed=False)


# --- frame and legend -------------------------------------------------------------------------------------------------


def _mark(label: str, colour: str, marker: str | Outline) -> Line2D:
    return Line2D([], [], linestyle="none", marker=marker, markersize=11, color=colour, markeredgewidth=0, label=label)


def _line(label: str, colour: str) -> Line2D:
    return Line2D([], [], color=colour, linewidth=2.2, label=label)


def _finish(ax: Axes, geometry: Geometry, title: str | None, handles: list[Artist]) -> None:
    x_min, y_min, x_max, y_max = geometry.bounds
    margin = 0.03 * max(x_max - x_min, y_max - y_min)
    ax.set_xlim(x_min - margin, x_max + margin)
    ax.set_ylim(y_min - margin, y_max + margin)
    ax.set_aspect("equal", anchor="W")
    ax.set_axis_off()
    _draw_scale(ax, x_max - x_min)
    if title:
        ax.set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK, pad=10)
    if handles:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.2}
        ax.legend(handles=handles, frameon=False, fontsize=9.5, labelcolor=INK, labelspacing=0.9, **place)


def _draw_scale(ax: Axes, width: float) -> None:
    """A bar of a round length right of the map's foot, outside the axes."""
    length = 10 ** np.floor(np.log10(max(width, 1.0) / 4))
    length *= max(n for n in (1, 2, 5) if n * length <= width / 4)
    left, right = ax.get_xlim()
    x, y = right + 0.03 * (right - left), ax.get_ylim()[0] + 0.02 * (right - left)
    ax.plot([x, x + length], [y, y], color=INK, linewidth=2.2, solid_capstyle="butt", clip_on=False)
    ax.text(x, y + 0.012 * (right - left), f"{length:g} map units", color=INK, fontsize=8.5, ha="left", va="bottom")
