"""Keeps a run's status.json up to date."""

import os
import socket
import time
from typing import Any

from sf_explore_go.core.observers import Observer
from sf_explore_go.runs.status import RUNNING, Part, Status, read_status, write_status

WRITE_EVERY_SECONDS = 5.0


class StatusWriter(Observer):
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

    def on_lost(self, runner: Any, state: str) -> None:
        self.write(runner, state)

    def write(self, runner: Any, state: str) -> None:
        """Write how far the run is. A full disk must not end a training because of this file."""
        if runner.counter is None or not runner.folder.is_dir():
            return
        frames, begun_at = runner.frames, runner.counter.restored().total
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
