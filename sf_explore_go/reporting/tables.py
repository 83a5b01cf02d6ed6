"""The final table of a report. Every number says how many seeds and episodes are behind it."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sf_explore_go.core.statistics import Interval, bootstrap_interval, improvement_interval, interquartile_mean
from sf_explore_go.reporting.runs import SPLITS, Arm, Run

RATE, GAIN = (0.0, 1.0), (-1.0, 1.0)
NOTHING = (None, None, None)


def final_rows(arms: Sequence[Arm]) -> list[dict[str, Any]]:
    """Success at the last evaluation: mean and interquartile mean with intervals over seeds; against the baseline on
    test contexts, the gain seed by seed, and how probably a run of the arm beats one of the baseline."""
    rows = []
    for arm in arms:
        row: dict[str, Any] = {"arm": arm.name, "seeds": len(arm.runs)}
        for split in SPLITS:
            values = arm.final(split)
            row[split], row[f"{split}_low"], row[f"{split}_high"] = bootstrap_interval(values, bounds=RATE)
            middle = bootstrap_interval(values, interquartile_mean, RATE)
            row[f"{split}_iqm"], row[f"{split}_iqm_low"], row[f"{split}_iqm_high"] = middle
            row[f"{split}_return"] = bootstrap_interval(arm.final_returns(split))[0]
            row[f"{split}_episodes"] = episodes(arm, split)
        paired = gains(arm, arms[0])
        gain = bootstrap_interval(paired, bounds=GAIN) if paired else NOTHING
        row["test_gain"], row["test_gain_low"], row["test_gain_high"] = gain
        row["gain_seeds"] = len(paired)
        row["p_better_on_test"], row["p_better_low"], row["p_better_high"] = better(arm, arms[0])
        rows.append(row)
    return rows


def episodes(arm: Arm, split: str) -> str:
    """Per seed."""
    least, most = arm.episodes(split)
    return str(least) if least == most else f"{least} to {most}"


def has_baseline(arm: Arm, first: Arm) -> bool:
    """Not for the first arm itself, nor where that is not the baseline."""
    return arm is not first and first.name.startswith("baseline")


def better(arm: Arm, first: Arm) -> Interval | tuple[None, None, None]:
    return improvement_interval(arm.final("test"), first.final("test")) if has_baseline(arm, first) else NOTHING


def gains(arm: Arm, first: Arm) -> list[float]:
    """What each seed of the arm has more on test contexts than the same seed of the baseline, which was trained on the
    same contexts. How hard those are is then not taken for a difference between arms."""
    if not has_baseline(arm, first):
        return []
    theirs = {pair_key(run): run.final("test").success_rate for run in first.runs}
    return [run.final("test").success_rate - theirs[pair_key(run)] for run in arm.runs if pair_key(run) in theirs]


def pair_key(run: Run) -> tuple[int, int]:
    return run.config["seed"], run.config.get("context_seed", run.config["seed"])


HEADERS = (
    "arm", "seeds", "episodes per seed", "train success (95 % interval)", "test success (95 % interval)",
    "train IQM", "test IQM (95 % interval)", "gain on test, seed by seed (95 % interval)", "P(beats baseline on test)",
)  # fmt: skip


def cells(row: dict[str, Any]) -> list[str]:
    """One row of the table, as people read it."""
    played = row["train_episodes"]
    if row["test_episodes"] != played:
        played = f"train {played}, test {row['test_episodes']}"
    chance = ""
    if row["p_better_on_test"] is not None:
        chance = f"{row['p_better_on_test']:.2f} ({row['p_better_low']:.2f} to {row['p_better_high']:.2f})"
    more = "" if row["test_gain"] is None else with_interval(row, "test_gain", row["gain_seeds"], sign="+")
    return [
        row["arm"], str(row["seeds"]), played, with_interval(row, "train"), with_interval(row, "test"),
        f"{row['train_iqm']:.3f}", with_interval(row, "test_iqm"), more, chance,
    ]  # fmt: skip


def with_interval(row: dict[str, Any], name: str, seeds: int | None = None, sign: str = "") -> str:
    """One seed has no interval over seeds."""
    estimate, low, high = (f"{row[key]:{sign}.3f}" for key in (name, f"{name}_low", f"{name}_high"))
    return estimate if (seeds or row["seeds"]) == 1 else f"{estimate} ({low} to {high})"


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    return markdown_table(HEADERS, [cells(row) for row in rows])


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """As CSV, with the keys of the first row as header."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
