"""The fast proof: on the illustrative CMDP, Explore-Go generalises where the baseline does not."""

import csv
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

SEEDS = range(4)
FLAGS = """
[flags]
train_for_env_steps = 20000
milestone_step_freq = 5000
"""


def late_success(folder: Path, split: str) -> float:
    """Mean over the second half of the training: a single milestone says little about white."""
    with (folder / "evaluation.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == split and int(row["frames"]) >= 10000]
    assert len(rows) >= 2
    return statistics.mean(float(row["success_rate"]) for row in rows)


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_explore_go_generalises_to_white(tmp_path: Path) -> None:
    """The shipped sweep with fewer seeds and two fifths of its frames."""
    sweep = tmp_path / "illustrative.toml"
    sweep.write_text(Path("launch/illustrative.toml").read_text() + FLAGS)
    words = ("sweep", str(sweep), "--backend=local", "--max_parallel=2", "--with_report", f"--train_dir={tmp_path}")
    seeds = f"--seeds={','.join(map(str, SEEDS))}"
    subprocess.run([sys.executable, "-m", "sf_explore_go", *words, seeds], check=True, stdin=subprocess.DEVNULL)
    success = {
        (steps, split): [late_success(tmp_path / "illustrative" / f"k{steps}_seed{seed}", split) for seed in SEEDS]
        for steps in (0, 8)
        for split in ("train", "test")
    }
    assert min(success[0, "train"]) > 0.9
    assert min(success[8, "train"]) > 0.9
    assert statistics.mean(success[8, "test"]) > 0.9
    assert statistics.mean(success[8, "test"]) > statistics.mean(success[0, "test"]) + 0.1
