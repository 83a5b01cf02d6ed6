"""`status.json` in a run's folder: how far the training is, or how it ended. Sweeps and schedulers' scripts read it.

A run that was stopped and taken up again has several parts. Each notes the total of frames that it began and ended at,
so that anybody can see that nothing was counted twice and nothing was left out.
"""

import json
import os
import socket
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sample_factory.algo.runners.runner import AlgoObserver

from sf_explore_go.core.files import write_json

STATUS_FILE = "status.json"
WRITE_EVERY_SECONDS = 5.0
RUNNING, FINISHED, INTERRUPTED, FAILED = "running", "finished", "interrupted", "failed"
EXIT_INTERRUPTED = 75  # stopped by a signal, saved, can go on: what sysexits.h calls a temporary failure


@dataclass(frozen=True)
class Part:
    """What one command has added to a run."""

    begun_at: int  # total frames
    ended_at: int
    state: str


@dataclass(frozen=True)
class Status:
    """The content of status.json."""

    state: str  # running (or killed while it was), finished, interrupted, failed
    frames: int
    explore_frames: int
    go_frames: int
    budget: int  # --train_for_env_steps
    frames_per_second: float  # over the time since this command's first frame
    time: float  # when this was written, seconds since 1970
    host: str
    pid: int
    parts: list[Part] = field(default_factory=list)


def read_status(folder: Path) -> Status | None:
    """The last status that was written; None if there is none, or none that can be read."""
    try:
        values = json.loads((folder / STATUS_FILE).read_text())
        return Status(**(values | {"parts": [Part(**part) for part in values["parts"]]}))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_status(folder: Path, status: Status) -> None:
    write_json(folder / STATUS_FILE, asdict(status))


class StatusWriter(AlgoObserver):
    """Keeps a run's status.json up to date while it trains."""

    def __init__(self) -> None:
        self._earlier: list[Part] = []
        self._next_time = 0.0

    def on_init(self, runner: Any) -> None:
        status = read_status(runner.folder)
        self._earlier = status.parts if status is not None else []

    def on_training_step(self, runner: Any, training_iteration_since_resume: int) -> None:
        if time.monotonic() >= self._next_time:
            self._next_time = time.monotonic() + WRITE_EVERY_SECONDS
            self.write(runner, RUNNING)

    def write(self, runner: Any, state: str) -> None:
        """Say where the run stands. A disk that is full must not end a training for the sake of this file."""
        if runner.buffer_mgr is None or not runner.folder.is_dir():
            return
        frames, begun_at = runner.frames, runner.buffer_mgr.frames.restored().total
        seconds = runner.total_train_seconds
        status = Status(
            state=state,
            frames=frames.total,
            explore_frames=frames.explore,
            go_frames=frames.go,
            budget=int(runner.cfg.train_for_env_steps),
            frames_per_second=round((frames.total - begun_at) / seconds, 1) if seconds > 0 else 0.0,
            time=time.time(),
            host=socket.gethostname(),
            pid=os.getpid(),
            parts=[*self._earlier, Part(begun_at, frames.total, state)],
        )
        try:
            write_status(runner.folder, status)
        except OSError:
            return
