"""The explorer that repeats actions."""

from itertools import groupby, pairwise
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.sticky import StickyExplorer


def make_cfg(tail: float = 1.0, longest: tuple[int, ...] = (8,), weights: list[float] | None = None) -> Any:
    return SimpleNamespace(sticky_tail=tail, sticky_longest=list(longest), sticky_weights=weights)


def play(space: gym.Space, cfg: Any, steps: int, seed: int = 0) -> list[Any]:
    explorer = StickyExplorer(space, seed, cfg)
    explorer.begin_phase({})
    return [explorer.act({}) for _ in range(steps)]


def holds(actions: list[Any]) -> list[tuple[Any, int]]:
    """(action, how long it was held); the last one may have been cut short."""
    return [(action, len(list(group))) for action, group in groupby(actions)][:-1]


@pytest.mark.parametrize("tail", [0.0, 1.0, 2.0])
def test_durations_have_the_tail(tail: float) -> None:
    held = [duration for _, duration in holds(play(gym.spaces.Discrete(5), make_cfg(tail, (6,)), 40_000))]
    expected = np.array([1 / n**tail for n in range(1, 7)])
    found = np.bincount(held, minlength=7)[1:] / len(held)
    assert len(np.bincount(held)) == 7  # none is longer
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.015)


def test_actions_have_their_weights_and_longest_times() -> None:
    cfg = make_cfg(0.0, (1, 2, 4), [1.0, 1.0, 2.0])
    held = holds(play(gym.spaces.Discrete(3), cfg, 60_000))
    assert {action: max(n for a, n in held if a == action) for action in range(3)} == {0: 1, 1: 2, 2: 4}
    # After 2, both others are equally likely; after 0 or 1, 2 is drawn in two of three cases.
    following = [after for (before, _), (after, _) in pairwise(held) if before == 0]
    assert np.mean(np.array(following) == 2) == pytest.approx(2 / 3, abs=0.02)


def test_an_action_without_weight_is_never_taken() -> None:
    assert set(play(gym.spaces.Discrete(3), make_cfg(weights=[0.0, 1.0, 1.0]), 1000)) == {1, 2}


def test_spaces_whose_first_action_is_not_0() -> None:
    cfg = make_cfg(longest=(1, 1, 5), weights=[1.0, 1.0, 1.0])
    assert {action for action, n in holds(play(gym.spaces.Discrete(3, start=-1), cfg, 2000)) if n > 1} == {1}


def test_vectors_are_held_too() -> None:
    held = holds([tuple(action) for action in play(gym.spaces.Box(-1.0, 1.0, (2,)), make_cfg(), 500)])
    assert {n for _, n in held} == set(range(1, 9))


def test_one_seed_one_phase() -> None:
    space, cfg = gym.spaces.Discrete(5), make_cfg()
    assert play(space, cfg, 200, seed=3) == play(space, cfg, 200, seed=3) != play(space, cfg, 200, seed=4)


@pytest.mark.parametrize(
    ("cfg", "sentence"),
    [
        (make_cfg(longest=(0,)), "--sticky_longest=0: it must be at least 1"),
        (make_cfg(weights=[1.0, -1.0, 1.0]), "--sticky_weights=1 -1 1: they must be at least 0"),
        (make_cfg(weights=[0.0, 1.0, 0.0]), "above 0 for two actions or more"),
        (make_cfg(weights=[1.0, 1.0]), "--sticky_weights=1 1: there must be one for each of the 3 actions"),
        (make_cfg(longest=(1, 2)), "--sticky_longest=1 2: there must be one for each of the 3 actions"),
    ],
)
def test_what_cannot_work_is_refused(cfg: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        check(cfg, gym.spaces.Discrete(3))


def test_weights_of_vectors_are_refused() -> None:
    with pytest.raises(UsageError, match=r"must be left out, since .* Box"):
        check(make_cfg(weights=[1.0, 1.0]), gym.spaces.Box(-1.0, 1.0, (2,)))


def check(cfg: Any, space: gym.Space) -> None:
    StickyExplorer.check_cfg(cfg)
    StickyExplorer.check(space, cfg)
