"""The bonus against its definition, whatever way phases are cut into rollouts and batches."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sf_explore_go.bench.e3b import Update, our_arm, per_step_bonuses, update_in_place, update_with_new_arrays
from sf_explore_go.explorers.e3b.elliptical import MAX_SQUARED_LENGTH, EpisodicBonus, PhaseSteps
from tests.explorers.e3b.reference import by_phase, direct_bonuses, expected_bonuses, make_batches

KINDS = ("random", "walk", "normed")


def worst_error(batches: list, ridge: float, longest: int) -> float:
    """Largest relative error over all steps of all phases."""
    bonus = EpisodicBonus(ridge, longest)
    ours = by_phase(batches, [bonus(batch.features, batch.steps) for batch in batches])
    assert bonus.late == 0
    expected = expected_bonuses(batches, ridge)
    return max(float(((ours[key] - expected[key]).abs() / expected[key]).max()) for key in expected)


@settings(max_examples=1000, deadline=None)
@given(
    envs=st.integers(1, 5),
    longest=st.integers(1, 40),
    kind=st.sampled_from(KINDS),
    size=st.integers(2, 24),
    steps=st.integers(1, 12),
    rollouts=st.integers(1, 8),
    batches=st.integers(1, 4),
    ridge=st.sampled_from([0.01, 0.1, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_equals_the_definition(
    envs: int, longest: int, kind: str, size: int, steps: int, rollouts: int, batches: int, ridge: float, seed: int
) -> None:
    stream = make_batches(envs, longest, kind, size, steps, rollouts, batches, seed)
    assert worst_error(stream, ridge, longest) < 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_definition_at_full_size(kind: str) -> None:
    stream = make_batches(envs=4, longest=200, kind=kind, size=256, steps=32, rollouts=8, batches=4, seed=1)
    assert worst_error(stream, 0.1, 200) < 1e-4


@pytest.mark.parametrize("update", [update_in_place, update_with_new_arrays])
@pytest.mark.parametrize("seed", range(5))
def test_equals_the_published_loop(seed: int, update: Update) -> None:
    torch.manual_seed(seed)
    earlier, features = torch.randn(3, 20, 16), torch.randn(3, 8, 16)
    buffer = torch.empty(3, 16, 16)
    _, inverses = per_step_bonuses((torch.eye(16) / 0.1).repeat(3, 1, 1), earlier, buffer, update)
    published, _ = per_step_bonuses(inverses, features, buffer, update)
    torch.testing.assert_close(our_arm(earlier, features)(), published, rtol=1e-3, atol=0)


def one_phase(features: torch.Tensor) -> tuple[torch.Tensor, PhaseSteps]:
    """One rollout [1, T, d] with the first T steps of a phase."""
    step = np.arange(len(features))[None]
    return features[None], PhaseSteps(np.zeros_like(step), np.zeros_like(step), step, np.zeros_like(step))


@pytest.mark.parametrize("rollout", [1, 7, 200])
def test_a_state_that_never_changes(rollout: int) -> None:
    """n equal rows of squared length s: b = s / (ridge + n s), down to 1/200 of the first digit in 5120."""
    features = torch.nn.functional.layer_norm(torch.randn(512), (512,)).repeat(200, 1)
    bonus = EpisodicBonus(0.1, 200)
    ours = []
    for start in range(0, 200, rollout):
        values, steps = one_phase(features[start : start + rollout])
        ours.append(bonus(values, dataclasses.replace(steps, step=steps.step + start))[0])
    squared = float(features[0].double().square().sum())
    expected = squared / (0.1 + squared * torch.arange(200, dtype=torch.float64))
    torch.testing.assert_close(torch.cat(ours).double(), expected, rtol=1e-4, atol=0.0)


def test_zeros_earn_nothing() -> None:
    assert not EpisodicBonus(0.1, 10)(*one_phase(torch.zeros(10, 4))).any()


def test_tiny_features_keep_their_digits() -> None:
    features = 1e-12 * torch.randn(30, 8)
    ours = EpisodicBonus(0.1, 30)(*one_phase(features))[0]
    torch.testing.assert_close(ours.double(), direct_bonuses(features, 0.1), rtol=1e-4, atol=0.0)


@pytest.mark.parametrize("scale", [1e4, 1e10, 1e20, 1e30, 3e38])
@pytest.mark.parametrize("repeat", [False, True])
def test_huge_features_are_shortened(scale: float, repeat: bool) -> None:
    rows = torch.nn.functional.normalize(torch.randn(1 if repeat else 60, 32)).expand(60, 32)
    ours = EpisodicBonus(0.1, 60)(*one_phase(scale * rows))[0]
    assert torch.isfinite(ours).all()
    assert (ours >= 0).all()
    assert ours[0] == pytest.approx(min(scale**2 / 0.1, MAX_SQUARED_LENGTH), rel=1e-4)
    if repeat:
        torch.testing.assert_close(ours[1:], 1 / torch.arange(1.0, 60.0), rtol=1e-3, atol=0.0)


@settings(max_examples=200, deadline=None)
@given(
    exponents=st.lists(st.integers(-45, 38), min_size=1, max_size=30),
    rank=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
)
def test_never_negative_and_always_finite(exponents: list[int], rank: int, seed: int) -> None:
    """Rows of a low rank, hence dependent, whose lengths span all of float32."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.nn.functional.normalize(torch.randn(rank, 16, generator=generator))
    chosen = directions[torch.randint(rank, (len(exponents),), generator=generator)]
    features = (chosen.double() * 10.0 ** torch.tensor(exponents, dtype=torch.float64).unsqueeze(1)).float()
    ours = EpisodicBonus(0.1, 30)(*one_phase(features))
    assert torch.isfinite(ours).all()
    assert (ours >= 0).all()


