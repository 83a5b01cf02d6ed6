"""The table of a sweep's runs, once or refreshed in place."""

import shutil
from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from sf_explore_go.sweep.state import RunState

HEADINGS = ("run", "state", "frames", "of", "frames/s", "train", "test", "last error")
RIGHT = (False, False, True, True, True, True, True, False)


def cells(row: RunState) -> tuple[str, ...]:
    success = row.success or {}
    return (
        row.run.experiment,
        row.state,
        f"{row.frames:,}",
        f"{row.run.budget:,}",
        "" if row.frames_per_second is None else f"{row.frames_per_second:,.0f}",
        *("" if split not in success else f"{success[split]:.3f}" for split in ("train", "test")),
        row.error,
    )


def table(rows: Sequence[RunState]) -> list[str]:
    """Lines: a heading, a row per run, and how many are in which state."""
    grid = [HEADINGS, *map(cells, rows)]
    widths = [max(len(row[column]) for row in grid) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, RIGHT, strict=True)
        ).rstrip()
        for row in grid
    ]
    return [*lines, summary(rows)]


def summary(rows: Sequence[RunState]) -> str:
    counts = Counter(row.state for row in rows)
    return f"{len(rows)} runs: " + ", ".join(f"{count} {state}" for state, count in counts.items())


class LiveTable:
    """On a terminal the table is drawn over itself; elsewhere every change of a state is one line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._drawn = 0
        self._states: dict[str, str] = {}

    def show(self, rows: Sequence[RunState]) -> None:
        if self._terminal:
            self._redraw(table(rows))
            return
        for row in rows:
            name = row.run.experiment
            if self._states.get(name) != row.state:
                self._states[name] = row.state
                error = f": {row.error}" if row.error else ""
                print(f"{name}: {row.state} at {row.frames:,} frames{error}", file=self._stream, flush=True)

    def _redraw(self, lines: list[str]) -> None:
        size = shutil.get_terminal_size()
        if len(lines) >= size.lines:  # the rows that still change matter more than those that wait at the end
            lines = [*lines[: size.lines - 3], "...", lines[-1]]
        up = f"\x1b[{self._drawn}F" if self._drawn else ""
        body = "".join(f"{line[: size.columns - 1]}\x1b[K\n" for line in lines)
        self._stream.write(f"{up}{body}\x1b[J")
        self._stream.flush()
        self._drawn = len(lines)
