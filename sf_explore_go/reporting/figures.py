"""The figures of a report: curves with intervals, every seed at the end, success by goal on the map."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from sf_explore_go.core.statistics import bootstrap_interval, interquartile_mean
from sf_explore_go.reporting.runs import Arm
from sf_explore_go.worlds.registry import known_places

COLOURS = ("#4d4d4d", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b3294")
STYLES = {"train": "-", "reachable": ":", "test": "--"}  # splits in this order; others are not drawn
RATE = (0.0, 1.0)  # what a success rate can be
ROOMY = 4  # so many arms have room for their names in full size


def draw_curves(axes: Axes, arms: Sequence[Arm]) -> None:
    """Mean over seeds with its 95 % bootstrap interval; training contexts solid, test contexts dashed, others
    dotted. A point that not all seeds of its arm have says how many it has."""
    partial = False
    for arm, colour in zip(arms, cycle(COLOURS), strict=False):
        for split, style in STYLES.items():
            if split not in arm.splits:
                continue
            curve = arm.curve(split)
            frames = list(curve)
            summary = np.array([bootstrap_interval(curve[f], bounds=RATE) for f in frames])
            face = colour if split == "train" else "white"
            label = f"{arm.name}: {split} ({seeds(len(arm.runs))})"
            (line,) = axes.plot(frames, summary[:, 0], style, color=colour, label=label, linewidth=1.8)
            line.set(marker="o", markersize=3.5, markerfacecolor=face)
            axes.fill_between(frames, summary[:, 1], summary[:, 2], color=colour, alpha=0.15, linewidth=0)
            partial |= say_how_many(axes, curve, len(arm.runs), colour, above=split == "train")
    if partial:
        axes.set_title("a point that does not have all seeds of its arm says how many it has", fontsize=8)
    axes.set_xlabel("total environment frames (both phases)")
    axes.set_ylabel("success rate")
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def say_how_many(axes: Axes, curve: dict[int, list[float]], seeds: int, colour: str, *, above: bool) -> bool:
    """Write it beside the points that lack seeds; whether there are any."""
    lacking = {frames: values for frames, values in curve.items() if len(values) < seeds}
    for frames, values in lacking.items():
        axes.annotate(
            f"{len(values)} of {seeds}",
            (frames, float(np.mean(values))),
            xytext=(0, 4 if above else -4),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
            fontsize=6,
            color=colour,
        )
    return bool(lacking)


def seeds(count: int) -> str:
    return f"{count} seed{'s' if count != 1 else ''}"


def draw_finals(axes: Axes, arms: Sequence[Arm]) -> None:
    """Every seed as a point; beside them the mean with its interval, and the interquartile mean as a diamond."""
    size = 8 if len(arms) <= ROOMY else 6
    for column, (arm, colour) in enumerate(zip(arms, cycle(COLOURS), strict=False)):
        for offset, split in ((-0.2, "train"), (0.2, "test")):
            values = arm.final(split)
            jitter = np.linspace(-0.07, 0.07, len(values)) if len(values) > 1 else np.zeros(1)
            face = colour if split == "train" else "none"
            axes.scatter(column + offset + jitter, values, s=16, facecolors=face, edgecolors=colour, alpha=0.6)
            mean, low, high = bootstrap_interval(values, bounds=RATE)
            axes.errorbar(
                column + offset + 0.13, mean, [[mean - low], [high - mean]], fmt="_", color="black", capsize=3
            )
            middle = float(interquartile_mean(values))
            axes.plot(
                column + offset + 0.17, middle, marker="D", markersize=4.5, color="white", markeredgecolor="black"
            )
            axes.annotate(split, (column + offset, -0.1), ha="center", fontsize=size, annotation_clip=False)
    names = [arm.name.replace(", ", "\n") for arm in arms]
    if len(arms) > ROOMY:
        names = [name.replace(" (", "\n(") for name in names]
    axes.set_xticks(range(len(arms)), names, fontsize=size)
    axes.tick_params(axis="x", pad=24, length=0)
    axes.set_xlim(-0.5, len(arms) - 0.5)
    axes.set_ylim(-0.03, 1.03)
    ends = {run.end for arm in arms for run in arm.runs if run.end is not None}
    where = f"at {EngFormatter(sep=' ')(ends.pop())} frames" if len(ends) == 1 else "final"
    axes.set_title(f"{where}: seeds (o), mean (bar), interquartile mean (diamond)", fontsize=9)
    axes.grid(axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def main_figure(arms: Sequence[Arm], title: str) -> Figure:
    """Curves on the left, finals on the right."""
    picture = Figure(figsize=(10, 4.4), layout="constrained")
    FigureCanvasAgg(picture)
    curves, finals = picture.subplots(1, 2, width_ratios=[3, 2])
    draw_curves(curves, arms)
    draw_finals(finals, arms)
    picture.suptitle(title, fontsize=12)
    handles, labels = curves.get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return picture


def goal_figure(arm: Arm) -> Figure | None:
    """Success by test goal on the map, over all seeds of an arm; None if there is no detail or no map."""
    rates, place = arm.goal_rates(), known_places().get(str(arm.runs[0].config["env"]))
    if not rates or place is None:  # a world from outside is code, and a report runs none
        return None
    episodes = sum(count for _, count in rates.values())
    title = f"{arm.name}: test success by goal\n{seeds(len(arm.runs))}, {episodes} episodes"
    return place.world.map_figure(rates={goal: rate for goal, (rate, _) in rates.items()}, title=title)