def test_memory_is_bounded_and_reused() -> None:
    bonus = EpisodicBonus(0.1, 20)
    for batch in make_batches(envs=3, longest=20, kind="random", size=8, steps=5, rollouts=6, batches=50, seed=2):
        bonus(batch.features, batch.steps)
    assert len(bonus.memories) == 3
    assert all(memory.rows.shape == (20, 8) and memory.length <= 20 for memory in bonus.memories.values())


def test_nothing_is_held_of_a_phase_that_has_ended() -> None:
    bonus = EpisodicBonus(0.1, 20)
    features, steps = one_phase(torch.randn(6, 4))
    steps.done[0, -1] = 1
    bonus(features, steps)
    assert bonus.memories[0].length == 0


def test_features_may_change_after_the_call() -> None:
    """What is held is a copy: the learner goes on to use its tensors."""
    torch.manual_seed(0)
    rows = torch.randn(12, 4)
    bonus = EpisodicBonus(0.1, 12)
    first, steps = one_phase(rows[:6].clone())
    bonus(first, steps)
    first.fill_(torch.nan)
    ours = bonus(rows[None, 6:], dataclasses.replace(steps, step=steps.step + 6))[0]
    torch.testing.assert_close(ours.double(), direct_bonuses(rows, 0.1)[6:], rtol=1e-4, atol=0.0)


# --- rollouts whose beginning is not held -----------------------------------------------------------------------------


def test_a_late_rollout_is_counted_and_starts_afresh() -> None:
    """The first rollout of a phase was lost: the rest counts as late once, and is a phase by itself."""
    batches = make_batches(envs=1, longest=40, kind="random", size=6, steps=4, rollouts=1, batches=10, seed=3)
    bonus = EpisodicBonus(0.1, 40)
    first, *rest = batches
    assert first.steps.phase.max() == rest[1].steps.phase.max() == 0  # all of one phase
    assert bonus.late == 0
    ours = torch.cat([bonus(batch.features, batch.steps)[0] for batch in rest[:2]])
    assert bonus.late == 1
    rows = torch.cat([batch.features[0] for batch in rest[:2]])
    torch.testing.assert_close(ours.double(), direct_bonuses(rows, 0.1), rtol=1e-4, atol=0.0)


def test_a_gap_inside_a_phase_is_late() -> None:
    batches = make_batches(envs=1, longest=40, kind="random", size=6, steps=4, rollouts=1, batches=3, seed=3)
    bonus = EpisodicBonus(0.1, 40)
    bonus(batches[0].features, batches[0].steps)
    ours = bonus(batches[2].features, batches[2].steps)[0]
    assert bonus.late == 1
    torch.testing.assert_close(ours.double(), direct_bonuses(batches[2].features[0], 0.1), rtol=1e-4, atol=0.0)


def test_a_rollout_out_of_order_inside_a_batch_is_late() -> None:
    batch = make_batches(envs=1, longest=40, kind="random", size=6, steps=4, rollouts=3, batches=1, seed=3)[0]
    swapped = batch.rollouts([0, 2, 1])
    bonus = EpisodicBonus(0.1, 40)
    ours = bonus(swapped.features, swapped.steps)
    assert bonus.late == 2
    for values, rows in zip(ours, swapped.features, strict=True):
        torch.testing.assert_close(values.double(), direct_bonuses(rows, 0.1), rtol=1e-4, atol=0.0)


def test_the_same_phase_number_after_a_restart_is_a_new_phase() -> None:
    """Environments that were made anew count phases from 0 again; step 0 always begins one."""
    bonus = EpisodicBonus(0.1, 10)
    features, steps = one_phase(torch.randn(5, 4))
    first = bonus(features, steps)
    again = bonus(features, steps)
    assert bonus.late == 0
    assert torch.equal(first, again)


def test_a_phase_that_another_one_has_replaced_is_not_held_any_more() -> None:
    """In one batch: first the next phase of the environment, then more of the phase before it."""
    torch.manual_seed(0)
    rows = torch.randn(3, 4, 6)
    step = np.array([[0, 1, 2, 3], [0, 1, 2, 3], [4, 5, 6, 7]])
    phase = np.array([[0] * 4, [1] * 4, [0] * 4])
    steps = PhaseSteps(np.zeros_like(step), phase, step, np.zeros_like(step))
    bonus = EpisodicBonus(0.1, 20)
    bonus(rows[:1], PhaseSteps(steps.env[:1], phase[:1], step[:1], steps.done[:1]))
    ours = bonus(rows[1:], PhaseSteps(steps.env[1:], phase[1:], step[1:], steps.done[1:]))
    assert bonus.late == 1
    for values, own in zip(ours, rows[1:], strict=True):
        torch.testing.assert_close(values.double(), direct_bonuses(own, 0.1), rtol=1e-4, atol=0.0)


def test_steps_after_the_end_of_their_own_phase_are_late() -> None:
    """Contradictory flags: the phase is marked as ended, and goes on in the same rollout."""
    features, steps = one_phase(torch.randn(6, 4))
    steps.done[0, 2] = 1
    bonus = EpisodicBonus(0.1, 20)
    ours = bonus(features, steps)[0]
    assert bonus.late == 1
    torch.testing.assert_close(ours[3:].double(), direct_bonuses(features[0, 3:], 0.1), rtol=1e-4, atol=0.0)
