"""What workers tell the runner beside Sample Factory's own messages."""

from typing import Any

import numpy as np

EXPLORE_PHASE = "explore_phase"  # key of the message
FATAL = "fatal"  # key of a sentence that says why a worker cannot go on


def phase_message(positions: list[tuple[float, float]], go_start: tuple[float, float] | None) -> dict[str, Any]:
    """One explore phase: its positions [n, 2], and where the agent took over (None if the episode ended before)."""
    return {"positions": np.array(positions, dtype=np.float32), "go_start": go_start}
