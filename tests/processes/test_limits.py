"""What ends a run."""

import time
from pathlib import Path

import pytest

from tests.training.recording import Recording, record

MODES = {
    "serial": ("--serial_mode=True", "--num_workers=1", "--num_envs_per_worker=2", "--worker_num_splits=1"),
    "parallel": ("--num_workers=1", "--num_envs_per_worker=2", "--worker_num_splits=1"),
}


@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=pytest.mark.slow if mode != "serial" else []) for mode in MODES]
)
def test_seconds(tmp_path: Path, mode: str) -> None:
    begin = time.time()
    runner = record(tmp_path, *MODES[mode], "--train_for_seconds=4", "--train_for_env_steps=1000000000")
    assert 4 <= time.time() - begin < 240
    assert runner.final_frames.total == sum(len(made) for made in Recording(tmp_path).made.values()) > 0


def test_frames_end_a_run_within_one_batch_of_the_total(tmp_path: Path) -> None:
    runner = record(tmp_path, *MODES["serial"], "--train_for_env_steps=2000")
    # the agent's batch is 32 steps; explore steps of the same time come on top
    assert 2000 <= runner.final_frames.total < 2200
