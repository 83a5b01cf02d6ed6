"""The local back end: a sweep's trainings as processes of this machine, a few at a time.

A training holds a lock for as long as it lives. So a sweep that was killed and is started again knows which runs are
still going (they are waited for, not started twice), which have finished (skipped), and which broke off (resumed).
"""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass
from types import FrameType
from typing import TextIO

from sf_explore_go.runs.status import EXIT_INTERRUPTED, FINISHED, RUNNING
from sf_explore_go.sweep.plan import Resources, Run, Sweep
from sf_explore_go.sweep.state import (
    RunState,
    clear_exit,
    exit_file,
    holder,
    is_finished,
    is_locked,
    lock_file,
    log_file,
    run_state,
    start_command,
    sweep_lock,
    try_lock,
    write_holder,
)
from sf_explore_go.sweep.table import LiveTable, table

POLL_SECONDS = 0.5
PROGRAM = (sys.executable, "-m", "sf_explore_go")


def gpus_of(slot: int, per_run: int, available: int) -> list[int]:
    """The GPUs of a slot, dealt round-robin; a slot is a place for one run, taken again when that run ends."""
    return sorted({(slot * per_run + i) % available for i in range(per_run)}) if available else []


def default_parallel(resources: Resources, cores: int) -> int:
    """As many runs at once as there are cores for, within the file's cap."""
    room = max(1, cores // resources.cpus)
    return min(room, resources.max_parallel) if resources.max_parallel else room


@dataclass
class Slot:
    """A place for one run."""

    run: Run
    process: subprocess.Popen | None  # None for a run that an earlier, killed sweep has started


class LocalSweep:
    """Works through the runs of a sweep."""

    def __init__(self, sweep: Sweep, max_parallel: int, gpus: int, stream: TextIO) -> None:
        self.sweep = sweep
        self.gpus = gpus
        self.slots: list[Slot | None] = [None] * max_parallel
        self.waiting: deque[Run] = deque()
        self.table = LiveTable(stream)
        self.stream = stream
        self.stopping = False

    def run(self) -> int:
        """Until every run has ended; 0 if all have finished, 75 if a signal came, else 1."""
        with sweep_lock(self.sweep):
            previous = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
            try:
                self._work()
            finally:
                for number, handler in previous.items():
                    signal.signal(number, handler)
        rows = self.rows()
        print("\n".join(table(rows)), file=self.stream, flush=True)
        if all(row.state == FINISHED for row in rows):
            return 0
        return EXIT_INTERRUPTED if self.stopping else 1

    def _work(self) -> None:
        self._begin()
        while any(self.slots) or (self.waiting and not self.stopping):
            for index, slot in enumerate(self.slots):
                if slot is None and self.waiting and not self.stopping:
                    self.slots[index] = self._start(self.waiting.popleft(), index)
            self.table.show(self.rows())
            time.sleep(POLL_SECONDS)
            for index, slot in enumerate(self.slots):
                if slot is not None and self._has_ended(slot):
                    self.slots[index] = None

    def _begin(self) -> None:
        """Take over what an earlier sweep has left running; all else that has not finished waits for a slot."""
        going = [run for run in self.sweep.runs if is_locked(lock_file(self.sweep, run))]
        self.slots += [None] * (len(going) - len(self.slots))
        for index, run in enumerate(going):
            self.slots[index] = Slot(run, None)
        self.waiting.extend(run for run in self.sweep.runs if run not in going and not is_finished(self.sweep, run))

    def _start(self, run: Run, index: int) -> Slot:
        lock = try_lock(lock_file(self.sweep, run))
        if lock is None:  # somebody has started it by hand meanwhile
            return Slot(run, None)
        environment = os.environ | self.sweep.environment
        if self.gpus:
            devices = gpus_of(index, self.sweep.resources.gpus, self.gpus)
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, devices))
        log = log_file(self.sweep, run)
        log.parent.mkdir(parents=True, exist_ok=True)
        clear_exit(self.sweep, run)
        try:
            with log.open("ab") as file:
                process = subprocess.Popen(
                    start_command(self.sweep, run, lock),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=file,
                    env=environment,
                    pass_fds=(lock,),  # its lock ends with it, not with us
                    start_new_session=True,  # Ctrl+C is for us; we tell the runs
                )
            write_holder(lock, process.pid)
        finally:
            os.close(lock)
        return Slot(run, process)

    def _has_ended(self, slot: Slot) -> bool:
        if slot.process is not None:
            if slot.process.poll() is None:
                return False
            exit_file(self.sweep, slot.run).write_text(f"{slot.process.returncode}\n")
            return True
        if is_locked(lock_file(self.sweep, slot.run)):
            return False
        if not is_finished(self.sweep, slot.run):  # it broke off with the sweep that had started it
            self.waiting.append(slot.run)
        return True

    def rows(self) -> list[RunState]:
        going = {slot.run.experiment for slot in self.slots if slot is not None}
        return [run_state(self.sweep, run, RUNNING if run.experiment in going else None) for run in self.sweep.runs]

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.stopping:  # the runs go on saving; a later sweep finds them
            raise SystemExit(EXIT_INTERRUPTED)
        self.stopping = True
        print(f"{signal.Signals(number).name}: telling the runs to save and stop ...", file=self.stream, flush=True)
        for slot in self.slots:
            if slot is not None:
                stop_run(self.sweep, slot.run)


def stop_run(sweep: Sweep, run: Run) -> bool:
    """Tell a run to save and stop, if it is going."""
    pid = holder(lock_file(sweep, run))
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    return True


def cancel_local(sweep: Sweep) -> int:
    """Stop the sweep that is at work, or what a killed one has left; the number of runs that were told to stop."""
    going = [run for run in sweep.runs if is_locked(lock_file(sweep, run))]
    pid = holder(sweep.own_folder / "lock")
    if pid is not None:
        os.kill(pid, signal.SIGTERM)
        return len(going)
    return sum(stop_run(sweep, run) for run in going)
