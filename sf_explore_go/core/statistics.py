"""Intervals for what is measured."""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z_95 = 1.959963984540054  # the normal distribution's 97.5 % point

# Student's 97.5 % points for 1, 2, ... 12 degrees of freedom; from there on the series below is exact to five digits
STUDENT_95 = (
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139, 2.200985,
    2.178813,
)  # fmt: skip

Interval = tuple[float, float, float]  # estimate, low, high
Estimator = Callable[[NDArray[np.float64]], NDArray[np.float64]]  # [..., n] -> [...]


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson's score), sensible at 0 and at 1 too."""
    if trials == 0:
        return 0.0, 1.0
    share, z2 = successes / trials, Z_95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean and its 95 % interval by the normal approximation: (mean, low, high)."""
    data = np.asarray(values, dtype=float)
    mean = float(data.mean())
    half = Z_95 * float(data.std(ddof=1)) / math.sqrt(len(data)) if len(data) > 1 else 0.0
    return mean, mean - half, mean + half


def student_95(degrees: int) -> float:
    """Student's 97.5 % point."""
    if degrees <= len(STUDENT_95):
        return STUDENT_95[degrees - 1]
    z, v = Z_95, float(degrees)
    return z + (
        (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * v**4)
    )


def mean(values: ArrayLike) -> NDArray[np.float64]:
    """[..., n] -> [...]"""
    return np.asarray(np.asarray(values, dtype=float).mean(axis=-1))


def interquartile_mean(values: ArrayLike) -> NDArray[np.float64]:
    """The mean without the lowest and the highest quarter (rounded down to whole values): [..., n] -> [...]"""
    ordered = np.sort(np.asarray(values, dtype=float), axis=-1)
    cut = ordered.shape[-1] // 4
    return np.asarray(ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1))


def bootstrap_interval(
    values: Sequence[float],
    estimator: Estimator = mean,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    seed: int = 0,
    resamples: int = 10_000,
) -> Interval:
    """An estimate over seeds with its 95 % bootstrap interval, calibrated for few seeds: (estimate, low, high).

    The bootstrap gives the standard error of the estimate, whatever the estimator; Student's factor makes an interval
    of it. The more usual percentiles of the bootstrap are too narrow for few seeds: they take the spread for known, and
    with 5 seeds cover 80 %, not 95 %. Resampling n values also understates their spread by sqrt((n-1)/n), which is
    made good for. For the mean all this comes to Student's interval. A single value tells nothing of its spread: its
    interval is the value itself, and the number of seeds stands beside it.
    """
    data = np.asarray(values, dtype=float)
    n = len(data)
    estimate = float(estimator(data))
    if n == 1:
        return estimate, estimate, estimate
    picks = np.random.default_rng(seed).integers(0, n, size=(resamples, n))
    error = float(np.std(estimator(data[picks]))) * math.sqrt(n / (n - 1))
    half = student_95(n - 1) * error
    return estimate, float(np.clip(estimate - half, *bounds)), float(np.clip(estimate + half, *bounds))


def probability_of_improvement(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The chance that a random run of ours is better than a random run of theirs; ties count half."""
    a, b = np.asarray(ours, dtype=float)[:, None], np.asarray(theirs, dtype=float)[None, :]
    return float(((a > b) + 0.5 * (a == b)).mean())


def improvement_interval(
    ours: Sequence[float], theirs: Sequence[float], seed: int = 0, resamples: int = 2_000
) -> Interval:
    """`probability_of_improvement` with its 95 % percentile bootstrap interval over the seeds of both arms."""
    a, b, rng = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float), np.random.default_rng(seed)
    x = a[rng.integers(0, len(a), (resamples, len(a)))][:, :, None]
    y = b[rng.integers(0, len(b), (resamples, len(b)))][:, None, :]
    low, high = np.percentile(((x > y) + 0.5 * (x == y)).mean(axis=(1, 2)), [2.5, 97.5])
    return probability_of_improvement(ours, theirs), float(low), float(high)
