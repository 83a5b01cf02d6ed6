"""The ring buffer."""

import numpy as np

from sf_explore_go.offpolicy.replay import Replay, Transitions
from sf_explore_go.worlds.states import GOAL


def numbered(*numbers: int) -> Transitions:
    column = np.array(numbers, np.int32)
    return Transitions(column, column % 3, column + 1, column / np.float32(2))


def test_the_newest_replace_the_oldest() -> None:
    replay = Replay(5)
    replay.add(numbered(1, 2, 3))
    assert sorted(replay.entries.state) == [1, 2, 3]
    replay.add(numbered(4, 5, 6, 7))
    assert len(replay) == 5
    assert sorted(replay.entries.state) == [3, 4, 5, 6, 7]
    replay.add(numbered())
    entries = replay.entries
    assert (entries.action == entries.state % 3).all()
    assert (entries.next_state == entries.state + 1).all()
    assert (entries.bonus == entries.state / 2).all()


def test_only_the_goal_is_terminal_and_rewarded() -> None:
    made = Transitions(np.array([1, 2]), np.array([0, 0]), np.array([GOAL, 0]), np.zeros(2, np.float32))
    assert made.terminal.tolist() == [True, False]
    assert made.reward.tolist() == [1.0, 0.0]


def test_samples_are_uniform_over_what_is_there() -> None:
    replay = Replay(100)
    replay.add(numbered(*range(10)))
    drawn = replay.sample(20_000, np.random.default_rng(0)).state
    assert np.bincount(drawn, minlength=10).min() > 1800
    assert len(np.bincount(drawn)) == 10


def test_a_copy_goes_on_as_the_original() -> None:
    one, other = Replay(5), Replay(5)
    one.add(numbered(1, 2, 3, 4, 5, 6))
    other.load_state_dict(one.state_dict())
    for replay in (one, other):
        replay.add(numbered(7, 8))
    for mine, its in zip(one.entries, other.entries, strict=True):
        np.testing.assert_array_equal(mine, its)
    assert other.distinct_states() == 5
    other.add(numbered(8, 8, 8))
    assert other.distinct_states() == 2
