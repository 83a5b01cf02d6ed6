"""Whole runs, step by step: what environments made against what learners received."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from sf_explore_go.core.seeding import derive_seed
from tests.training.recording import MAX_LENGTH, Recording, record

K, SEED = 19, 11
LEARNED = "--explorer=tests.training.recording:PolicyExplorer"
MODES = {
    "serial": ("--serial_mode=True", "--num_workers=1", "--num_envs_per_worker=4", "--worker_num_splits=1"),
    "parallel": ("--num_workers=2", "--num_envs_per_worker=3", "--worker_num_splits=1"),
    "double-buffered": ("--num_workers=2", "--num_envs_per_worker=4", "--worker_num_splits=2"),
}


def expected_k(env: int, episodes: int) -> list[int]:
    """k of each episode of an environment, drawn here independently of the schedule's code."""
    rng = random.Random(derive_seed(SEED, "phase", env, 0))
    return [rng.randint(0, K) for _ in range(episodes)]


@pytest.fixture(
    scope="module",
    params=[
        # the random explorer has no policy of its own, so its parallel runs show little that the others do not
        pytest.param(
            (mode, explorer), marks=pytest.mark.slow if (explorer, mode != "serial") == ("random", True) else []
        )
        for mode in MODES
        for explorer in ("learned", "random")
    ],
    ids=lambda p: "-".join(p),
)
def run(request: Any, tmp_path_factory: Any) -> tuple[Recording, Any, bool]:
    mode, explorer = request.param
    folder = tmp_path_factory.mktemp("recording")
    # in one of the modes the explorer has a smaller batch than the agent
    learned = (LEARNED, "--explorer_batch_size=16") if mode == "double-buffered" else (LEARNED,)
    flags = (*MODES[mode], *(learned if explorer == "learned" else ("--explorer=random",)))
    runner = record(folder, *flags)
    return Recording(folder), runner, explorer == "learned"


def test_batches_are_of_each_policys_own_size(run: tuple[Recording, Any, bool]) -> None:
    recording, runner, _ = run
    sizes = {0: 32, 1: runner.cfg.explorer_batch_size or 32}
    for policy_id, batches in recording.batches.items():
        assert {batch["rewards"].size for batch in batches} == {sizes[policy_id]}


def steps_of_phase(made: np.ndarray, ks: list[int], policy_id: int) -> list[tuple[int, int, int]]:
    """(episode, step, action) of the steps that should be this policy's, in the order they were made."""
    return [(e, s, a) for e, s, a, _ in made.tolist() if (s < ks[e]) == (policy_id == 1)]


def test_every_step_is_in_one_rollout_of_its_own_policy_in_order(run: tuple[Recording, Any, bool]) -> None:
    recording, _, learned = run
    assert sum(len(made) for made in recording.made.values()) >= 10_000
    for policy_id in (0, 1) if learned else (0,):
        received = recording.steps_received(policy_id)
        assert set(received) == set(recording.made)
        for env, steps in received.items():
            ks = expected_k(env, int(recording.made[env][-1, 0]) + 1)
            expected = steps_of_phase(recording.made[env], ks, policy_id)
            assert all(step["policy"] == policy_id for step in steps)
            # what arrived is the beginning of what was made: nothing lost, doubled or overtaken; k obeyed
            assert [(s["episode"], s["step"], s["action"]) for s in steps] == expected[: len(steps)]
            # only the rollouts still open, or on their way when the run ended, are missing
            assert len(expected) - len(steps) <= 40 * 8
    if not learned:
        assert 1 not in recording.batches


def test_flags_at_the_switch_and_at_episode_ends(run: tuple[Recording, Any, bool]) -> None:
    recording, _, learned = run
    for policy_id in (0, 1) if learned else (0,):
        for env, steps in recording.steps_received(policy_id).items():
            made = recording.made[env]
            lengths = dict(zip(made[:, 0].tolist(), made[:, 3].tolist(), strict=True))
            ks = expected_k(env, int(made[-1, 0]) + 1)
            for step in steps:
                k, length = ks[step["episode"]], lengths[step["episode"]]
                last = step["step"] == (min(k, length) if policy_id == 1 else length) - 1
                first = step["step"] == (0 if policy_id == 1 else k)
                assert step["done"] == last
                assert step["time_out"] == (step["step"] == MAX_LENGTH - 1)
                assert step["reward"] == step["step"] + 1
                if first:
                    assert step["zero_rnn"]
                if learned and policy_id == 1:
                    assert step["phase"] == [env, step["episode"], step["step"]]


def played_k(recording: Recording) -> list[int]:
    """k as it was played: where the agent took over, in the episodes that are longer than K, so that none hides its k.

    How long an episode is does not depend on its k. The newest episode of an environment may not have arrived in full.
    """
    ks = []
    for env, steps in recording.steps_received(0).items():
        takes_over: dict[int, int] = {}
        for step in steps:
            takes_over.setdefault(step["episode"], step["step"])
        lengths = {episode: length for episode, _, _, length in recording.made[env].tolist()}
        ks += [takes_over[e] for e, length in lengths.items() if length > K and e < steps[-1]["episode"]]
    return ks


def test_k_is_uniform(run: tuple[Recording, Any, bool]) -> None:
    ks = played_k(run[0])
    assert len(ks) > 150
    assert set(ks) == set(range(K + 1))  # both ends included
    assert chisquare(np.bincount(ks, minlength=K + 1)).pvalue > 0.001


def test_probability_ratio_is_one_with_unchanged_weights(run: tuple[Recording, Any, bool]) -> None:
    recording, _, learned = run
    for policy_id in (0, 1) if learned else (0,):
        worst, invalid = recording.worst_ratio[policy_id]
        assert worst < 1e-4
        assert invalid == 0  # no sample was masked


def test_frames_equal_the_environments_own_counts(run: tuple[Recording, Any, bool]) -> None:
    recording, runner, _ = run
    assert runner.final_frames.total == sum(len(made) for made in recording.made.values())
    explored = sum(
        len(steps_of_phase(made, expected_k(env, int(made[-1, 0]) + 1), 1)) for env, made in recording.made.items()
    )
    assert runner.final_frames.explore == explored


def test_baseline_counts_frames_too(tmp_path: Path) -> None:
    runner = record(tmp_path, "--max_pure_expl_steps=0", *MODES["serial"])
    assert runner.final_frames.explore == 0
    assert runner.final_frames.total == sum(len(made) for made in Recording(tmp_path).made.values())
