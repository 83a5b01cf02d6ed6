"""The local back end with real trainings: killed and started again, failing runs, cancelled."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sf_explore_go.runs.status import FINISHED, INTERRUPTED, RUNNING, Status, read_status
from sf_explore_go.sweep.plan import Run, Sweep, read_sweep
from sf_explore_go.sweep.state import holder, is_finished, is_locked, lock_file, run_folder
from tests.e2e.cli import sf_explore_go
from tests.sweep.sweeps import run_named, write

BROKEN_RUN = "k8_seed3"  # its checkpoint is damaged, so its training refuses to start


def make_sweep(folder: Path, frames: int, seeds: str) -> Sweep:
    steps = f"train_for_env_steps = {frames}\nsave_every_sec = 1"
    file = write(folder, train_for_env_steps=steps, seeds=f"seeds = {seeds}")
    return read_sweep(file, folder / "runs")


def start(sweep: Sweep, log: Path) -> subprocess.Popen:
    words = ("sweep", str(sweep.file), "--backend=local", "--max_parallel=2", f"--train_dir={sweep.folder.parent}")
    with log.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "sf_explore_go", *words], stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )


def going(sweep: Sweep) -> list[Run]:
    return [run for run in sweep.runs if is_locked(lock_file(sweep, run))]


def status_of(sweep: Sweep, run: Run) -> Status:
    status = read_status(run_folder(sweep, run))
    assert status is not None, run.experiment
    return status


def wait(sweep: Sweep, process: subprocess.Popen, until: Callable[[], bool], seconds: float = 600) -> None:
    """Wait for the condition, or for the process to end; never are more than two runs going."""
    deadline = time.time() + seconds
    while process.poll() is None and not until():
        assert time.time() < deadline
        assert len(going(sweep)) <= 2
        time.sleep(0.1)


def contents(sweep: Sweep, runs: list[Run]) -> dict[str, bytes]:
    return {run.experiment: (run_folder(sweep, run) / "status.json").read_bytes() for run in runs}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_killed_sweep_goes_on_and_every_run_finishes_once(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path, frames=4000, seeds="[0, 1, 2, 3]")
    damaged = sweep.folder / BROKEN_RUN / "checkpoint_p0/checkpoint_000000001_40.pth"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"no checkpoint")
    first = start(sweep, tmp_path / "first.log")

    def midway() -> bool:
        """Two have finished, and two others have frames and a checkpoint."""
        working = [run for run in going(sweep) if list(run_folder(sweep, run).glob("checkpoint_p0/checkpoint_*.pth"))]
        return sum(is_finished(sweep, run) for run in sweep.runs) >= 2 and len(working) == 2

    wait(sweep, first, midway)
    first.kill()
    first.wait()
    victim, survivor = going(sweep)
    pid = holder(lock_file(sweep, victim))
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    done = [run for run in sweep.runs if is_finished(sweep, run)]
    before = contents(sweep, done)

    second = start(sweep, tmp_path / "second.log")
    time.sleep(0.5)
    wait(sweep, second, lambda: False)
    output = (tmp_path / "second.log").read_text()
    assert second.returncode == 1, output
    assert f"{BROKEN_RUN}: failed at 0 frames: " in output
    assert str(damaged.parent) in output.splitlines()[-2]
    assert output.splitlines()[-1] == "8 runs: 7 finished, 1 failed"
    assert damaged.read_bytes() == b"no checkpoint"
    assert contents(sweep, done) == before
    for run in sweep.runs[:-1]:
        status = status_of(sweep, run)
        assert (status.state, status.budget) == (FINISHED, 4000)
        assert status.frames >= 4000
        states = [part.state for part in status.parts]
        assert states == ([RUNNING, FINISHED] if run == victim else [FINISHED]), run.experiment
    resumed = status_of(sweep, victim).parts[1]
    assert 0 < resumed.begun_at < 4000
    assert survivor not in done

    before = contents(sweep, list(sweep.runs[:-1]))
    damaged.unlink()
    third = start(sweep, tmp_path / "third.log")
    wait(sweep, third, lambda: False)
    assert third.returncode == 0, (tmp_path / "third.log").read_text()
    assert contents(sweep, list(sweep.runs[:-1])) == before
    assert status_of(sweep, run_named(sweep, BROKEN_RUN)).state == FINISHED


@pytest.mark.slow
def test_cancel_saves_and_stops(tmp_path: Path) -> None:
    sweep = make_sweep(tmp_path, frames=1_000_000_000, seeds="[0]")
    where = (str(sweep.file), f"--train_dir={sweep.folder.parent}")
    process = start(sweep, tmp_path / "log")

    def both_work() -> bool:
        return all((status := read_status(run_folder(sweep, run))) is not None and status.frames for run in sweep.runs)

    wait(sweep, process, both_work, 200)
    second = sf_explore_go("sweep", *where, "--backend=local")
    assert second.returncode == 2
    assert f"process {process.pid} is working on" in second.stderr
    cancelled = sf_explore_go("sweep", "cancel", *where)
    assert cancelled.returncode == 0
    assert cancelled.stdout.startswith("cancelled: 2 running here, 0 jobs in Slurm")
    process.wait(120)
    assert process.returncode == 75, (tmp_path / "log").read_text()
    for run in sweep.runs:
        assert status_of(sweep, run).state == INTERRUPTED
        assert not is_locked(lock_file(sweep, run))
    assert "2 runs: 2 interrupted" in sf_explore_go("sweep", "status", *where).stdout
