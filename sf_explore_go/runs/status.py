"""`status.json` in a run's folder: how far the training is, or how it ended. Sweeps and schedulers' scripts read it.

A run that was stopped and resumed has several parts. Each notes the total of frames at its start and at its end, so
that anybody can see that no frame was counted twice or left out.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sf_explore_go.core.files import write_json

STATUS_FILE = "status.json"
RUNNING, FINISHED, INTERRUPTED, FAILED = "running", "finished", "interrupted", "failed"
EXIT_INTERRUPTED = 75  # stopped by a signal or a hang, can go on: what sysexits.h calls a temporary failure


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
