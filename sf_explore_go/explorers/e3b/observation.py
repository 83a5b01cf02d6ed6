"""Features without a network: the observation itself, pictures coarsely.

What inverse dynamics learns depends on the actions that it must tell apart, and a turn on the spot is one of them. A
coarse picture knows nothing of actions; it changes little by a turn back and forth, and much by a walk into the next
room (docs/e3b.md compares what behaviours earn with each).
"""

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

HEIGHT, WIDTH = 9, 16  # points that a picture is averaged to, if it has more


def observation_features(obs: dict[str, Tensor]) -> Tensor:
    """Features [N, T + 1, d] of observations [N, T + 1, ...]; pictures are [N, T + 1, channels, height, width]."""
    return torch.cat([coarse(value).flatten(2) for _, value in sorted(obs.items())], dim=-1)


def coarse(values: Tensor) -> Tensor:
    if values.dim() != 5:
        return values.float()
    size = (min(HEIGHT, values.shape[-2]), min(WIDTH, values.shape[-1]))
    return adaptive_avg_pool2d(values.flatten(0, 1).float(), size).unflatten(0, values.shape[:2])
