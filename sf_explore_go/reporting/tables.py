"""The final table of a report. Every number says how many seeds and episodes are behind it."""

from collections.abc import Sequence
from typing import Any

from sf_explore_go.reporting.runs import SPLITS, Arm
from sf_explore_go.statistics import bootstrap_interval, improvement_interval, interquartile_mean

RATE = (0.0, 1.0)


def final_rows(arms: Sequence[Arm]) -> list[dict[str, Any]]:
    """Success at the last evaluation: mean and interquartile mean with intervals over seeds, and how probably a run of
    the arm beats one of the first arm on test contexts."""
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
        row["p_better_on_test"], row["p_better_low"], row["p_better_high"] = better(arm, arms[0])
        rows.append(row)
    return rows


def episodes(arm: Arm, split: str) -> str:
    """Per seed."""
    least, most = arm.episodes(split)
    return str(least) if least == most else f"{least} to {most}"


def better(arm: Arm, first: Arm) -> tuple[float | None, float | None, float | None]:
    """None for the first arm, and where that is not the baseline."""
    if arm is first or not first.name.startswith("baseline"):
        return None, None, None
    return improvement_interval(arm.final("test"), first.final("test"))


HEADERS = (
    "arm", "seeds", "episodes per seed", "train success (95 % interval)", "test success (95 % interval)",
    "train IQM", "test IQM (95 % interval)", "P(beats baseline on test)",
)  # fmt: skip


def cells(row: dict[str, Any]) -> list[str]:
    """One row of the table, as people read it."""
    played = row["train_episodes"]
    if row["test_episodes"] != played:
        played = f"train {played}, test {row['test_episodes']}"
    chance = ""
    if row["p_better_on_test"] is not None:
        chance = f"{row['p_better_on_test']:.2f} ({row['p_better_low']:.2f} to {row['p_better_high']:.2f})"
    return [
        row["arm"], str(row["seeds"]), played, with_interval(row, "train"), with_interval(row, "test"),
        f"{row['train_iqm']:.3f}", with_interval(row, "test_iqm"), chance,
    ]  # fmt: skip


def with_interval(row: dict[str, Any], name: str) -> str:
    """One seed has no interval over seeds."""
    if row["seeds"] == 1:
        return f"{row[name]:.3f}"
    return f"{row[name]:.3f} ({row[f'{name}_low']:.3f} to {row[f'{name}_high']:.3f})"


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    return markdown_table(HEADERS, [cells(row) for row in rows])


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
