"""Context sets: the same everywhere, different for different seeds, never a goal of the other split."""

import hashlib
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sf_explore_go.core.contexts import BALANCED, Context, draw_context_set
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import derive_seed

GOALS = (10, 15, 20, 26)


def test_known_values_hold_on_every_machine() -> None:
    # Independent of the code under test: the hexadecimal digest, its first four bytes turned round by hand.
    def first_word(text: str) -> int:
        digest = hashlib.sha256(text.encode()).hexdigest()
        return int(digest[6:8] + digest[4:6] + digest[2:4] + digest[0:2], 16)

    expected = Context(
        GOALS[first_word("0:context:10,15,20,26:0:goal") % 4], first_word("0:context:10,15,20,26:0:engine")
    )
    assert draw_context_set(GOALS, 1, 0).contexts == (expected,)
    assert derive_seed(0, "context", "10,15,20,26", 0, "goal") == first_word("0:context:10,15,20,26:0:goal")


@pytest.mark.parametrize(("goals", "digest"), [(GOALS, "6cf880b95ac0adbe"), ((10, 20, 17), "8a52ab20593c09c1")])
def test_random_sets_are_those_of_earlier_versions(goals: tuple[int, ...], digest: str) -> None:
    sets = [
        [(c.goal, c.seed) for c in draw_context_set(goals, num, seed).contexts]
        for seed in range(20)
        for num in (1, 10, 37)
    ]
    assert hashlib.sha256(repr(sets).encode()).hexdigest()[:16] == digest


@given(seed=st.integers(-(2**40), 2**40), num=st.integers(1, 60))
def test_sets_hold_only_their_goals_without_duplicates(seed: int, num: int) -> None:
    contexts = draw_context_set(GOALS, num, seed).contexts
    assert len(set(contexts)) == len(contexts) == num
    assert {c.goal for c in contexts} <= set(GOALS)
    assert all(0 <= c.seed < 2**32 for c in contexts)
    assert draw_context_set(GOALS, num + 5, seed).contexts[:num] == contexts


def test_different_seeds_give_different_sets() -> None:
    sets = {draw_context_set(GOALS, 10, seed).contexts for seed in range(200)}
    assert len(sets) == 200


def test_goals_are_uniform_over_seeds() -> None:
    goals = [c.goal for seed in range(400) for c in draw_context_set(GOALS, 10, seed).contexts]
    counts = np.array([goals.count(goal) for goal in GOALS])
    # 4 standard errors of a share of 1/4 in 4000 draws
    assert np.all(np.abs(counts / 4000 - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000))


def test_another_process_draws_the_same_set() -> None:
    code = "from sf_explore_go.core.contexts import *; print(draw_context_set((10, 15, 20, 26), 10, 7).contexts)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == str(draw_context_set(GOALS, 10, 7).contexts)


def test_sampling_stays_in_the_set_and_covers_it() -> None:
    chosen = draw_context_set(GOALS, 10, 3)
    rng = np.random.default_rng(0)
    assert {chosen.sample(rng) for _ in range(500)} == set(chosen.contexts)
    everything = draw_context_set(GOALS, 0, 3)
    samples = [everything.sample(rng) for _ in range(500)]
    assert len(set(samples)) == 500
    assert {s.goal for s in samples} == set(GOALS)


def test_negative_number_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"--num_contexts=-3: it must be positive, or 0"):
        draw_context_set(GOALS, -3, 0)


def test_sets_over_other_goals_have_starts_of_their_own() -> None:
    train, test = draw_context_set(GOALS, 10, 0), draw_context_set((11, 12, 13), 10, 0)
    assert not {c.seed for c in train.contexts} & {c.seed for c in test.contexts}


# --- balanced goals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num", [1, 2, 3, 4, 5, 10, 12, 37])
def test_balanced_sets_have_every_goal_equally_often_give_or_take_one(num: int) -> None:
    extra: Counter[int] = Counter()
    for seed in range(200):
        contexts = draw_context_set(GOALS, num, seed, BALANCED).contexts
        assert len(set(contexts)) == len(contexts) == num
        counts = Counter(context.goal for context in contexts)
        numbers = [counts[goal] for goal in GOALS]
        assert sum(numbers) == num  # no goal of another split
        assert max(numbers) - min(numbers) <= 1
        if num < len(GOALS):
            assert len({context.goal for context in contexts}) == num
        extra.update(goal for goal in GOALS if counts[goal] > num // len(GOALS))
    more = num % len(GOALS)
    assert extra.total() == 200 * more
    # which goals have one more is up to the seed: 4 standard errors of a share of more / 4 in 200 draws
    share = more / len(GOALS)
    for goal in GOALS:
        assert abs(extra[goal] / 200 - share) <= 4 * np.sqrt(share * (1 - share) / 200)


def test_balanced_sets_are_random_in_all_else() -> None:
    sets = [draw_context_set(GOALS, 10, seed, BALANCED).contexts for seed in range(200)]
    assert len(set(sets)) == 200
    assert len({context.seed for contexts in sets for context in contexts}) == 2000
    first = Counter(contexts[0].goal for contexts in sets)  # goals come in no fixed order
    assert all(abs(first[goal] / 200 - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 200) for goal in GOALS)


@given(seed=st.integers(-(2**40), 2**40), num=st.integers(1, 60))
def test_a_larger_balanced_set_holds_the_smaller_one(seed: int, num: int) -> None:
    larger = draw_context_set(GOALS, num + 5, seed, BALANCED).contexts
    assert larger[:num] == draw_context_set(GOALS, num, seed, BALANCED).contexts


def test_the_whole_distribution_needs_no_balance() -> None:
    assert draw_context_set(GOALS, 0, 3, BALANCED) == draw_context_set(GOALS, 0, 3)


def test_an_unknown_way_is_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"^--context_goals=even: it must be random or balanced$"):
        draw_context_set(GOALS, 10, 0, "even")
