"""Sample Factory's normalisation of pictures, for processors: the same sums, made in one go.

Sample Factory divides pictures by `obs_scale`, then subtracts a running mean and divides by a running standard
deviation, pixel by pixel. On a processor the variance of a batch takes longer than all the rest together, and every
step walks through memory again. Here a batch is taken in blocks that fit into the cache. Sums of bytes and of their
squares are whole numbers and stay exact, so mean and variance are those of the batch to the last digit of float64;
Sample Factory rounds on the way. Numbers therefore differ by rounding, which is why a flag must ask for it
(`--fast_pictures`).
"""

from typing import Any

import torch
from sample_factory.algo.utils.running_mean_std import RunningMeanStdInPlace
from torch import Tensor

from sf_explore_go.core.versions import written_for

written_for("sample-factory", "2.1.1")  # whose normaliser keeps its buffers and joins its moments as this module knows

ROWS = 64  # pictures of a block
assert ROWS * 255**2 < 2**24, "sums of squares must be exact in float32"


def can_normalize(obs_normalizer: Any, obs: dict[str, Tensor]) -> bool:
    """Whether the observations are pictures alone, on a processor, and their statistics are wanted."""
    return (
        list(obs) == ["obs"]
        and obs["obs"].dtype == torch.uint8
        and obs["obs"].device.type == "cpu"
        and obs_normalizer.running_mean_std is not None
        and "obs" in obs_normalizer.running_mean_std.running_mean_std
    )


@torch.no_grad()
def normalize(obs_normalizer: Any, pictures: Tensor) -> Tensor:
    """Normalised pictures [B, ...], float32; counts them in the running statistics."""
    running = obs_normalizer.running_mean_std.running_mean_std["obs"]
    shift, scale = obs_normalizer.sub_mean, 1.0 / obs_normalizer.scale
    result = torch.empty(pictures.shape, dtype=torch.float32)
    mean, variance = moments(pictures.flatten(1), result.flatten(1))
    update(running, (mean - shift) * scale, variance * scale**2, len(pictures))
    # (x - shift) * scale, less the running mean, over the running deviation, as one product and one sum
    deviation = torch.sqrt(running.running_var.float() + running.eps).double()
    factor = (scale / deviation).float()
    offset = (-(shift * scale + running.running_mean) / deviation).float()
    for block in result.split(ROWS):
        torch.addcmul(offset, block, factor, out=block).clamp_(-running.clip, running.clip)
    return result


def moments(rows: Tensor, floats: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance over rows [B, n] of bytes, in float64; `floats` [B, n] gets the bytes as numbers."""
    total, squares = (torch.zeros(rows.shape[1], dtype=torch.float64) for _ in range(2))
    for block, target in zip(rows.split(ROWS), floats.split(ROWS), strict=True):
        target.copy_(block)
        total += target.sum(0)
        squares += target.square().sum(0)
    count = len(rows)
    return total / count, (squares - total.square() / count) / max(1, count - 1)


def update(running: Any, mean: Tensor, variance: Tensor, count: int) -> None:
    """Join the moments of a batch with the running ones, by Sample Factory's own function."""
    shape = running.running_mean.shape
    joined = RunningMeanStdInPlace._update_mean_var_count_from_moments(
        running.running_mean, running.running_var, running.count, mean.view(shape), variance.view(shape), count
    )
    for buffer, value in zip((running.running_mean, running.running_var, running.count), joined, strict=True):
        buffer.copy_(value)
