"""Advantages in batches without reward.

APPO divides the advantages of every batch by their standard deviation. Where rewards are rare, many batches hold none:
what is left is the value function's own noise, and it is blown up to the size of a reward. Such batches make the policy
sure of itself before it has seen the goal often enough. So the spread of earlier batches is remembered, and a batch
with a smaller spread keeps its smaller weight.
"""

import math

TINY = 1e-12  # variance below which there is nothing to compare with


class AdvantageScale:
    """A running mean of the advantages' variance, with a memory between 0 and 1 per batch."""

    def __init__(self, memory: float) -> None:
        self.memory = memory
        self.variance, self.weight = 0.0, 0.0

    def share(self, std: float) -> float:
        """The factor, at most 1, for the loss of a batch that had this standard deviation before it was scaled to 1."""
        self.variance += (1 - self.memory) * (std**2 - self.variance)
        self.weight += (1 - self.memory) * (1 - self.weight)
        usual = self.variance / self.weight  # unbiased from the first batch on
        return min(1.0, std / math.sqrt(usual)) if usual > TINY else 1.0
