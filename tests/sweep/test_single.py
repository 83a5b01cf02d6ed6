"""One run by its number: what a scheduler sees of it."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sf_explore_go.cli.sweep import main
from sf_explore_go.core.errors import UsageError
from sf_explore_go.runs.status import FINISHED, INTERRUPTED, RUNNING, read_status
from sf_explore_go.sweep import slurm
from sf_explore_go.sweep.plan import Sweep, read_sweep
from sf_explore_go.sweep.state import (
    holder,
    is_locked,
    lock_file,
    read_exit,
    run_folder,
    run_state,
    try_lock,
    who_holds,
    write_holder,
)
from tests.e2e.cli import sf_explore_go
from tests.sweep.sweeps import small_sweep, write


def where(sweep: Sweep) -> tuple[str, str]:
    return str(sweep.file), f"--train_dir={sweep.folder.parent}"


def start(sweep: Sweep, index: int) -> subprocess.Popen:
    words = ("sweep", "run", *where(sweep), f"--index={index}")
    command = [sys.executable, "-m", "sf_explore_go", *words]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_count_is_the_number_of_printed_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = small_sweep(tmp_path)
    for seeds, expected in (((), 4), (("--seeds=0..4",), 10)):
        assert main([*where(sweep), *seeds]) == 0
        printed = capsys.readouterr().out.splitlines()
        assert main(["count", *where(sweep), *seeds]) == 0
        assert capsys.readouterr().out == f"{len(printed)}\n"
        assert len(printed) == expected
    assert not sweep.folder.exists()


@pytest.mark.parametrize("index", ["-1", "4", "1.5", "first"])
def test_a_bad_index_is_refused(index: str, tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    with pytest.raises(UsageError, match="index") as error:
        main(["run", *where(sweep), f"--index={index}"])
    assert "\n" not in str(error.value)
    assert not sweep.folder.exists()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_the_index_must_be_given(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--index"):
        main(["run", str(write(tmp_path))])


def test_a_run_that_another_process_trains_is_refused(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    path = lock_file(sweep, sweep.runs[2])
    lock = try_lock(path)
    assert lock is not None
    for name, who in ((socket.gethostname(), "process 1234"), ("node7", "process 1234 on node7")):
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"1234 {name}".encode(), 0)
        with pytest.raises(UsageError) as error:
            main(["run", *where(sweep), "--index=2"])
        assert str(error.value) == f"{who} is training k0_seed1 of {sweep.folder}; nothing was started"
    os.close(lock)
    assert list(sweep.folder.iterdir()) == [sweep.own_folder]


def test_a_process_of_another_machine_is_never_signalled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its number may belong to somebody else here."""
    sweep = small_sweep(tmp_path)
    path = lock_file(sweep, sweep.runs[0])
    lock = try_lock(path)
    assert lock is not None
    os.pwrite(lock, f"{os.getpid()} another-machine".encode(), 0)
    assert (holder(path), who_holds(path)) == (None, f"process {os.getpid()} on another-machine")
    assert main(["cancel", *where(sweep)]) == 0
    output = capsys.readouterr().out
    assert "cancelled: 0 running here" in output
    assert "not cancelled: k0_seed0; another machine" in output
    write_holder(lock, 77)
    assert (holder(path), who_holds(path)) == (77, "process 77")
    os.close(lock)


