"""Intervals for what is measured."""

import math
from collections.abc import Sequence

import numpy as np

Z_95 = 1.959963984540054  # the normal distribution's 97.5 % point


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """95 % interval of a share (Wilson's score), sensible at 0 and at 1 too."""
    if trials == 0:
        return 0.0, 1.0
    share, z2 = successes / trials, Z_95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z_95 / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and its 95 % interval by the normal approximation: (mean, low, high)."""
    data = np.asarray(values, dtype=float)
    mean = float(data.mean())
    half = Z_95 * float(data.std(ddof=1)) / math.sqrt(len(data)) if len(data) > 1 else 0.0
    return mean, mean - half, mean + half


def bootstrap_interval(values: Sequence[float], seed: int = 0, resamples: int = 10_000) -> tuple[float, float, float]:
    """Mean over seeds with its 95 % percentile bootstrap interval: (mean, low, high)."""
    data = np.asarray(values, dtype=float)
    picks = np.random.default_rng(seed).integers(0, len(data), size=(resamples, len(data)))
    low, high = np.percentile(data[picks].mean(axis=1), [2.5, 97.5])
    return float(data.mean()), float(low), float(high)


def probability_of_improvement(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The chance that a random run of ours is better than a random run of theirs; ties count half."""
    a, b = np.asarray(ours, dtype=float)[:, None], np.asarray(theirs, dtype=float)[None, :]
    return float(((a > b) + 0.5 * (a == b)).mean())
