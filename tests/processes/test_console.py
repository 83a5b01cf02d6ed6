"""The progress line, on a terminal and off it."""

import io
import math

import pytest

from sf_explore_go.monitoring.progress import Progress, duration, seconds_left
from sf_explore_go.processes.console import CLEAR, LiveLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_says_everything_that_is_known() -> None:
    full = Progress(1_500_000, 20_000_000, 7412.4, 2496, 0.3127, 0.44, 0.19, 3.14)
    assert full.line() == (
        "1,500,000 of 20,000,000 frames, 7,412 frames/s, 42 min left, return 0.31,"
        " test success 0.44, exploring 19%, lag 3.1"
    )
    assert Progress(10, 100).line() == "10 of 100 frames"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (45, "45 s"), (89, "89 s"), (720, "12 min"), (11100, "3 h 05 min"), (200_000, "2 d 7 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_time_left_by_hand() -> None:
    assert seconds_left(400, 1000, 10.0, 5.0, 1e9) == 60
    assert seconds_left(400, 1000, 10.0, 5.0, 35.0) == 30  # time runs out before frames do
    assert seconds_left(1100, 1000, 10.0, 5.0, 1e9) == 0
    assert math.isnan(seconds_left(0, 1000, math.nan, 0.0, 1e9))


def test_a_terminal_has_one_line_that_is_rewritten_and_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "21")
    terminal = Terminal()
    line = LiveLine(terminal)
    line.show("first")
    line.show("x" * 50)
    line.say("stays")
    line.show("last")
    line.end()
    assert terminal.getvalue() == f"{CLEAR}first{CLEAR}{'x' * 20}{CLEAR}stays\n{CLEAR}last\n"


def test_elsewhere_plain_lines_come_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 1.0, 9.0, 10.0, 61.0, 100.0, 121.0])
    monkeypatch.setattr("sf_explore_go.processes.console.time.monotonic", lambda: next(clock))
    file = io.StringIO()
    line = LiveLine(file)
    for second in (0, 1, 9, 10, 61, 100, 121):
        line.show(f"at {second}")
    line.end()
    assert file.getvalue() == "at 0\nat 10\nat 61\nat 121\n"
    assert "\x1b" not in file.getvalue()
