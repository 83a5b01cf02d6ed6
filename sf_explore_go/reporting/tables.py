"""The final table of a report. Every number says how many seeds and episodes are behind it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sf_explore_go.core.files import write_csv
from sf_explore_go.core.statistics import (
    bootstrap_interval,
    improvement_interval,
    interquartile_mean,
    mean,
    probability_of_improvement,
)
from sf_explore_go.reporting.arms import baseline_of
from sf_explore_go.reporting.runs import SPLITS, Arm, Run

RATE, GAIN = (0.0, 1.0), (-1.0, 1.0)
# Columns that only some worlds have: name -> header, split, number of a row
MORE = {
    "reachable": ("reachable success", "reachable", "success_rate"),
    "explored": ("state-actions met", "train", "explored"),
    "recent": ("states in recent samples", "train", "recent"),
    "value_error": ("value error, training states", "train", "value_error"),
    "test_value_error": ("value error, test states", "test", "value_error"),
    "optimal": ("optimal actions, training states", "train", "optimal"),
    "test_optimal": ("optimal actions, test states", "test", "optimal"),
}
TRIMMED = 4  # seeds from which on the interquartile mean leaves any out
Bounds = tuple[float | None, float | None, float | None]  # estimate, low, high; one seed has no interval over seeds
NOTHING: Bounds = (None, None, None)


def final_rows(arms: Sequence[Arm]) -> list[dict[str, Any]]:
    """Success where the runs are compared: mean and interquartile mean with intervals over seeds; against the baseline
    on test contexts, the gain seed by seed, and how probably a run of the arm beats one of the baseline."""
    rows = []
    for arm in arms:
        row: dict[str, Any] = {"arm": arm.name, "seeds": len(arm.runs)}
        row["frames"] = span([run.final_frames for run in arm.runs])
        row["last_frames"] = span([run.last_frames for run in arm.runs])
        for split in SPLITS:
            values = arm.final(split)
            put(row, split, estimate(values, mean, RATE))
            put(row, f"{split}_iqm", estimate(values, interquartile_mean, RATE))
            row[f"{split}_return"] = float(mean(arm.final_returns(split)))
            row[f"{split}_episodes"] = span([run.final(split).episodes for run in arm.runs])
        for name, (_, split, what) in MORE.items():
            if values := arm.final(split, what):
                put(row, name, estimate(values, mean, RATE))
        baseline = baseline_of(arm, arms)
        paired = [] if baseline is None else gains(arm, baseline)
        put(row, "test_gain", estimate(paired, mean, GAIN) if paired else NOTHING)
        row["gain_seeds"] = len(paired)
        row["p_better_on_test"], row["p_better_low"], row["p_better_high"] = better(arm, baseline)
        rows.append(row)
    return rows


def put(row: dict[str, Any], name: str, bounds: Bounds) -> None:
    row[name], row[f"{name}_low"], row[f"{name}_high"] = bounds


def estimate(values: Sequence[float], estimator: Any, bounds: tuple[float, float]) -> Bounds:
    middle, low, high = bootstrap_interval(values, estimator, bounds)
    return (middle, low, high) if len(values) > 1 else (middle, None, None)


def span(counts: Sequence[int]) -> str:
    """Of the runs of an arm."""
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"


def better(arm: Arm, baseline: Arm | None) -> Bounds:
    """One run against one run is no chance at all; below two seeds in an arm there is no interval."""
    if baseline is None or len(arm.runs) == len(baseline.runs) == 1:
        return NOTHING
    ours, theirs = arm.final("test"), baseline.final("test")
    return improvement_interval(ours, theirs) or (probability_of_improvement(ours, theirs), None, None)


def gains(arm: Arm, baseline: Arm) -> list[float]:
    """What each seed of the arm has more on test contexts than the same seed of the baseline, which was trained on the
    same contexts. How hard those are is then not taken for a difference between arms."""
    theirs = {pair_key(run): run.final("test").success_rate for run in baseline.runs}
    return [run.final("test").success_rate - theirs[pair_key(run)] for run in arm.runs if pair_key(run) in theirs]


def pair_key(run: Run) -> tuple[int, int]:
    return run.config["seed"], run.config.get("context_seed", run.config["seed"])


def columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """header -> cells, as people read them; columns that would say nothing are left out."""

    def cells(name: str, form: str = ".3f") -> list[str]:
        return [with_interval(row, name, form) for row in rows]

    def header(words: str, name: str) -> str:
        return words if all(row[f"{name}_low"] is None for row in rows) else f"{words} (95 % interval)"

    shown = {
        "arm": [row["arm"] for row in rows],
        "seeds": [str(row["seeds"]) for row in rows],
        "episodes per seed": [episodes(row) for row in rows],
    }
    if any(row["frames"] != row["last_frames"] for row in rows) or len({row["frames"] for row in rows}) > 1:
        shown["compared at frames"] = [row["frames"] for row in rows]
    shown |= {
        header("train success", "train"): cells("train"),
        header("test success", "test"): cells("test"),
    }
    if any(row["seeds"] >= TRIMMED for row in rows):  # with fewer it is the mean
        shown["train IQM"] = [f"{row['train_iqm']:.3f}" for row in rows]
        shown[header("test IQM", "test_iqm")] = cells("test_iqm")
    if any(row["gain_seeds"] for row in rows):
        shown[header("gain on test, seed by seed", "test_gain")] = cells("test_gain", "+.3f")
    if any(row["p_better_on_test"] is not None for row in rows):
        chances = [row | {"p_better": row["p_better_on_test"]} for row in rows]
        shown["P(beats baseline on test)"] = [with_interval(row, "p_better", ".2f") for row in chances]
    return shown


def state_columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """The same for what only worlds have whose states can be listed; empty for others."""
    shown = {
        f"{words} (95 % interval)": [with_interval(row, name, ".3f") for row in rows]
        for name, (words, _, _) in MORE.items()
        if all(name in row for row in rows)
    }
    return {"arm": [row["arm"] for row in rows], **shown} if shown else {}


def episodes(row: dict[str, Any]) -> str:
    train, test = row["train_episodes"], row["test_episodes"]
    return str(train) if train == test else f"train {train}, test {test}"


def with_interval(row: dict[str, Any], name: str, form: str) -> str:
    if row[name] is None:
        return ""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return f"{row[name]:{form}}" if low is None else f"{row[name]:{form}} ({low:{form}} to {high:{form}})"


def lines_of(shown: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Columns -> rows."""
    return [list(cells) for cells in zip(*shown.values(), strict=True)]


def markdown(shown: Mapping[str, Sequence[str]]) -> str:
    return markdown_table(list(shown), lines_of(shown))


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(word.replace('|', '&#124;') for word in line)} |" for line in lines)


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """As CSV, with the keys of the first row as header."""
    write_csv(path, list(rows[0]), rows)
