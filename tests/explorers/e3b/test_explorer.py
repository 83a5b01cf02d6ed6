"""What E3B accepts and what it refuses, in one sentence."""

import gymnasium as gym
import numpy as np
import pytest

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.e3b import E3BExplorer
from sf_explore_go.explorers.registry import resolve_explorer


def test_it_has_a_name() -> None:
    assert resolve_explorer("e3b") is E3BExplorer
    assert E3BExplorer.learned


def test_classes_and_vectors_are_accepted() -> None:
    parts = (gym.spaces.Discrete(5), gym.spaces.Box(-1, 1, (2,), np.float32))
    for space in (*parts, gym.spaces.Tuple(parts)):
        E3BExplorer.check(space, None)


def test_other_actions_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--explorer=e3b.*MultiBinary\(3\) must be Discrete, Box or a Tuple of these"):
        E3BExplorer.check(gym.spaces.MultiBinary(3), None)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("e3b_ridge", 0.0),
        ("e3b_ridge", -1.0),
        ("e3b_ridge", float("nan")),
        ("intrinsic_reward_coeff", -0.1),
        ("e3b_epochs", 0),
    ],
)
def test_bad_flags_are_refused(flag: str, value: float) -> None:
    cfg = parse_train_args(["--env=illustrative_train", "--experiment=x", "--seed=1"])
    E3BExplorer.check_cfg(cfg)
    cfg[flag] = value
    with pytest.raises(UsageError, match=f"--{flag}={value}: it must be"):
        E3BExplorer.check_cfg(cfg)
