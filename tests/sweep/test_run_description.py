"""Sample Factory's own launcher with our sweep files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import UsageError
from sf_explore_go.runs.status import FINISHED, read_status
from sf_explore_go.sweep import run_description
from tests.sweep.sweeps import write


def test_it_makes_the_same_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SF_EXPLORE_GO_SWEEP", "launch/smoke.toml")
    made = list(run_description.RUN_DESCRIPTION.generate_experiments("runs", makedirs=False))
    configs = [parse_train_args(command.split()[4:]) for command, *_ in made]
    assert all(command.startswith("python -m sf_explore_go train ") for command, *_ in made)
    assert [(c.max_pure_expl_steps, c.seed) for c in configs] == [(0, 0), (0, 1), (50, 0), (50, 1)]
    assert {c.preset for c in configs} == {"smoke"}
    assert [c.arm for c in configs] == ["k0", "k0", "k50", "k50"]
    assert [variables for *_, variables in made] == [{"OMP_NUM_THREADS": "1"}] * 4
    monkeypatch.delenv("SF_EXPLORE_GO_SWEEP")
    with pytest.raises(UsageError, match="SF_EXPLORE_GO_SWEEP is not set"):
        _ = run_description.RUN_DESCRIPTION


@pytest.mark.slow
def test_the_launcher_runs_them(tmp_path: Path) -> None:
    file = write(tmp_path, seeds="seeds = [4]")
    command = [sys.executable, "-m", "sample_factory.launcher.run", "--run=sf_explore_go.sweep.run_description"]
    subprocess.run(
        [*command, f"--train_dir={tmp_path}", "--backend=processes", "--max_parallel=2"],
        check=True,
        env=os.environ | {"SF_EXPLORE_GO_SWEEP": str(file)},
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    for folder in ("small/k0_/00_k0_see_4", "small/k8_/00_k8_see_4"):
        status = read_status(tmp_path / folder)
        assert status is not None
        assert (status.state, status.budget) == (FINISHED, 600)
