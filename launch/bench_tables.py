"""The tables of docs/performance.md, from what `sf-explore-go bench training --json=FILE` wrote, and from trainings
that took turns with those of earlier code.

python launch/bench_tables.py docs/results docs/figures/bench_training
"""

import csv
import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from sf_explore_go.bench.training import ARMS, PRESETS, STOCK, statistic, wasted
from sf_explore_go.reporting.tables import markdown_table

NAMES = {
    STOCK: "stock",
    "stock x 2": "stock, two policies",
    "K = 0": "ours, K = 0",
    "random": "ours, random explorer",
    "sticky": "ours, sticky explorer",
    "E3B": "ours, E3B",
}
KINDS = {
    "engines": "engines",
    "rollout": "rollout workers",
    "inference": "inference",
    "learner": "learners",
    "main": "main",
}
GB = 2**30


def turns_by_arm(rows: Sequence[Mapping], preset: str) -> dict[str, list[dict]]:
    """arm -> what was measured in each turn"""
    named = {row["quantity"]: row["detail"] for row in rows}
    ours = {arm: named[f"{preset} {arm}"]["ours"] for arm in ARMS if f"{preset} {arm}" in named}
    return {STOCK: named[f"{preset} K = 0"]["stock"]} | ours


def median(turns: Sequence[Mapping], key: str) -> float:
    return float(np.median([turn[key] for turn in turns]))


def ratios(turns: Sequence[Mapping], stock: Sequence[Mapping], key: str = "frames_per_second") -> list[float]:
    return [ours[key] / theirs[key] for ours, theirs in zip(turns, stock, strict=True)]


def speed_table(arms: Mapping[str, Sequence[dict]]) -> str:
    header = (
        "arm", "frames/s", "of stock (range over turns)", "samples/s", "wasted", "updates/s", "lag", "waited",
        "memory, GB", "first step, s", "of stock",
    )  # fmt: skip
    rows = []
    for arm, turns in arms.items():
        of_stock = ratios(turns, arms[STOCK])
        speed = f"**{np.median(of_stock):.2f}** ({min(of_stock):.2f} to {max(of_stock):.2f})" if arm != STOCK else "1"
        start = float(np.median(ratios(turns, arms[STOCK], "first_step_seconds")))
        waited = statistic(turns, "version_diff_waited")
        rows.append((
            NAMES[arm], f"{median(turns, 'frames_per_second'):,.0f}".replace(",", " "), speed,
            f"{median(turns, 'samples_per_second'):,.0f}".replace(",", " "), f"{wasted(turns):.1%}",
            f"{median(turns, 'updates_per_second'):.1f}", statistic(turns, "version_diff_avg"),
            "" if waited == "-" else waited, f"{median(turns, 'memory') / GB:.2f}",
            f"{median(turns, 'first_step_seconds'):.1f}", f"{start:.2f}",
        ))  # fmt: skip
    return markdown_table(header, rows)


def cores_table(arms: Mapping[str, Sequence[dict]]) -> str:
    rows = [
        (NAMES[arm], *(f"{np.median([turn['cores'].get(kind, 0.0) for turn in turns]):.2f}" for kind in KINDS))
        for arm, turns in arms.items()
    ]
    return markdown_table(("arm", *KINDS.values()), rows)


def before_and_after_table(source: Path) -> str:
    """Each arm next to stock with the same preset, and to itself before, turn by turn."""
    speeds: dict[tuple[str, str], dict[str, float]] = {}
    with source.open(newline="") as file:
        for row in csv.DictReader(file):
            speeds.setdefault((row["preset"], row["arm"]), {})[row["turn"]] = float(row["frames_per_second"])

    def ratio(preset: str, arm: str, other: str) -> str:
        theirs = speeds.get((preset, other))
        if theirs is None or arm == other:
            return ""
        found = [speed / theirs[turn] for turn, speed in speeds[preset, arm].items()]
        return f"**{np.median(found):.2f}** ({min(found):.2f} to {max(found):.2f})"

    rows = [
        (preset, arm, f"{np.median(list(turns.values())):,.0f}".replace(",", " "),
         ratio(preset, arm, "stock"), ratio(preset, arm, "E3B, before") if arm.startswith("E3B") else "")
        for (preset, arm), turns in speeds.items()
    ]  # fmt: skip
    return markdown_table(("preset", "arm", "frames/s", "of stock (range over turns)", "of E3B before"), rows)


def main(results: Path, folder: Path) -> None:
    rows = json.loads((results / "bench_training.json").read_text())["training"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "before_after.md").write_text(before_and_after_table(results / "speed_before_after.csv") + "\n")
    for preset in PRESETS:
        arms = turns_by_arm(rows, preset)
        (folder / f"{preset}.md").write_text(speed_table(arms) + "\n")
        (folder / f"{preset}_cores.md").write_text(cores_table(arms) + "\n")


if __name__ == "__main__":
    parser = ArgumentParser(description="Make the tables of docs/performance.md from what `bench training` measured.")
    parser.add_argument("results", type=Path, help="the folder of what was measured")
    parser.add_argument("folder", type=Path, help="where the tables go")
    args = parser.parse_args()
    main(args.results, args.folder)
