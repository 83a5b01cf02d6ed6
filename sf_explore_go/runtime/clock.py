"""Things that happen every so many frames."""

from typing import Any

POINTS_PER_RUN = 1000
MAX_SUMMARY_INTERVAL = 250_000  # frames


def summary_interval(cfg: Any) -> int:
    """Frames between two points of a curve when summaries follow frames: about a thousand points per run."""
    return min(max(1, cfg.train_for_env_steps // POINTS_PER_RUN), MAX_SUMMARY_INTERVAL)


class FrameClock:
    """Is due at once, and then again whenever another `interval` of frames has begun."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._last: int | None = None

    def is_due(self, frames: int) -> bool:
        tick = frames // self._interval
        if tick == self._last:
            return False
        self._last = tick
        return True
