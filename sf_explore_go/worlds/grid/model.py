"""The network for small grids: the picture flattened into a plain network."""

import math
from collections.abc import Sequence
from itertools import pairwise

import gymnasium as gym
from torch import Tensor, nn

ACTIVATIONS = {"relu": nn.ReLU, "elu": nn.ELU, "tanh": nn.Tanh}  # what --nonlinearity can be


class FlatNetwork(nn.Sequential):
    """Observations {"obs": [B, ...]} -> [B, out_size]."""

    def __init__(self, layers: Sequence[int], obs_space: gym.Space, nonlinearity: str) -> None:
        assert obs_space.shape is not None
        sizes = (math.prod(obs_space.shape), *layers)
        activation = ACTIVATIONS[nonlinearity]
        super().__init__(*(part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), activation())))
        self.out_size = sizes[-1]

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        features: Tensor = super().forward(obs["obs"].flatten(1))
        return features
