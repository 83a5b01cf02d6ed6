"""One run of a sweep by its number, in the foreground: what a scheduler of any kind calls.

The process takes the run's lock and then becomes the training (exec). So signals reach the training itself, its exit
status is the scheduler's, and whoever kills the process has killed the run.
"""

import os
import signal
import socket
import sys
from typing import NoReturn

from sf_explore_go.core.errors import UsageError
from sf_explore_go.processes.stopping import EARLY, STOP_SIGNALS
from sf_explore_go.runs.status import EXIT_INTERRUPTED
from sf_explore_go.sweep.plan import Run, Sweep
from sf_explore_go.sweep.state import (
    clear_exit,
    is_finished,
    lock_file,
    log_file,
    start_command,
    try_lock,
    who_holds,
    write_holder,
)


def run_at(sweep: Sweep, index: int) -> Run:
    """Run number `index`, from 0, in the order in which the sweep prints its commands."""
    if not 0 <= index < len(sweep.runs):
        raise UsageError(f"--index={index}: it must be from 0 to {len(sweep.runs) - 1}; {sweep.file} has no such run")
    return sweep.runs[index]


def run_one(sweep: Sweep, index: int) -> int:
    """Start or resume a run; returns only if there is nothing to do, or if a signal asked for the end meanwhile."""
    run = run_at(sweep, index)
    if is_finished(sweep, run):
        print(f"{run.experiment} has finished; nothing to do")
        return 0
    lock = take_lock(sweep, run)
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # the training unblocks them when it can listen
    if not EARLY.has_come:
        become_the_training(sweep, run, lock)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    os.close(lock)
    return EXIT_INTERRUPTED


def take_lock(sweep: Sweep, run: Run) -> int:
    """An open file that holds the lock of the run, in the name of this process."""
    path = lock_file(sweep, run)
    try:
        lock = try_lock(path)
    except OSError as error:
        raise UsageError(f"--train_dir: {path} cannot be written ({error.strerror})") from error
    if lock is None:
        raise UsageError(f"{who_holds(path)} is training {run.experiment} of {sweep.folder}; nothing was started")
    write_holder(lock, os.getpid())
    return lock


def become_the_training(sweep: Sweep, run: Run, lock: int) -> NoReturn:
    clear_exit(sweep, run)
    log = log_file(sweep, run)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:  # `sweep status` shows this line if the run fails
        print(f"sf-explore-go: started by a scheduler on {socket.gethostname()}, whose log has the reason", file=file)
    os.set_inheritable(lock, True)
    sys.stdout.flush()
    sys.stderr.flush()
    command = start_command(sweep, run, lock)
    os.execve(command[0], command, os.environ | sweep.environment)
