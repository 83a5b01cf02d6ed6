"""Pictures normalised in one go: the numbers of Sample Factory's own normaliser, up to its rounding."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from sample_factory.utils.attr_dict import AttrDict
from sample_factory.utils.normalize import ObservationNormalizer

from sf_explore_go.training.pictures import ROWS, can_normalize, moments, normalize

SHAPE = (3, 5, 7)


def make_normalizer(**changes: Any) -> Any:
    space = gym.spaces.Dict({"obs": gym.spaces.Box(0, 255, SHAPE, np.uint8)})
    settings = {"obs_subtract_mean": 3.0, "obs_scale": 255.0, "normalize_input": True, "normalize_input_keys": None}
    return ObservationNormalizer(space, AttrDict(settings | changes))


def make_pictures(count: int) -> torch.Tensor:
    """Some pixels never change, and some are nearly always 0."""
    torch.manual_seed(count)
    pictures = torch.randint(0, 256, (count, *SHAPE), dtype=torch.uint8)
    pictures[:, 0, 0] = 255
    pictures[1:, 1, 1] = 0
    return pictures


def test_equals_the_original_batch_after_batch() -> None:
    ours, original = make_normalizer(), make_normalizer()
    for count in (ROWS // 2, ROWS, 3 * ROWS + 1):
        pictures = make_pictures(count)
        found, expected = normalize(ours, pictures), original({"obs": pictures})["obs"]
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, atol=1e-5)
        for mine, theirs in zip(ours.buffers(), original.buffers(), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-9)


def test_moments_are_exact() -> None:
    rows = make_pictures(10 * ROWS + 3).flatten(1)
    floats = torch.empty(rows.shape)
    mean, variance = moments(rows, floats)
    assert torch.equal(floats, rows.float())
    np.testing.assert_allclose(mean, rows.numpy().astype(np.float64).mean(0), rtol=1e-14)
    np.testing.assert_allclose(variance, rows.numpy().astype(np.float64).var(0, ddof=1), rtol=1e-11, atol=1e-9)


def test_extreme_values_are_cut_off_as_in_the_original() -> None:
    ours, original = make_normalizer(), make_normalizer()
    pictures = torch.zeros((200, *SHAPE), dtype=torch.uint8)
    pictures[0] = 255
    found, expected = normalize(ours, pictures), original({"obs": pictures})["obs"]
    assert expected.max() == 5.0
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("normalizer", "obs"),
    [
        (make_normalizer(), {"obs": torch.zeros(2, *SHAPE)}),  # not bytes
        (make_normalizer(), {"obs": make_pictures(2), "more": torch.zeros(2)}),
        (make_normalizer(normalize_input=False), {"obs": make_pictures(2)}),
        (make_normalizer(normalize_input_keys=["more"]), {"obs": make_pictures(2)}),
    ],
)
def test_everything_else_is_left_to_the_original(normalizer: Any, obs: dict[str, torch.Tensor]) -> None:
    assert can_normalize(make_normalizer(), {"obs": make_pictures(2)})
    assert not can_normalize(normalizer, obs)
