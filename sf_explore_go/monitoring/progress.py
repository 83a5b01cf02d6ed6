"""The progress of a training or an evaluation, in one line."""

import math
import time
from dataclasses import dataclass

from sf_explore_go.processes.console import LiveLine

SHORT_SECONDS = 2.0  # an evaluation that is over by then says nothing


@dataclass(frozen=True)
class Progress:
    """None and nan stand for what is not known yet."""

    frames: int
    budget: int
    frames_per_second: float = math.nan
    seconds_left: float = math.nan
    train_return: float | None = None
    test_success: float | None = None
    explore_share: float | None = None
    policy_lag: float | None = None

    def line(self) -> str:
        parts = [f"{self.frames:,} of {self.budget:,} frames"]
        if not math.isnan(self.frames_per_second):
            parts.append(f"{self.frames_per_second:,.0f} frames/s")
        if not math.isnan(self.seconds_left):
            parts.append(f"{duration(self.seconds_left)} left")
        if self.train_return is not None:
            parts.append(f"return {self.train_return:.2f}")
        if self.test_success is not None:
            parts.append(f"test success {self.test_success:.2f}")
        if self.explore_share is not None:
            parts.append(f"exploring {self.explore_share:.0%}")
        if self.policy_lag is not None:
            parts.append(f"lag {self.policy_lag:.1f}")
        return ", ".join(parts)


def seconds_left(frames: int, budget: int, frames_per_second: float, seconds: float, time_budget: float) -> float:
    """Until frames or time run out, whichever is first; nan while the speed is not known."""
    if math.isnan(frames_per_second) or frames_per_second <= 0:
        return math.nan
    return max(0.0, min((budget - frames) / frames_per_second, time_budget - seconds))


def duration(seconds: float) -> str:
    """Short and readable: 45 s, 12 min, 3 h 05 min, 2 d 4 h."""
    minutes, hours, days = round(seconds / 60), int(seconds // 3600), int(seconds // 86400)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{days} d {hours % 24} h"


class EpisodeCount:
    """The progress of an evaluation; `line` is where it is shown, None for nowhere."""

    def __init__(self, total: int, line: LiveLine | None, what: str = "episodes") -> None:
        self._total, self._line, self._what = total, line, what
        self._done, self._begun = 0, time.monotonic()

    def add_one(self) -> None:
        self._done += 1
        seconds = time.monotonic() - self._begun
        if self._line is not None and seconds >= SHORT_SECONDS:
            self._line.show(episode_line(self._done, self._total, seconds, self._what))

    def end(self) -> None:
        if self._line is not None:
            self._line.end()


def episode_line(done: int, total: int, seconds: float, what: str = "episodes") -> str:
    """After the first `done` of `total` episodes took so many seconds."""
    left = f", {duration(seconds / done * (total - done))} left" if done < total else f", {duration(seconds)}"
    return f"{done:,} of {total:,} {what}{left}"
