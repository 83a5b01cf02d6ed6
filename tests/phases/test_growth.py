"""How K grows: exact values on the ramp, k uniform at each of them, and when success is enough."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sf_explore_go.phases.growth import ramped, solved
from sf_explore_go.phases.schedule import PhaseSchedule


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, 0), (0.2, 0), (0.2024, 0), (0.2026, 1), (0.25, 10), (0.5, 60), (0.69, 98), (0.7, 100), (3.0, 100)],
)
def test_known_values_on_a_ramp_from_a_fifth_to_seven_tenths(share: float, expected: int) -> None:
    assert ramped(100, share, 0.2, 0.7) == expected


@given(longest=st.integers(1, 1000), frames=st.integers(0, 1200), shares=st.tuples(*[st.integers(0, 100)] * 2))
def test_the_nearest_whole_number_to_the_line(longest: int, frames: int, shares: tuple[int, int]) -> None:
    begin, end = (Fraction(share, 100) for share in sorted(shares))
    share = Fraction(frames, 1000)
    found = ramped(longest, frames / 1000, float(begin), float(end))
    if share >= end:
        assert found == longest
    elif share <= begin:
        assert found == 0
    else:
        exact = longest * (share - begin) / (end - begin)
        assert abs(found - exact) <= Fraction(1, 2) + Fraction(1, 10**9)


@pytest.mark.parametrize("at", [0.0, 0.3, 1.0])
def test_equal_shares_are_a_step(at: float) -> None:
    assert ramped(50, at, at, at) == 50
    assert ramped(50, at - 1e-9, at, at) == 0


@pytest.mark.parametrize(("frames", "longest"), [(0, 0), (300, 6), (500, 10), (700, 14), (1000, 20), (1500, 20)])
def test_k_is_uniform_at_each_length(frames: int, longest: int) -> None:
    schedule = PhaseSchedule(lambda: ramped(20, frames / 1000, 0.0, 1.0), seed=frames)
    draws = []
    for _ in range(300 * (longest + 1)):
        schedule.begin_episode()
        draws.append(schedule.explore_steps)
    counts = np.bincount(draws)
    assert len(counts) == longest + 1
    if longest:
        assert chisquare(counts).pvalue > 0.001


def test_k_is_asked_for_at_every_episode_start() -> None:
    lengths = iter([0, 0, 7, 0])
    schedule = PhaseSchedule(lambda: next(lengths), seed=3)
    draws = []
    for _ in range(4):
        schedule.begin_episode()
        draws.append(schedule.explore_steps)
        schedule.advance()  # asks for nothing
    assert draws[:2] == [0, 0]
    assert 0 < draws[2] <= 7
    assert draws[3] == 0


def test_a_number_and_a_function_that_returns_it_draw_the_same() -> None:
    one, other = PhaseSchedule(200, seed=9), PhaseSchedule(lambda: 200, seed=9)
    for _ in range(100):
        one.begin_episode()
        other.begin_episode()
        assert one.explore_steps == other.explore_steps


def test_enough_success_needs_enough_episodes() -> None:
    assert not solved([], 10, 0.9)
    assert not solved([1.0] * 9, 10, 0.9)
    assert solved([1.0] * 10, 10, 0.9)
    assert solved([1.0] * 9 + [0.0], 10, 0.9)  # reached, not passed
    assert not solved([1.0] * 8 + [0.0] * 2, 10, 0.9)
