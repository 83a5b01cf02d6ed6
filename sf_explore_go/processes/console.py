"""What a training prints: one live line on a terminal, plain lines elsewhere.

Sample Factory's log goes to the run's sf_log.txt. Warnings and errors, of this process and of every worker, reach the
terminal in any case. Workers learn the mode from an environment variable, since they are started afresh.
"""

import logging
import os
import shutil
import sys
import time
from typing import TextIO

from sample_factory.utils.utils import stream_handler

VARIABLE = "SF_EXPLORE_GO_CONSOLE"
QUIET, NORMAL, VERBOSE = "quiet", "normal", "verbose"
CLEAR = "\r\x1b[K"  # back to the first column, rest of the line erased
# what Sample Factory warns of although it is meant here: serial mode with phases
KNOWN = "In serial mode all components run on the same process."
FIRST_MINUTE, LATER = 10.0, 60.0  # seconds between plain lines


class PlainFormatter(logging.Formatter):
    """No colours; on a terminal the live line is cleared away first."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__("[%(asctime)s][%(process)05d] %(message)s")
        self._before = CLEAR if terminal else ""

    def format(self, record: logging.LogRecord) -> str:
        return self._before + super().format(record)


def set_up_console(mode: str) -> None:
    """For this process and those that it starts."""
    os.environ[VARIABLE] = mode
    follow_console()


def follow_console() -> None:
    """Obey the mode that the process has inherited, if any."""
    if (mode := os.environ.get(VARIABLE)) is None:
        return
    terminal = sys.stderr.isatty()
    stream_handler.setLevel(logging.DEBUG if mode == VERBOSE else logging.WARNING)
    stream_handler.addFilter(is_news)
    if mode != VERBOSE or not terminal:
        stream_handler.setFormatter(PlainFormatter(terminal=terminal))


def is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(KNOWN)


class LiveLine:
    """Shows a text that changes: in place on a terminal, else as a line of its own every now and then."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._begun = time.monotonic()
        self._next = self._begun
        self._shown = False

    def show(self, text: str) -> None:
        now = time.monotonic()
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(CLEAR + text[:width])
            self._shown = True
        elif now >= self._next:
            self._stream.write(text + "\n")
            self._next = now + (FIRST_MINUTE if now - self._begun < 60 else LATER)
        self._stream.flush()

    def say(self, text: str) -> None:
        """A line that stays."""
        self._stream.write((CLEAR if self._terminal else "") + text + "\n")
        self._stream.flush()
        self._shown = False

    def end(self) -> None:
        """Leave the last text on the terminal."""
        if self._shown:
            self._stream.write("\n")
            self._stream.flush()
            self._shown = False
