"""The tables of docs/e3b.md and docs/explorers.md, from what `coverage` measured.

python launch/explorer_tables.py docs/results docs/figures
"""

import csv
from argparse import ArgumentParser
from pathlib import Path

from sf_explore_go.reporting.tables import markdown_table

SETTINGS = {
    "counts_as_before": "counts, discount 0.99, the former preset's pull towards uniform actions",
    "counts_long_discount": "counts, discount 0.99, less pull, larger steps",
    "counts": "counts, discount 0.9, less pull",
    "counts_large_steps": "counts, discount 0.9, less pull, larger steps",
    "e3b": "E3B, discount 0.9, inverse dynamics, ridge 1",
    "e3b_small_ridge": "the same, ridge 0.1, inverse dynamics with 4 passes",
    "e3b_global": "the same, ridge 1, with the global bonus",
    "e3b_random_features": "E3B, discount 0.9, untrained network, ridge 0.1",
    "e3b_random_features_long": "E3B, discount 0.97, untrained network, ridge 1",
    "e3b_observation": "E3B, discount 0.9, coarse pictures, ridge 0.1",
    "e3b_observation_small_ridge": "**E3B, discount 0.9, coarse pictures, ridge 0.01 (the laptop preset)**",
}


def read(source: Path) -> list[dict[str, str]]:
    with source.open(newline="") as file:
        return list(csv.DictReader(file))


def per_phase(row: dict[str, str]) -> str:
    return f"{float(row['per_phase']):.1%} ({float(row['low']):.1%} to {float(row['high']):.1%})"


def search_table(rows: list[dict[str, str]]) -> str:
    """The runs of launch/explorer_search.toml."""
    shown = [
        (SETTINGS[row["arm"]], f"{int(row['frames']) / 1e6:.1f} M", per_phase(row), f"{float(row['together']):.0%}")
        for row in rows
    ]
    return markdown_table(("explorer", "frames", "share of the map per phase", "all phases together"), shown)


def ladder_table(rows: list[dict[str, str]]) -> str:
    """From the explorer that sees least to the one that sees most."""
    shown = [
        (
            row["explorer"],
            per_phase(row),
            f"{float(row['together']):.0%}",
            f"{float(row['start_cells_corrected']):.0f}",
            f"{float(row['oracle_starts']):.0%}",
        )
        for row in sorted(rows, key=lambda row: float(row["per_phase"]))
    ]
    header = ("explorer", "map per phase, 95 % interval", "all phases together", "start cells", "oracle starts")
    return markdown_table(header, shown)


if __name__ == "__main__":
    parser = ArgumentParser(description="Make the tables of how much explorers see.")
    parser.add_argument("results", type=Path, help="the folder with the CSV files")
    parser.add_argument("figures", type=Path, help="the folder for the tables")
    args = parser.parse_args()
    for name, table in (("explorer_search", search_table), ("ladder", ladder_table)):
        target = args.figures / name / "coverage.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(table(read(args.results / f"{name}.csv")) + "\n")
