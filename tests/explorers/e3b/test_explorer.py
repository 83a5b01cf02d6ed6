"""What E3B accepts and what it refuses, in one sentence."""

import gymnasium as gym
import numpy as np
import pytest

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import resolve_explorer
from sf_explore_go.explorers.e3b import E3BExplorer
from sf_explore_go.explorers.e3b.learner import E3BLearner


def test_it_has_a_name() -> None:
    assert resolve_explorer("e3b") is E3BExplorer
    assert E3BExplorer.learned
    assert E3BExplorer.learner_class() is E3BLearner


def test_discrete_actions_are_accepted() -> None:
    E3BExplorer.check(gym.spaces.Discrete(5))
    E3BExplorer.check(gym.spaces.Tuple((gym.spaces.Discrete(5), gym.spaces.Discrete(2))))


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Box(-1, 1, (2,), np.float32),
        gym.spaces.Tuple((gym.spaces.Discrete(2), gym.spaces.Box(-1, 1, (2,), np.float32))),
    ],
)
def test_continuous_actions_are_refused(space: gym.Space) -> None:
    with pytest.raises(UsageError, match=r"--explorer=e3b.*Box.*allowed are Discrete and Tuple of Discrete"):
        E3BExplorer.check(space)


@pytest.mark.parametrize(
    ("flag", "value"),
    [("e3b_ridge", 0.0), ("e3b_ridge", -1.0), ("e3b_ridge", float("nan")), ("intrinsic_reward_coeff", -0.1)],
)
def test_bad_flags_are_refused(flag: str, value: float) -> None:
    cfg = parse_train_args(["--env=illustrative_train", "--experiment=x", "--seed=1"])
    E3BExplorer.check_cfg(cfg)
    cfg[flag] = value
    with pytest.raises(UsageError, match=f"--{flag}={value}: allowed are"):
        E3BExplorer.check_cfg(cfg)
