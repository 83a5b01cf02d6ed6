"""The running standard deviation against NumPy's over everything at once."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sf_explore_go.explorers.e3b.running_std import RunningStd


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=10),
    mean=st.sampled_from([0.0, 1.0, 1e3, 1e6]),
    std=st.sampled_from([1e-2, 1.0, 1e3]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_numpy(sizes: list[int], mean: float, std: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [mean + std * rng.standard_normal(size) for size in sizes]
    running = RunningStd()
    for part in parts:
        running.update(torch.from_numpy(part))
    everything = np.concatenate(parts)
    assert running.count == len(everything)
    assert running.mean == pytest.approx(everything.mean(), rel=1e-9, abs=1e-9 * std)
    assert running.std == pytest.approx(everything.std(), rel=1e-6, abs=1e-6 * std)


def test_scale_never_divides_by_zero() -> None:
    running = RunningStd()
    assert running.scale == 1.0
    running.update(torch.zeros(5))
    assert running.scale == 1.0


def test_scale_of_values_that_hardly_differ_follows_the_mean() -> None:
    running = RunningStd()
    running.update(torch.tensor([5000.0, 5000.1]))
    assert running.scale == pytest.approx(50.0, rel=1e-3)


def test_state_comes_back_exactly() -> None:
    running, other = RunningStd(), RunningStd()
    running.update(torch.randn(100))
    other.load_state_dict(running.state_dict())
    assert other.state_dict() == running.state_dict()
