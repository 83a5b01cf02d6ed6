"""Intervals against textbook values and simulations."""

import numpy as np
import pytest
from scipy import stats

from sf_explore_go.core.statistics import (
    bootstrap_interval,
    improvement_interval,
    interquartile_mean,
    mean_interval,
    probability_of_improvement,
    student_95,
    wilson_interval,
)


@pytest.mark.parametrize(("successes", "trials"), [(0, 100), (1, 100), (37, 100), (100, 100), (3, 7)])
def test_wilson_against_scipy(successes: int, trials: int) -> None:
    expected = stats.binomtest(successes, trials).proportion_ci(method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_mean_interval_by_hand() -> None:
    # 1, 2, 3, 4: mean 2.5, standard error sqrt(5/3)/2
    half = 1.959963985 * np.sqrt(5 / 3) / 2
    assert mean_interval([1, 2, 3, 4]) == pytest.approx((2.5, 2.5 - half, 2.5 + half))
    assert mean_interval([3.0]) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize("seeds", [3, 5, 10, 20])
@pytest.mark.parametrize("shape", ["normal", "rates"])
def test_simulated_sweeps_cover_the_mean_as_often_as_the_interval_says(seeds: int, shape: str) -> None:
    rng = np.random.default_rng(seeds)
    truth = 0.5 if shape == "normal" else 8 / 12
    hits = 0
    for trial in range(2000):
        values = rng.normal(0.5, 0.1, seeds) if shape == "normal" else rng.binomial(100, rng.beta(8, 4, seeds)) / 100
        _, low, high = bootstrap_interval(values.tolist(), bounds=(0, 1), seed=trial, resamples=200)
        hits += low <= truth <= high
    assert 0.93 <= hits / 2000 <= 0.97


def test_student_against_scipy() -> None:
    for degrees in range(1, 300):
        assert student_95(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=2e-6)


def test_interval_of_many_values_is_students() -> None:
    values = np.random.default_rng(0).normal(size=400)
    mean, low, high = bootstrap_interval(values.tolist())
    expected = stats.t.interval(0.95, 399, values.mean(), stats.sem(values))
    assert mean == pytest.approx(values.mean())
    assert (low, high) == pytest.approx(expected, abs=0.01)


def test_one_value_and_equal_values_have_no_width() -> None:
    assert bootstrap_interval([0.4]) == (0.4, 0.4, 0.4)
    assert bootstrap_interval([0.5] * 5, interquartile_mean) == (0.5, 0.5, 0.5)


def test_interquartile_mean_against_scipy() -> None:
    for n in range(1, 25):
        values = np.random.default_rng(n).normal(size=n)
        assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25))


def test_bootstrap_is_repeatable() -> None:
    assert bootstrap_interval([0.1, 0.5, 0.9]) == bootstrap_interval([0.1, 0.5, 0.9])


def test_probability_of_improvement_by_hand() -> None:
    assert probability_of_improvement([1, 1], [0, 0]) == 1
    assert probability_of_improvement([1, 0], [1, 0]) == 0.5
    assert probability_of_improvement([2, 3], [1, 2, 3]) == (1 + 0.5 + 0 + 1 + 1 + 0.5) / 6


def test_improvement_interval_holds_its_estimate() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0.6, 0.1, 12).tolist(), rng.normal(0.5, 0.1, 12).tolist()
    chance, low, high = improvement_interval(ours, theirs)
    assert chance == probability_of_improvement(ours, theirs)
    assert 0 <= low < chance < high <= 1
    assert improvement_interval([1.0, 1.0], [0.0]) == (1.0, 1.0, 1.0)
