"""A full disk costs curves and log lines, but must not block a training.

TensorBoard's writer dies in its own thread when a write fails, and whoever hands it the next event waits without end.
So failed writes are dropped here. The learners end such a run with a sentence when they cannot save.
"""

import contextlib
import logging
from collections.abc import Iterable
from typing import Any

from sf_explore_go.core.versions import written_for

written_for("tensorboardX", "2.6.5")


class ForgivingRecords:
    """Stands before the file of a tensorboardX writer."""

    def __init__(self, records: Any) -> None:
        self._records = records

    def write_event(self, event: Any) -> None:
        with contextlib.suppress(OSError):
            self._records.write_event(event)

    def flush(self) -> bool:
        with contextlib.suppress(OSError):
            self._records.flush()
        return True

    def close(self) -> bool:
        with contextlib.suppress(OSError):
            self._records.close()
        return True


def forgive_full_disks(writers: Iterable[Any]) -> None:
    """Make these tensorboardX writers, and the log of this process, go on when the disk is full."""
    logging.raiseExceptions = False
    for writer in writers:
        events = writer.file_writer.event_writer
        events._ev_writer = events._worker._record_writer = ForgivingRecords(events._ev_writer)
