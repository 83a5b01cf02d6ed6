"""Stopping on a signal: finish the step, save, leave nothing behind."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopRequest:
    """Remembers that a signal asked for the end; a second one of them ends the process at once."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._previous: dict[int, Any] = {}
        self._pipe: tuple[int, int] | None = None  # Python writes the numbers of signals into it as they come
        self._previous_pipe = -1
        self._numbers = b""  # that were in the pipe

    def install(self) -> None:
        for number in STOP_SIGNALS:
            self._previous[number] = signal.signal(number, self._on_signal)
        self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._previous_pipe = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)  # whoever started us may have held them back till now

    def restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()
        if self._pipe is not None:
            signal.set_wakeup_fd(self._previous_pipe)
            self._look()
            for end in self._pipe:
                os.close(end)
            self._pipe = None

    @property
    def has_come(self) -> bool:
        """Whether a signal asked for the end, even if the main thread hangs and could not take note of it."""
        self._look()
        return self.signal is not None or any(number in STOP_SIGNALS for number in self._numbers)

    def _look(self) -> None:
        if self._pipe is not None:
            with suppress(BlockingIOError):
                self._numbers += os.read(self._pipe[0], 64)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.signal = signal.Signals(number)


EARLY = StopRequest()  # of the command line, before there is a runner that listens


@contextmanager
def children_deaf_to_stop_signals() -> Iterator[None]:
    """Processes started in here never see the stop signals, though a scheduler may send them to the whole group.

    The main process stops its workers by message, in order; a worker that died of the signal itself could not save.
    The signals are blocked, which children inherit, and not ignored, so that one that comes meanwhile is not lost.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
