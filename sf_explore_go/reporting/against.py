"""Final success against a setting that the arms of a report have in several values: K, or the number of contexts."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sf_explore_go.core.statistics import bootstrap_interval
from sf_explore_go.reporting.arms import basic_name, schedule_name
from sf_explore_go.reporting.figures import COLOURS, RATE, STYLES
from sf_explore_go.reporting.runs import Arm

SEVERAL = 3  # values that make a curve


def length_figure(arms: Sequence[Arm], title: str) -> Figure | None:
    """Final success against K, if a report has one explorer, one schedule and at least three values of K, one arm each;
    else None."""
    lengths = [int(arm.config["max_pure_expl_steps"]) for arm in arms]
    exploring = [arm for arm in arms if arm.config["max_pure_expl_steps"]]
    explorers = {(arm.config["explorer"], *schedule_name(arm.settings)) for arm in exploring}
    if len(set(lengths)) < SEVERAL or len(set(lengths)) < len(arms) or len(explorers) != 1:
        return None
    picture, axes = empty("K: the explore phase lasts 0 to K decisions", title)
    for split, colour in (("train", COLOURS[0]), ("reachable", COLOURS[1]), ("test", COLOURS[2])):
        if all(split in arm.splits for arm in arms):
            draw(axes, arms, lengths, split, colour, f"{split} contexts")
    axes.set_xticks(lengths)
    axes.legend(frameon=False, loc="lower right")
    return picture


def contexts_figure(arms: Sequence[Arm], title: str) -> Figure | None:
    """Final success against the number of training contexts, if there are at least three; else None."""
    counts = {contexts(arm) for arm in arms}
    lines: dict[str, list[Arm]] = {}
    for arm in sorted(arms, key=lambda arm: contexts(arm)):
        lines.setdefault(basic_name(arm.config), []).append(arm)
    twice = any(len({contexts(arm) for arm in line}) < len(line) for line in lines.values())
    if len(counts) < SEVERAL or twice:
        return None
    picture, axes = empty("training contexts", title)
    for (name, line), colour in zip(lines.items(), cycle(COLOURS), strict=False):
        for split in ("train", "test"):
            places = [contexts(arm) for arm in line]
            draw(axes, line, places, split, colour, f"{name}: {split} contexts")
    axes.set_xscale("log")
    axes.set_xticks(sorted(counts), [str(count) for count in sorted(counts)])
    axes.minorticks_off()
    axes.legend(frameon=False, loc="lower right")
    return picture


def contexts(arm: Arm) -> int:
    return int(arm.config.get("num_contexts", 0))


def empty(label: str, title: str) -> tuple[Figure, Axes]:
    picture = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(picture)
    axes = picture.subplots()
    axes.set_xlabel(label)
    axes.set_ylabel("final success rate")
    axes.set_ylim(-0.03, 1.03)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("mean and 95 % interval over seeds; dots are seeds", fontsize=9)
    picture.suptitle(title, fontsize=12)
    return picture, axes


def draw(axes: Axes, arms: Sequence[Arm], places: Sequence[int], split: str, colour: str, label: str) -> None:
    means = np.array([bootstrap_interval(arm.final(split), bounds=RATE) for arm in arms])
    for place, arm in zip(places, arms, strict=True):
        axes.scatter([place] * len(arm.final(split)), arm.final(split), s=12, color=colour, alpha=0.25, linewidth=0)
    errors = [means[:, 0] - means[:, 1], means[:, 2] - means[:, 0]]
    axes.errorbar(places, means[:, 0], errors, fmt=f"o{STYLES[split]}", color=colour, capsize=3, label=label)
