"""What `sf-explore-go coverage` leaves in runs' folders, by explorer: how much it sees, and where the agent starts."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.statistics import bootstrap_interval
from sf_explore_go.reporting.runs import Arm
from sf_explore_go.worlds.doom.register import ENVS
from sf_explore_go.worlds.doom.scenario import load_scenario

COVERAGE, GO_STARTS = "coverage.csv", "go_starts.csv"
NONE = "none"  # the explorer of the baseline
HEADERS = (
    "arm", "runs measured", "share of the map per explore phase", "share that the phases of a run see together",
    "cells that the go phases start in",
)  # fmt: skip
NUMBERS = ("per_phase", "together", "start_cells")


@dataclass
class Seen:
    """One explorer: a value per measured run, and every start of a go phase."""

    values: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in NUMBERS})
    starts: list[tuple[float, float]] = field(default_factory=list)


def explorer_of(arm: Arm) -> str:
    config = arm.runs[0].config
    return str(config["explorer"]) if config["max_pure_expl_steps"] else NONE


def read_table(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    try:
        with path.open(newline="") as file:
            return list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read ({error}); repair it or move it away") from error


def read_seen(arms: Sequence[Arm]) -> dict[str, Seen]:
    """arm -> what was measured of its explorer, in whichever runs' folders; arms without a measurement are left out."""
    seen = {explorer_of(arm): Seen() for arm in arms}
    for folder in [run.folder for arm in arms for run in arm.runs]:
        try:
            for row in read_table(folder / COVERAGE):
                if row["explorer"] in seen:
                    for name in NUMBERS:
                        seen[row["explorer"]].values[name].append(float(row[name]))
            for row in read_table(folder / GO_STARTS):
                if row["explorer"] in seen:
                    seen[row["explorer"]].starts.append((float(row["x"]), float(row["y"])))
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"{folder / COVERAGE} or {GO_STARTS} beside it cannot be read ({error!r}); run sf-explore-go coverage"
            ) from error
    return {arm.name: seen[explorer_of(arm)] for arm in arms if seen[explorer_of(arm)].starts}


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
        if not any(one.values["per_phase"]) or name.startswith("baseline"):
            cells[:2] = ["", ""]  # nobody explores
        rows.append([name, str(len(one.values["per_phase"])), *cells])
    return rows


def start_figure(name: str, seen: Seen, env: str) -> Figure | None:
    """Where the go phases start, on the map; None for a world without one."""
    if env not in ENVS:
        return None
    from sf_explore_go.worlds.doom.geometry import free_cells
    from sf_explore_go.worlds.doom.mapview import map_figure

    scenario = load_scenario(ENVS[env][0])
    cells = free_cells(scenario)
    heat: Any = cells.visit_counts(np.array(seen.starts)) * cells.free
    title = f"{name}: where the agent starts to learn\n{len(seen.starts)} go phases"
    return map_figure(scenario, heat=heat, title=title)
