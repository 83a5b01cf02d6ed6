"""What `sf-explore-go coverage` leaves in runs' folders, by explorer: how much it sees, and where the agent starts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sf_explore_go.core.statistics import bootstrap_interval
from sf_explore_go.explorers.registry import NONE
from sf_explore_go.reporting.records import COVERAGE, GO_STARTS
from sf_explore_go.reporting.records import COVERAGE_NUMBERS as NUMBERS
from sf_explore_go.reporting.runs import Arm
from sf_explore_go.worlds.registry import known_places

UNTRAINED = (NONE, "random")  # the same in whichever run they are measured
HEADERS = (
    "arm", "runs measured", "share of the map per explore phase", "share that the phases of a run see together",
    "cells that the go phases start in",
)  # fmt: skip


@dataclass
class Seen:
    """One explorer: a value per measured run, and every start of a go phase."""

    explorer: str
    values: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in NUMBERS})
    starts: list[tuple[float, float]] = field(default_factory=list)


def explorer_of(arm: Arm) -> str:
    return str(arm.config["explorer"]) if arm.config["max_pure_expl_steps"] else NONE


def read_seen(arms: Sequence[Arm]) -> dict[str, Seen]:
    """arm -> what was measured of its explorer, in its own runs, or in those of other arms if its explorer is not
    trained; arms without a measurement are left out."""
    seen = {}
    for arm in arms:
        explorer = explorer_of(arm)
        one = measured(arm, explorer)
        if not one.starts and explorer in UNTRAINED:
            others = [other for other in arms if other is not arm and explores_alike(arm, other)]
            one = measured(Arm(arm.name, [run for other in others for run in other.runs]), explorer)
        if one.starts:
            seen[arm.name] = one
    return seen


def explores_alike(arm: Arm, other: Arm) -> bool:
    """Whether what was measured of an untrained explorer in the other arm's runs holds for this arm."""
    ours, theirs = arm.config, other.config
    return ours["env"] == theirs["env"] and ours["max_pure_expl_steps"] in (0, theirs["max_pure_expl_steps"])


def measured(arm: Arm, explorer: str) -> Seen:
    """What the tables of an arm's runs hold of an explorer."""
    seen = Seen(explorer)
    for tables in [run.tables for run in arm.runs]:
        for row in tables.get(COVERAGE, ()):
            if row["explorer"] == explorer:
                for name in NUMBERS:
                    seen.values[name].append(row[name])
        seen.starts += [(row["x"], row["y"]) for row in tables.get(GO_STARTS, ()) if row["explorer"] == explorer]
    return seen


def coverage_cells(seen: dict[str, Seen]) -> list[list[str]]:
    """Rows of the table, as people read them: means with 95 % intervals over runs."""

    def mean(values: Sequence[float], form: str) -> str:
        middle, low, high = bootstrap_interval(values, bounds=(0.0, 1.0) if "%" in form else (0.0, math.inf))
        interval = f" ({format(low, form)} to {format(high, form)})" if len(values) > 1 else ""
        return f"{format(middle, form)}{interval}"

    rows = []
    for name, one in seen.items():
        forms = {"per_phase": ".1%", "together": ".0%", "start_cells": ".1f"}
        cells = [mean(one.values[number], forms[number]) for number in NUMBERS]
        if not any(one.values["per_phase"]) or one.explorer == NONE:
            cells[:2] = ["", ""]  # nobody explores
        rows.append([name, str(len(one.values["per_phase"])), *cells])
    return rows


def start_figure(name: str, seen: Seen, env: str) -> Figure | None:
    """Where the go phases start, on the map; None for a world without one."""
    place = known_places().get(env)  # a world from outside is code, and a report runs none
    cells = place.world.cells() if place is not None else None
    if place is None or cells is None:
        return None
    heat: Any = cells.visit_counts(np.array(seen.starts)) * cells.free
    title = f"{name}: where the agent starts to learn\n{len(seen.starts)} go phases"
    return place.world.map_figure(heat=heat, title=title)
