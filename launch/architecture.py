"""The picture of docs/architecture.md: the rooms of the package, who imports whom, and how data flows.

python launch/architecture.py docs/figures/architecture.png

The rooms and their order are those of the import contract in pyproject.toml, their sentences the docstrings of the
rooms, and the lines at the left the imports that are really there. Only the data flow is written down here.
"""

import ast
import tomllib
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import grimp
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

PACKAGE = "sf_explore_go"
CONTRACT = "Rooms import only from rooms below them"

# inches
WIDTH, HEAD, FOOT = 11.0, 0.5, 0.36
ROW, BOX = 0.62, 0.46  # from room to room, and of a room
LEFT, RIGHT = 2.45, 6.6  # of the rooms
LANE = 0.16  # between the lines of two imported rooms
INNER, OUTER, STOP = 8.0, 10.0, 1.72  # centres of the columns of the data flow, and how wide its stops are

INK, QUIET, FLOW, WRONG = "#222222", "#6b6b6b", "#d55e00", "#e00000"
COLOURS = ("#4d4d4d", "#0072b2", "#009e73", "#b5528d", "#a87900", "#2f8fc4", "#7b3294")
LEGEND = (
    "A dot: the room of this row imports from the room that the line leads to. The larger the dot, the more imports."
    " A room imports only from rooms below it."
)

Heights = dict[str, float]


class Stop(NamedTuple):
    """A place that data passes: in which room's row it stands, in which column, and what it says."""

    room: str
    x: float
    text: str


class Arrow(NamedTuple):
    """From a side of one stop to a side of another; `shift` moves the ends along their sides."""

    start: str
    end: str
    sides: tuple[str, str]
    label: str = ""
    shift: tuple[float, float] = (0, 0)


STOPS = {
    "contexts": Stop("core", INNER, "seed, set of\ncontexts"),
    "env": Stop("worlds", INNER, "environment"),
    "explorer": Stop("explorers", OUTER, "explorer: acts itself\nor is policy 1"),
    "actor": Stop("phases", INNER, "actor: explores,\nthen goes"),
    "milestones": Stop("runs", OUTER, "milestones by\ntotal frames"),
    "learners": Stop("training", INNER, "a learner\nper policy"),
    "evaluation": Stop("evaluation", OUTER, "success on train\nand test contexts"),
    "board": Stop("monitoring", INNER, "TensorBoard,\nprogress line"),
    "report": Stop("reporting", OUTER, "report: intervals\nover seeds"),
}
UP, DOWN = ("top", "bottom"), ("bottom", "top")
ARROWS = (
    Arrow("contexts", "env", UP),
    Arrow("env", "actor", UP, "observations"),
    Arrow("explorer", "actor", ("top", "right"), "actions"),
    Arrow("actor", "learners", UP, "one open rollout\nper policy", (0.3, 0.3)),
    Arrow("learners", "actor", DOWN, "weights", (-0.55, -0.55)),
    Arrow("learners", "milestones", ("right", "top"), shift=(0, -0.35)),
    Arrow("milestones", "evaluation", UP, shift=(0.35, 0.35)),
    Arrow("learners", "board", UP, shift=(-0.3, -0.3)),
    Arrow("evaluation", "board", ("left", "bottom"), shift=(0, 0.3)),
    Arrow("evaluation", "report", UP),
)


# --- what is there ----------------------------------------------------------------------------------------------------


