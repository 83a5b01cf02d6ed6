"""Intervals against textbook values and simulations."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from sf_explore_go.core.statistics import (
    bootstrap_interval,
    effective_number,
    improvement_interval,
    interquartile_mean,
    mean_interval,
    probability_of_improvement,
    student_95,
    wilson_interval,
    wins_interval,
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


def simulated_shares(seeds: int, truth: float, sweeps: int) -> NDArray[np.float64]:
    """Normal arms with shifted means, `truth` being the chance that one of ours is above one of theirs: the share of
    pairs in which it is, in each of the simulated sweeps. From ranks: it is Mann and Whitney's statistic."""
    rng = np.random.default_rng([seeds, round(100 * truth)])
    ours = rng.normal(math.sqrt(2) * stats.norm.ppf(truth), 1, (sweeps, seeds))
    both = np.concatenate([ours, rng.normal(0, 1, (sweeps, seeds))], axis=1)
    ranks_of_ours = (np.argsort(both, axis=1) < seeds) @ np.arange(2 * seeds)
    return (ranks_of_ours - seeds * (seeds - 1) / 2) / seeds**2


@pytest.mark.parametrize("truth", [0.50, 0.76, 0.92])
@pytest.mark.parametrize("seeds", [5, 10, 20])
def test_simulated_arms_cover_the_chance_to_win_as_often_as_the_interval_says(seeds: int, truth: float) -> None:
    shares, counts = np.unique(simulated_shares(seeds, truth, 40_000), return_counts=True)
    intervals = [wins_interval(share, seeds, seeds) for share in shares]
    hits = sum(count for (low, high), count in zip(intervals, counts, strict=True) if low <= truth <= high)
    assert 0.93 <= hits / 40_000 <= 0.97


@pytest.mark.parametrize("seeds", [5, 10, 20])
def test_the_interval_covers_with_ties_and_arms_of_unequal_spread_too(seeds: int) -> None:
    """Success in 20 episodes: a baseline that fails now and then, and an arm that nearly always succeeds."""
    rng = np.random.default_rng(seeds)

    def rates(a: float, b: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
        return rng.binomial(20, rng.beta(a, b, shape)) / 20

    def shares(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
        pairs = ours[:, :, None], theirs[:, None, :]
        return ((pairs[0] > pairs[1]) + 0.5 * (pairs[0] == pairs[1])).mean(axis=(1, 2))

    truth = float(shares(rates(20, 1, (1, 3000)), rates(2, 1, (1, 3000)))[0])
    values, counts = np.unique(shares(rates(20, 1, (4000, seeds)), rates(2, 1, (4000, seeds))), return_counts=True)
    intervals = [wins_interval(value, seeds, seeds) for value in values]
    hits = sum(count for (low, high), count in zip(intervals, counts, strict=True) if low <= truth <= high)
    assert 0.93 <= hits / 4000 <= 0.98


def test_the_chance_to_win_by_hand() -> None:
    """At the end of an interval the distance to the share is 1.96 standard errors of Hanley and McNeil."""
    low, high = wins_interval(0.75, 4, 6)
    for end in (low, high):
        q1, q2 = end / (2 - end), 2 * end**2 / (1 + end)
        error = math.sqrt((end * (1 - end) + 4 * (q1 - end**2) + 4 * (q2 - end**2)) / 24)
        assert abs(end - 0.75) == pytest.approx(1.959964 * error, rel=1e-6)
    assert low < 0.75 < high
    assert wins_interval(0.25, 6, 4) == pytest.approx((1 - high, 1 - low))


def test_separated_arms_have_an_interval_and_single_seeds_have_none() -> None:
    apart = improvement_interval([0.9, 0.8, 1.0, 0.95, 0.85], [0.1, 0.2, 0.3, 0.4, 0.5])
    # 1 - low = 1.96 * sqrt(low * (1 - low) * (1 + 4 * (1 - low) / (2 - low) + 4 * low / (1 + low)) / 25)
    assert apart == pytest.approx((1.0, 0.6427, 1.0), abs=1e-4)
    assert improvement_interval([0.1, 0.2], [0.8, 0.9]) == pytest.approx((0.0, 0.0, 0.6144), abs=1e-4)
    assert improvement_interval([1.0], [0.0]) is None
    assert improvement_interval([1.0, 1.0], [0.0]) is None


@pytest.mark.parametrize(
    ("shares", "samples", "off"),
    [
        (np.ones(9), 50, 0.02),
        (np.ones(100), 200, 0.02),
        (np.ones(248), 500, 0.02),
        (0.97 ** np.arange(248), 500, 0.04),
        (1 / np.arange(1, 249), 500, 0.04),
    ],
)
def test_effective_number_of_known_distributions(shares: NDArray[np.float64], samples: int, off: float) -> None:
    """The mean estimate is close to the truth, and far closer than the entropy of the histogram."""
    shares = shares / shares.sum()
    truth = math.exp(stats.entropy(shares))
    drawn = np.random.default_rng(0).multinomial(samples, shares, size=300)
    corrected = np.mean([effective_number(counts) for counts in drawn])
    plain = np.mean([math.exp(stats.entropy(counts)) for counts in drawn])
    assert corrected == pytest.approx(truth, rel=off)
    assert abs(corrected - truth) < abs(plain - truth) / 3


def test_effective_number_by_hand() -> None:
    assert effective_number([7]) == 1.0
    assert effective_number([1]) == 1.0
    assert effective_number([[1000, 1000], [0, 1000]]) == pytest.approx(3, abs=0.01)
    # counts 2 and 1 of n = 3: 2/3 (H(2) - H(1)) + 1/3 H(2) = 5/6; and once = twice = 1 give a share of 1/2, which adds
    # 1/3 times the sum of (1/2)^j / (2 + j) = 4 ln 2 - 2 - 1/2
    assert effective_number([2, 1]) == pytest.approx(math.exp(5 / 6 + (4 * math.log(2) - 2.5) / 3))
    assert effective_number(np.ones(500)) > 10_000  # all different: nobody knows how many there are
