"""Messages from workers to the runner, besides Sample Factory's own."""

from typing import Any

import numpy as np

EXPLORE_PHASE = "explore_phase"  # key of the message
ENV_OF_EPISODE = "env_of_episode"  # beside Sample Factory's statistics of an episode: whose it was
FATAL = "fatal"  # key of a sentence that says why a worker cannot go on


def phase_message(positions: list[tuple[float, float]], go_start: tuple[float, float] | None) -> dict[str, Any]:
    """One explore phase: its positions [n, 2], and where the agent took over (None if the episode ended before)."""
    return {"positions": np.array(positions, dtype=np.float32), "go_start": go_start}
