"""The figure of worlds whose states can be listed: what the training has met, and how near its agent is to the best."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from sf_explore_go.core.statistics import bootstrap_interval
from sf_explore_go.reporting.figures import COLOURS, STYLES
from sf_explore_go.reporting.runs import Arm

PANELS = {  # number of a row -> title, splits
    "explored": ("state-actions met so far (share)", ("train",)),
    "recent": ("states in the agent's recent samples (share)", ("train",)),
    "value_error": ("value error |V - V*|, all states", ("train", "test")),
    "optimal": ("optimal actions, all states (share)", ("train", "test")),
}


def exact_figure(arms: Sequence[Arm]) -> Figure | None:
    """Mean over seeds with its 95 % interval against frames; None if no run has such numbers."""
    if not any(arm.curve("train", "value_error") for arm in arms):
        return None
    picture = Figure(figsize=(10, 6.6), layout="constrained")
    FigureCanvasAgg(picture)
    for axes, (what, (words, splits)) in zip(picture.subplots(2, 2).flat, PANELS.items(), strict=True):
        for arm, colour in zip(arms, cycle(COLOURS), strict=False):
            for split in splits:
                draw_curve(axes, arm, split, what, colour)
        axes.set_title(words, fontsize=10)
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    picture.suptitle("What the training has met, and how near its agent is to the optimum", fontsize=12)
    handles, labels = axes.get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return picture


def draw_curve(axes: Axes, arm: Arm, split: str, what: str, colour: str) -> None:
    curve = arm.curve(split, what)
    if not curve:
        return
    summary = np.array([bootstrap_interval(values, bounds=(0.0, 1.0)) for values in curve.values()])
    axes.plot(list(curve), summary[:, 0], STYLES[split], color=colour, label=f"{arm.name}: {split} contexts")
    axes.fill_between(list(curve), summary[:, 1], summary[:, 2], color=colour, alpha=0.15, linewidth=0)