@pytest.mark.slow
def test_it_starts_once_stops_with_75_and_goes_on(tmp_path: Path) -> None:
    steps = "train_for_env_steps = 1_000_000\nsave_every_sec = 1"
    file = write(tmp_path, train_for_env_steps=steps)
    sweep = small_sweep_of(file, tmp_path)
    run = sweep.runs[3]

    process = start(sweep, 3)
    wait_for_frames(sweep, process, 1)
    assert holder(lock_file(sweep, run)) == process.pid  # it became the training
    second = sf_explore_go("sweep", "run", *where(sweep), "--index=3")
    assert second.returncode == 2
    assert second.stderr == (
        f"sf-explore-go: process {process.pid} is training k8_seed1 of {sweep.folder}; nothing was started\n"
    )
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 75
    status = read_status(run_folder(sweep, run))
    assert status is not None
    assert status.state == INTERRUPTED
    assert read_exit(sweep, run) == 75
    assert not is_locked(lock_file(sweep, run))

    budget = status.frames + 300
    sweep = small_sweep_of(write(tmp_path, train_for_env_steps=f"train_for_env_steps = {budget}"), tmp_path)
    assert sf_explore_go("sweep", "run", *where(sweep), "--index=3").returncode == 0
    after = read_status(run_folder(sweep, run))
    assert after is not None
    assert [(part.state, part.begun_at) for part in after.parts] == [(INTERRUPTED, 0), (FINISHED, status.frames)]
    before = (run_folder(sweep, run) / "status.json").read_bytes()
    again = sf_explore_go("sweep", "run", *where(sweep), "--index=3")
    assert (again.returncode, again.stdout) == (0, "k8_seed1 has finished; nothing to do\n")
    assert (run_folder(sweep, run) / "status.json").read_bytes() == before
    assert [path.name for path in sweep.folder.iterdir() if path.is_dir()] in (
        [run.experiment, "sweep"],
        ["sweep", run.experiment],
    )


def small_sweep_of(file: Path, folder: Path) -> Sweep:
    return read_sweep(file, folder / "runs")


def wait_for_frames(sweep: Sweep, process: subprocess.Popen, runs: int, seconds: float = 200) -> None:
    deadline = time.time() + seconds
    while sum(is_training(sweep, index) for index in range(len(sweep.runs))) < runs:
        assert process.poll() is None
        assert time.time() < deadline
        time.sleep(0.2)


def is_training(sweep: Sweep, index: int) -> bool:
    status = read_status(run_folder(sweep, sweep.runs[index]))
    return status is not None and status.state == RUNNING and status.frames > 0


def test_a_failed_run_says_where_its_reason_is(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    damaged = run_folder(sweep, sweep.runs[0]) / "checkpoint_p0/checkpoint_000000001_40.pth"
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"no checkpoint")
    failed = sf_explore_go("sweep", "run", *where(sweep), "--index=0")
    assert failed.returncode not in (0, 75)
    assert str(damaged.parent) in failed.stderr
    row = run_state(sweep, sweep.runs[0], None)
    assert row.state == "failed"
    assert row.error == f"started by a scheduler on {socket.gethostname()}, whose log has the reason"


@pytest.mark.parametrize("seconds", [1.0, 2.0, 2.5, 3.0])
def test_a_signal_while_it_starts_is_a_stop_too(seconds: float, tmp_path: Path) -> None:
    """Before, while and after the process becomes the training."""
    file = write(tmp_path, train_for_env_steps="train_for_env_steps = 1_000_000_000")
    process = start(small_sweep_of(file, tmp_path), 0)
    time.sleep(seconds)
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 75


def test_a_dry_run_prints_what_sbatch_would_get(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = small_sweep(tmp_path)
    argv = [*where(sweep), "--backend=slurm", "--partition=gpu", "--with_report"]
    with monkeypatch.context() as without_slurm:
        without_slurm.setenv("PATH", str(tmp_path))
        assert main([*argv, "--dry_run"]) == 0
    shown = capsys.readouterr().out
    assert not sweep.folder.exists()

    calls: list[tuple[str, ...]] = []

    def call(*words: str) -> str:
        calls.append(words)
        return {"sinfo": "gpu\n", "sbatch": "12\n"}[words[0]]

    monkeypatch.setattr(slurm, "call", call)
    assert main(argv) == 0
    submitted = [Path(words[-1]) for words in calls if words[0] == "sbatch"]
    assert [path.name for path in submitted] == ["train.sh", "report.sh"]
    assert shown == "".join(path.read_text() for path in submitted)
    assert "#SBATCH --partition=gpu" in shown


def test_a_dry_run_is_for_slurm_and_refuses_what_submitting_refuses(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    with pytest.raises(UsageError, match="--dry_run: it needs --backend=slurm, not local"):
        main([*where(sweep), "--backend=local", "--dry_run"])
    with pytest.raises(UsageError, match="--partition"):
        main([*where(sweep), "--backend=slurm", "--dry_run", f"--partition={shlex.quote('a b')}"])
