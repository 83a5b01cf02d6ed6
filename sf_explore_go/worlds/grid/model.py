"""Networks for grids: the picture flattened into a plain network, or the paper's residual one for Four Rooms."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import gymnasium as gym
import torch
from torch import Tensor, nn

Padding = Literal["zeros", "circular"]
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


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, a ReLU before each, added to what came in."""

    def __init__(self, channels: int, padding: Padding) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.ReLU(), convolution(channels, channels, padding), nn.ReLU(), convolution(channels, channels, padding)
        )

    def forward(self, x: Tensor) -> Tensor:
        added: Tensor = x + self.path(x)
        return added


class ResidualNetwork(nn.Module):
    """{"obs": [B, 3, n, n]} -> [B, out_size]: a convolution, pooling, two residual blocks, then plain layers."""

    def __init__(self, channels: int, layers: Sequence[int], obs_space: gym.Space, padding: Padding) -> None:
        super().__init__()
        assert obs_space.shape is not None
        self.body = nn.Sequential(
            convolution(obs_space.shape[0], channels, padding),
            nn.MaxPool2d(3, stride=2, padding=1),
            ResidualBlock(channels, padding),
            ResidualBlock(channels, padding),
            nn.Flatten(),
        )
        with torch.no_grad():
            sizes = (self.body(torch.zeros(1, *obs_space.shape)).shape[1], *layers)
        self.head = nn.Sequential(*(part for a, b in pairwise(sizes) for part in (nn.ReLU(), nn.Linear(a, b))))
        self.out_size = sizes[-1]

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        pictures = obs["obs"].contiguous(memory_format=torch.channels_last)  # pools three times as fast without a GPU
        features: Tensor = self.head(self.body(pictures))
        return features


def convolution(inputs: int, outputs: int, padding: Padding) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, padding=1, padding_mode=padding)
