"""Running the real command line from tests."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

TIMING_TAGS = ("perf/",)


def sf_explore_go(
    *argv: str, cwd: Path | None = None, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end; output is captured."""
    return subprocess.run(
        [sys.executable, "-m", "sf_explore_go", *argv],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())} | (environment or {}),
        timeout=800,
        check=False,
    )


def train(folder: Path, name: str, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A training that must succeed."""
    result = sf_explore_go("train", f"--train_dir={folder}", f"--experiment={name}", *flags, environment=environment)
    assert result.returncode == 0, result.stderr[-3000:]
    return result


def scalars(folder: Path, policy_id: int = 0) -> dict[str, list[tuple[int, float]]]:
    """tag -> [(frames, value)] of a run, timing aside."""
    events: Any = EventAccumulator(str(folder / ".summary" / str(policy_id)), size_guidance={"scalars": 0})
    events.Reload()
    tags = [tag for tag in events.Tags()["scalars"] if not tag.startswith(TIMING_TAGS)]
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in tags}
