"""Notices workers that hang: their process runs, but they give no sign of life."""

import time
from collections.abc import Callable

LONGEST_STEP = 1.0  # seconds: what one look at the clock may add


class Watchdog:
    """Counts how long each watched worker has been silent.

    Only time in which this process itself ran is counted, in steps of at most a second: a night in which the
    whole machine slept does not count.
    """

    def __init__(self, limit_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit_seconds
        self._clock = clock
        self._last_look = clock()
        self._silence: dict[str, float] = {}

    def sign_of_life(self, name: str) -> None:
        if name in self._silence:
            self._silence[name] = 0.0

    def watch(self, name: str) -> None:
        """From now on this worker must be heard of every `limit` seconds."""
        self._silence.setdefault(name, 0.0)

    def forget(self, name: str) -> None:
        self._silence.pop(name, None)

    def silent(self) -> list[str]:
        """Who has been silent for longer than the limit; to be asked often."""
        now = self._clock()
        step, self._last_look = min(now - self._last_look, LONGEST_STEP), now
        for name in self._silence:
            self._silence[name] += step
        return [name for name, seconds in self._silence.items() if seconds > self.limit]
