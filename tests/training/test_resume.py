"""Frames are exact across a signal and a resume."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.training.recording import Recording

FLAGS = (
    "--explorer=tests.training.recording:PolicyExplorer",
    "--num_workers=2",
    "--num_envs_per_worker=2",
    "--worker_num_splits=1",
)


def start(folder: Path, *flags: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "tests.training.recording", str(folder), *FLAGS, *flags]
    log = (folder / "log").open("w")
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True, start_new_session=True
    )


def wait_for_batches(process: subprocess.Popen, folder: Path, count: int) -> None:
    deadline = time.time() + 200
    while len(list(folder.glob("batch_p1_*.npz"))) < count and time.time() < deadline:
        assert process.poll() is None, (folder / "log").read_text()[-2000:]
        time.sleep(0.1)


def finish(process: subprocess.Popen) -> tuple[int, int]:
    """Exit status, and the total of frames that the run reported."""
    out, _ = process.communicate(timeout=300)
    return process.returncode, sum(json.loads(out.strip().splitlines()[-1]))


def frames_made(folder: Path) -> int:
    """What the environments counted; their files are removed, so that the next part counts for itself."""
    made = sum(len(steps) for steps in Recording(folder).made.values())
    for path in folder.glob("env_*.json"):
        path.unlink()
    return made


def test_total_is_exact_after_sigterm_and_resume(tmp_path: Path) -> None:
    process = start(tmp_path, "--train_for_env_steps=1000000000")
    wait_for_batches(process, tmp_path, 5)
    process.send_signal(signal.SIGTERM)
    status, total = finish(process)
    assert status == 75
    first = frames_made(tmp_path)
    assert total == first > 0

    status, total = finish(start(tmp_path, f"--train_for_env_steps={first + 2000}"))
    assert status == 0
    second = frames_made(tmp_path)
    assert second >= 2000
    assert total == first + second


@pytest.mark.slow
def test_a_signal_to_the_whole_group_stops_in_order(tmp_path: Path) -> None:
    """Schedulers and shells signal every process of a run; workers that died of it would be waited for without end."""
    process = start(tmp_path, "--train_for_env_steps=1000000000")
    wait_for_batches(process, tmp_path, 3)
    os.killpg(process.pid, signal.SIGTERM)
    status, total = finish(process)
    assert status == 75
    assert total == frames_made(tmp_path) > 0


@pytest.mark.slow
@pytest.mark.parametrize("also_signalled", [True, False])
def test_workers_that_are_gone_are_not_waited_for(tmp_path: Path, also_signalled: bool) -> None:
    process = start(tmp_path, "--train_for_env_steps=1000000000")
    wait_for_batches(process, tmp_path, 3)
    (server,) = [p for p in psutil.Process(process.pid).children() if "forkserver" in " ".join(p.cmdline())]
    workers = server.children()
    if also_signalled:  # first, since a run that has lost all its workers ends at once
        process.send_signal(signal.SIGTERM)
    for worker in workers:
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.kill()
    process.communicate(timeout=150)
    assert process.returncode == (75 if also_signalled else 1)
    assert also_signalled or "died (SIGKILL)" in (tmp_path / "log").read_text()
