"""Stopping on a signal: finish the step, save, leave nothing behind."""

import signal
from types import FrameType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopRequest:
    """Remembers that a signal asked for the end; a second one of them ends the process at once."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._previous: dict[int, Any] = {}

    def install(self) -> None:
        for number in STOP_SIGNALS:
            self._previous[number] = signal.signal(number, self._on_signal)

    def restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            self.restore()
            signal.raise_signal(number)
        self.signal = signal.Signals(number)
