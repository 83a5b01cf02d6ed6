"""A serial training computes with one thread, unless the user asks for more."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXPLORER = """
from pathlib import Path
import torch
from sf_explore_go.explorers.random import RandomExplorer

class Counts(RandomExplorer):
    def begin_phase(self, obs):
        Path("threads").write_text(str(torch.get_num_threads()))
"""


@pytest.mark.parametrize(("asked", "used"), [(None, "1"), ("2", "2")])
def test_threads_of_a_serial_training(asked: str | None, used: str, tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(EXPLORER)
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    if asked is not None:
        environment["OMP_NUM_THREADS"] = asked
    command = ["train", "--env=illustrative_train", "--explorer=counting:Counts", "--train_for_env_steps=100"]
    subprocess.run(
        [sys.executable, "-m", "sf_explore_go", *command, "--experiment=run"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
    assert (tmp_path / "threads").read_text() == used