def rooms() -> list[str]:
    """The rooms of the contract that exist, the lowest first."""
    contracts = tomllib.loads(Path("pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["name"] == CONTRACT)
    names = [layer.strip("()") for layer in reversed(layers)]
    return [name for name in names if Path(PACKAGE, name).is_dir()]


def sentence(room: str) -> str:
    """The first line of the room's docstring."""
    text = ast.get_docstring(ast.parse(Path(PACKAGE, room, "__init__.py").read_text()))
    return (text or "").partition("\n")[0]


def imports() -> Counter[tuple[str, str]]:
    """(room, room that it imports from) -> how many imports."""
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    known = set(rooms())
    pairs = (
        (room_of(module), room_of(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
    )
    return Counter(pair for pair in pairs if set(pair) <= known and pair[0] != pair[1])


def room_of(module: str) -> str:
    """ "" for the package itself."""
    return [*module.split("."), ""][1]


# --- drawing ----------------------------------------------------------------------------------------------------------


def draw(path: Path) -> None:
    heights = {room: (i + 0.5) * ROW for i, room in enumerate(rooms())}
    height = len(heights) * ROW + HEAD + FOOT
    figure = Figure(figsize=(WIDTH, height), dpi=140, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(-FOOT, height - FOOT))
    axes.axis("off")
    for x, title in ((0.2, "who imports whom"), (LEFT, "the rooms"), (INNER - STOP / 2, "how data flows")):
        axes.text(x, len(heights) * ROW + HEAD / 2, title, fontsize=13, color=QUIET, va="center")
    axes.text(0.2, -FOOT / 2, LEGEND, fontsize=9, color=QUIET, va="center")
    draw_imports(axes, heights)
    draw_rooms(axes, heights)
    draw_flow(axes, heights)
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure).print_png(str(path))


def box(axes: Axes, x: float, y: float, width: float, **style: Any) -> None:
    shape = FancyBboxPatch((x, y - BOX / 2), width, BOX, boxstyle="round,pad=0,rounding_size=0.08", **style)
    axes.add_patch(shape)


def colour(room: str, heights: Heights) -> str:
    return COLOURS[list(heights).index(room) % len(COLOURS)]


def draw_rooms(axes: Axes, heights: Heights) -> None:
    for room, y in heights.items():
        hue = colour(room, heights)
        box(axes, LEFT, y, RIGHT - LEFT, facecolor=hue, edgecolor="none", alpha=0.14)
        axes.text(LEFT + 0.12, y + 0.1, room, fontsize=11, weight="bold", color=hue, va="center")
        axes.text(LEFT + 0.12, y - 0.1, sentence(room), fontsize=9, color=INK, va="center")


def draw_imports(axes: Axes, heights: Heights) -> None:
    """A line down to every imported room, and a line from every room across those of the rooms that it imports."""
    counts = imports()
    lanes = {room: LEFT - 0.3 - LANE * (len(heights) - 2 - i) for i, room in enumerate(heights)}
    for room, y in heights.items():
        if crossed := [lanes[imported] for importer, imported in counts if importer == room]:
            axes.plot([min(crossed), LEFT], [y + 0.1] * 2, color="#b5b5b5", lw=0.8, zorder=1)
        if users := [heights[importer] + 0.1 for importer, imported in counts if imported == room]:
            draw_lane(axes, lanes[room], [*users, y - 0.1], colour(room, heights))
    for (importer, imported), count in sorted(counts.items()):
        hue = colour(imported, heights) if heights[importer] > heights[imported] else WRONG
        axes.plot(lanes[imported], heights[importer] + 0.1, "o", ms=2.6 + 0.9 * count**0.5, color=hue, mew=0, zorder=3)


def draw_lane(axes: Axes, x: float, ys: list[float], hue: str) -> None:
    axes.plot([x, x], [min(ys), max(ys)], color=hue, lw=1.3, zorder=2, solid_capstyle="round")
    axes.add_patch(arrow_patch((x, ys[-1]), (LEFT, ys[-1]), color=hue, lw=1.3, mutation_scale=9))


def draw_flow(axes: Axes, heights: Heights) -> None:
    for stop in STOPS.values():
        y = heights[stop.room]
        box(axes, stop.x - STOP / 2, y, STOP, facecolor="#fff4ec", edgecolor=FLOW, linewidth=1.1)
        axes.text(stop.x, y, stop.text, fontsize=9.5, color=INK, ha="center", va="center", linespacing=1.05)
    for arrow in ARROWS:
        tail, head = (
            side_of(STOPS[name], heights, side, shift)
            for name, side, shift in zip((arrow.start, arrow.end), arrow.sides, arrow.shift, strict=True)
        )
        axes.add_patch(arrow_patch(tail, head, arrow.sides, color=FLOW, lw=1.6, mutation_scale=13))
        x, y = (tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2
        axes.text(x + 0.08, y, arrow.label, fontsize=8.5, color=QUIET, va="center", linespacing=1.05)


def side_of(stop: Stop, heights: Heights, side: str, shift: float) -> tuple[float, float]:
    x, y = stop.x, heights[stop.room]
    ends = {
        "top": (x + shift, y + BOX / 2),
        "bottom": (x + shift, y - BOX / 2),
        "left": (x - STOP / 2, y + shift),
        "right": (x + STOP / 2, y + shift),
    }
    return ends[side]


def arrow_patch(
    tail: tuple[float, float], head: tuple[float, float], sides: tuple[str, str] = UP, **style: Any
) -> FancyArrowPatch:
    """Straight where both ends are on a line, else with one corner."""
    angles = [90 if side in UP else 0 for side in sides]
    corner = f"angle,angleA={angles[0]},angleB={angles[1]},rad=6" if angles[0] != angles[1] else "arc3"
    return FancyArrowPatch(tail, head, arrowstyle="-|>", connectionstyle=corner, shrinkA=0, shrinkB=0, **style)


if __name__ == "__main__":
    parser = ArgumentParser(description="Draw the rooms of the package, who imports whom, and how data flows.")
    parser.add_argument("path", type=Path, help="the PNG file to write")
    draw(parser.parse_args().path)
