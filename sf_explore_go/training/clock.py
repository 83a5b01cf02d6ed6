"""Things that happen every so many frames."""

from typing import Any

POINTS_PER_RUN = 200
MAX_SUMMARY_INTERVAL = 250_000  # frames


def summary_interval(cfg: Any) -> int:
    """Frames between two points of a curve when summaries follow frames: about two hundred points per run."""
    return min(max(1, cfg.train_for_env_steps // POINTS_PER_RUN), MAX_SUMMARY_INTERVAL)


class FrameClock:
    """Is due whenever another `interval` of frames has begun: first at once, or after `begun_at` if that is given."""

    def __init__(self, interval: int, begun_at: int | None = None) -> None:
        self._interval = interval
        self._last = None if begun_at is None else begun_at // interval

    def is_due(self, frames: int) -> bool:
        tick = frames // self._interval
        if tick == self._last:
            return False
        self._last = tick
        return True
