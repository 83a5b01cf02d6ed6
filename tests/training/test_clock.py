"""Due once per interval of frames, however uneven the steps."""

from sf_explore_go.training.clock import FrameClock


def test_due_at_once_and_then_per_interval() -> None:
    clock = FrameClock(100)
    assert [f for f in (0, 40, 99, 100, 130, 350, 399, 400) if clock.is_due(f)] == [0, 100, 350, 400]


def test_a_resumed_clock_waits_for_the_next_interval() -> None:
    clock = FrameClock(100, begun_at=250)
    assert [f for f in (250, 280, 299, 300, 310) if clock.is_due(f)] == [300]
