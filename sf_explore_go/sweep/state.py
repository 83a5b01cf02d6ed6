"""The state of every run of a sweep, from its files and from the processes and jobs at work."""

import csv
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sf_explore_go.core.errors import UsageError
from sf_explore_go.runs.status import EXIT_INTERRUPTED, FAILED, FINISHED, INTERRUPTED, RUNNING, Status, read_status
from sf_explore_go.sweep.plan import Run, Sweep

WAITING, QUEUED, BROKEN = "waiting", "queued", "broken"  # broken: killed while it was running; it can be resumed
TAIL_BYTES = 65_536
# told to stop: saved and ended, or met by the signal before it could listen (as a process and as a shell say it)
STOPPED_BY_SIGNAL = (EXIT_INTERRUPTED, -signal.SIGTERM, -signal.SIGUSR1, 128 + signal.SIGTERM, 128 + signal.SIGUSR1)


@dataclass(frozen=True)
class RunState:
    """One row of the table of states."""

    run: Run
    state: str
    frames: int = 0
    frames_per_second: float | None = None
    success: Mapping[str, float] | None = None  # split -> success rate at the latest evaluation
    error: str = ""


def run_folder(sweep: Sweep, run: Run) -> Path:
    return sweep.folder / run.experiment


def log_file(sweep: Sweep, run: Run) -> Path:
    return sweep.own_folder / "logs" / f"{run.experiment}.log"


def is_finished(sweep: Sweep, run: Run) -> bool:
    """Whether the run has ended well, with a budget that is not smaller than the one that is asked for now."""
    status = read_status(run_folder(sweep, run))
    return status is not None and status.state == FINISHED and status.budget >= run.budget


def exit_file(sweep: Sweep, run: Run) -> Path:
    """Holds the exit status of the run's last training; away while one is going."""
    return sweep.own_folder / "exits" / run.experiment


def read_exit(sweep: Sweep, run: Run) -> int:
    """0 also when nothing is known: then status.json has to say it."""
    try:
        return int(exit_file(sweep, run).read_text())
    except (OSError, ValueError):
        return 0


def clear_exit(sweep: Sweep, run: Run) -> None:
    """A training of the run begins."""
    exit_file(sweep, run).parent.mkdir(parents=True, exist_ok=True)
    exit_file(sweep, run).unlink(missing_ok=True)


def start_command(sweep: Sweep, run: Run, lock: int) -> list[str]:
    """The training of a run as a process that inherits its lock and leaves its exit status behind."""
    files = (str(lock), f"--exit_file={exit_file(sweep, run).absolute()}")
    return [sys.executable, "-m", "sf_explore_go.cli.start", *files, *sweep.train_command(run)]


def run_state(sweep: Sweep, run: Run, at_work: str | None) -> RunState:
    """`at_work` is what a back end says of the run (running, queued); None if nobody works on it."""
    status = read_status(run_folder(sweep, run))
    state = at_work or _state_at_rest(sweep, run, status)
    success = latest_success(run_folder(sweep, run) / "evaluation.csv")
    error = describe_end(sweep, run) if state in (BROKEN, FAILED) else ""
    if status is None:
        return RunState(run, state, success=success, error=error)
    return RunState(run, state, status.frames, status.frames_per_second, success, error)


def _state_at_rest(sweep: Sweep, run: Run, status: Status | None) -> str:
    if is_finished(sweep, run):
        return FINISHED
    ended = read_exit(sweep, run)
    if ended in STOPPED_BY_SIGNAL:
        return INTERRUPTED
    if ended != 0:
        return FAILED
    if status is None or status.state == FINISHED:  # finished, but with a smaller budget than the file asks for now
        return WAITING
    return BROKEN if status.state == RUNNING else status.state


def describe_end(sweep: Sweep, run: Run) -> str:
    """Why a run has stopped."""
    return last_error(log_file(sweep, run)) or f"it ended with status {read_exit(sweep, run)} and left no message"


def latest_success(path: Path) -> dict[str, float]:
    """split -> success rate of the evaluation with the most frames"""
    try:
        with path.open(newline="") as file:
            rows = sorted(csv.DictReader(file), key=lambda row: int(row["frames"]))
        return {row["split"]: float(row["success_rate"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def last_error(log: Path) -> str:
    """The line of a run's log that best says what went wrong; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    except OSError:
        return ""
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].startswith("sf-explore-go:"):
            return lines[index].removeprefix("sf-explore-go:").strip()
        if lines[index].startswith("Traceback (most recent call last)"):
            return _end_of_traceback(lines[index + 1 :])
    marked = [line for line in lines if "error" in line.lower()]
    return marked[-1] if marked else ""


def _end_of_traceback(lines: list[str]) -> str:
    for line in lines:
        head = line.split(":", 1)[0].split(".")[-1]
        if head.isidentifier() and head[:1].isupper() and (head.endswith(("Error", "Exception", "Exit", "Interrupt"))):
            return line
    return "an error whose traceback is cut off"


# -- locks: held by a process for as long as it lives, however it ends -----------------------------------------------


def lock_file(sweep: Sweep, run: Run) -> Path:
    return sweep.own_folder / "locks" / run.experiment


def try_lock(path: Path) -> int | None:
    """An open file that holds the lock, or None if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def is_locked(path: Path) -> bool:
    if not path.is_file():
        return False
    file = try_lock(path)
    if file is not None:
        os.close(file)
    return file is None


def write_holder(file: int, pid: int) -> None:
    """Note in a lock file which process holds it, and on which machine: other machines may share the folder."""
    os.ftruncate(file, 0)
    os.pwrite(file, f"{pid} {socket.gethostname()}".encode(), 0)


def holder(path: Path) -> int | None:
    """The process of this machine that holds a lock; None if there is none."""
    if not is_locked(path):
        return None
    pid, _, host = path.read_text().partition(" ")
    return int(pid) if pid.isdigit() and host in ("", socket.gethostname()) else None


def who_holds(path: Path) -> str:
    """The holder of a lock, to begin a sentence with."""
    pid, _, host = path.read_text().partition(" ")
    return f"process {pid or 'unknown'}" + (f" on {host}" if host not in ("", socket.gethostname()) else "")


@contextmanager
def sweep_lock(sweep: Sweep) -> Iterator[None]:
    """At most one local sweep at a time works on a folder of runs."""
    path = sweep.own_folder / "lock"
    try:
        file = try_lock(path)
    except OSError as error:
        raise UsageError(f"--train_dir: {path} cannot be written ({error.strerror})") from error
    if file is None:
        raise UsageError(f"{who_holds(path)} is working on {sweep.folder}; wait for it, or cancel it")
    try:
        write_holder(file, os.getpid())
        yield
    finally:
        os.close(file)
