"""The fast proof: on the illustrative CMDP, Explore-Go generalises where the baseline does not."""

import csv
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = "0,1,2"


def final_success(folder: Path, split: str) -> float:
    with (folder / "evaluation.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == split]
    return float(rows[-1]["success_rate"])


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_explore_go_generalises_to_white(tmp_path: Path) -> None:
    runs = tmp_path / "illustrative"
    words = ("sweep", "launch/illustrative.toml", "--backend=local", "--max_parallel=2", "--with_report")
    command = [sys.executable, "-m", "sf_explore_go", *words, f"--train_dir={tmp_path}", f"--seeds={SEEDS}"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    success = {
        (steps, split): [final_success(runs / f"k{steps}_seed{seed}", split) for seed in SEEDS.split(",")]
        for steps in (0, 8)
        for split in ("train", "test")
    }
    assert min(success[0, "train"]) > 0.9
    assert min(success[8, "train"]) > 0.9
    assert statistics.mean(success[8, "test"]) > 0.9
    assert statistics.mean(success[8, "test"]) > statistics.mean(success[0, "test"]) + 0.1
