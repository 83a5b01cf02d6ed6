"""The standard deviation of a stream of numbers, batch by batch.

Means and sums of squared deviations of two samples are joined as Chan, Golub and LeVeque (1979) do it, in float64: no
squares of raw values are summed, so nothing cancels however large the mean is.
"""

import math

from torch import Tensor

MIN_SHARE_OF_MEAN = 0.01


class RunningStd:
    """Over everything seen so far."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self.squares = 0.0  # sum of squared deviations from the mean

    def update(self, values: Tensor) -> None:
        values = values.double()
        mean, count = values.mean().item(), values.numel()
        squares = (values - mean).square().sum().item()
        total, delta = self.count + count, mean - self.mean
        self.squares += squares + delta**2 * self.count * count / total
        self.mean += delta * count / total
        self.count = total

    @property
    def std(self) -> float:
        return math.sqrt(self.squares / self.count) if self.count else 0.0

    @property
    def scale(self) -> float:
        """What to divide by: the standard deviation, or 1 % of the mean where values hardly differ; 1 for all zeros."""
        return max(self.std, MIN_SHARE_OF_MEAN * abs(self.mean)) or 1.0

    def state_dict(self) -> dict[str, float]:
        return {"count": self.count, "mean": self.mean, "squares": self.squares}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.count, self.mean, self.squares = int(state["count"]), float(state["mean"]), float(state["squares"])
