"""The table of docs/e3b.md, from what `coverage` measured of the runs of launch/explorer_search.toml.

python launch/explorer_tables.py docs/results/explorer_search/coverage.csv docs/figures/explorer_search
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


def search_table(source: Path) -> str:
    with source.open(newline="") as file:
        rows = list(csv.DictReader(file))
    shown = [
        (
            SETTINGS[row["arm"]],
            f"{int(row['frames']) / 1e6:.1f} M",
            f"{float(row['per_phase']):.1%} ({float(row['low']):.1%} to {float(row['high']):.1%})",
            f"{float(row['together']):.0%}",
        )
        for row in rows
    ]
    return markdown_table(("explorer", "frames", "share of the map per phase", "all phases together"), shown)


if __name__ == "__main__":
    parser = ArgumentParser(description="Make the table of the explorer search.")
    parser.add_argument("source", type=Path, help="the CSV file of the search")
    parser.add_argument("folder", type=Path, help="where the table goes")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    (args.folder / "coverage.md").write_text(search_table(args.source) + "\n")
