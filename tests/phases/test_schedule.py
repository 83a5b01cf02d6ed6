"""k ~ Uniform{0..K} at every episode start, and the phase of each step."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from sf_explore_go.phases.schedule import Phase, PhaseSchedule


@given(max_steps=st.integers(0, 30), seed=st.integers(0, 2**32 - 1), length=st.integers(1, 50))
def test_the_first_k_steps_explore_and_the_rest_go(max_steps: int, seed: int, length: int) -> None:
    schedule = PhaseSchedule(max_steps, seed)
    for _ in range(5):
        first = schedule.begin_episode()
        k = schedule.explore_steps
        assert 0 <= k <= max_steps
        phases, switches = [], []
        for step in range(length):
            phases.append(schedule.phase)
            foretold = schedule.switches_next
            if schedule.advance():
                switches.append(step)
            assert foretold == (step in switches)
        assert phases == [Phase.EXPLORE] * min(k, length) + [Phase.GO] * max(0, length - k)
        assert first is phases[0]
        assert switches == ([k - 1] if 0 < k <= length else [])


def test_uniform_with_both_ends() -> None:
    schedule = PhaseSchedule(200, seed=5)
    draws = []
    for _ in range(40_000):
        schedule.begin_episode()
        draws.append(schedule.explore_steps)
    counts = np.bincount(draws, minlength=201)
    assert len(counts) == 201
    assert counts.min() > 0
    assert chisquare(counts).pvalue > 0.001


def test_same_seed_same_draws_other_seed_others() -> None:
    def draws(seed: int) -> list[int]:
        schedule = PhaseSchedule(200, seed)
        return [schedule.explore_steps for _ in range(20) if schedule.begin_episode() is not None]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)


def test_zero_never_explores() -> None:
    schedule = PhaseSchedule(0, seed=1)
    assert all(schedule.begin_episode() is Phase.GO for _ in range(100))
