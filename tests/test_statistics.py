"""Intervals against textbook values and simulations."""

import numpy as np
import pytest
from scipy import stats

from sf_explore_go.statistics import bootstrap_interval, mean_interval, probability_of_improvement, wilson_interval


@pytest.mark.parametrize(("successes", "trials"), [(0, 100), (1, 100), (37, 100), (100, 100), (3, 7)])
def test_wilson_against_scipy(successes: int, trials: int) -> None:
    expected = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_mean_interval_by_hand() -> None:
    # 1, 2, 3, 4: mean 2.5, standard error sqrt(5/3)/2
    half = 1.959963985 * np.sqrt(5 / 3) / 2
    assert mean_interval([1, 2, 3, 4]) == pytest.approx((2.5, 2.5 - half, 2.5 + half))
    assert mean_interval([3.0]) == (3.0, 3.0, 3.0)


def test_bootstrap_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for trial in range(300):
        _, low, high = bootstrap_interval(rng.normal(0.5, 0.2, size=20).tolist(), seed=trial, resamples=1000)
        hits += low <= 0.5 <= high
    assert 0.88 <= hits / 300 <= 0.98  # the percentile bootstrap of 20 values covers a little less than 95 %


def test_bootstrap_is_repeatable() -> None:
    assert bootstrap_interval([0.1, 0.5, 0.9]) == bootstrap_interval([0.1, 0.5, 0.9])


def test_probability_of_improvement_by_hand() -> None:
    assert probability_of_improvement([1, 1], [0, 0]) == 1
    assert probability_of_improvement([1, 0], [1, 0]) == 0.5
    assert probability_of_improvement([2, 3], [1, 2, 3]) == (1 + 0.5 + 0 + 1 + 1 + 0.5) / 6
