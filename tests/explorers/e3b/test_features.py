"""Where E3B's features come from, and how often its inverse dynamics learns."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sf_explore_go.explorers.e3b.global_bonus import GlobalBonus
from sf_explore_go.explorers.e3b.observation import observation_features
from tests.explorers.e3b.reference import direct_bonuses
from tests.explorers.e3b.test_learner import ROLLOUTS, make_batch, make_learner

RAW = ("--normalize_intrinsic_rewards=False", "--e3b_first_bonus=True")


def test_pictures_are_averaged_and_vectors_taken_as_they_are() -> None:
    pictures, vectors = torch.rand(2, 3, 3, 18, 32), torch.rand(2, 3, 5)
    features = observation_features({"obs": pictures, "more": vectors})
    assert features.shape == (2, 3, 5 + 3 * 9 * 16)
    assert torch.equal(features[..., :5], vectors)
    blocks = pictures.numpy().reshape(2, 3, 3, 9, 2, 16, 2).mean(axis=(4, 6))
    np.testing.assert_allclose(features[..., 5:].numpy(), blocks.reshape(2, 3, -1), rtol=1e-5)


def test_small_pictures_stay_as_they_are() -> None:
    pictures = torch.rand(1, 2, 3, 5, 5)
    assert torch.allclose(observation_features({"obs": pictures}), pictures.flatten(2))


def encoder_of(learner: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in learner.reward.dynamics.parameters()])


@pytest.mark.parametrize(("source", "learns"), [("inverse", True), ("random", False), ("observation", False)])
def test_only_inverse_dynamics_learns(source: str, learns: bool, tmp_path: Path) -> None:
    learner = make_learner(tmp_path, f"--e3b_features={source}")
    before = encoder_of(learner)
    learner.train(make_batch(learner, 1))
    assert torch.equal(before, encoder_of(learner)) != learns
    assert ("e3b_inverse_loss" in learner.reward.metrics()) == learns


def test_the_bonus_of_observations(tmp_path: Path) -> None:
    learner = make_learner(tmp_path, *RAW, "--e3b_features=observation", "--e3b_layer_norm=False")
    batch = make_batch(learner, 1)
    learner._prepare_batch(batch)
    learner.actor_critic.eval()
    with torch.no_grad():
        normalized = learner.actor_critic.normalize_obs({"obs": batch["obs"]["obs"].flatten(0, 1)})["obs"]
    features = normalized.view(ROLLOUTS, -1, 3)
    for rollout in range(ROLLOUTS):
        expected = direct_bonuses(features[rollout, :5], 0.1)
        torch.testing.assert_close(batch["rewards"][rollout, :5].double(), expected, rtol=1e-3, atol=0.0)


def test_the_global_bonus_is_a_factor_and_part_of_the_state(tmp_path: Path) -> None:
    flags = (*RAW, "--e3b_features=observation", "--e3b_layer_norm=False")
    plain, joined = make_learner(tmp_path, *flags), make_learner(tmp_path, *flags, "--e3b_global=True")
    expected = GlobalBonus(0.1)
    for seed in (1, 2):
        batches = [make_batch(learner, seed) for learner in (plain, joined)]
        for learner, batch in zip((plain, joined), batches, strict=True):
            learner._prepare_batch(batch)
        learner.actor_critic.eval()
        with torch.no_grad():
            normalized = learner.actor_critic.normalize_obs({"obs": batches[1]["obs"]["obs"].flatten(0, 1)})["obs"]
        factor = expected(normalized.view(ROLLOUTS, -1, 3)[:, :-1])
        torch.testing.assert_close(batches[1]["rewards"], batches[0]["rewards"] * factor, rtol=1e-3, atol=1e-6)
    again = make_learner(tmp_path, *flags, "--e3b_global=True")
    again.reward.load_state_dict(joined.reward.state_dict())
    assert torch.equal(again.reward.global_bonus.total, joined.reward.global_bonus.total)
    assert "global_bonus" not in plain.reward.state_dict()


def test_more_epochs_learn_more_from_a_batch(tmp_path: Path) -> None:
    losses = {}
    for epochs in (1, 20):
        learner = make_learner(tmp_path, f"--e3b_epochs={epochs}")
        for _ in range(2):
            batch = make_batch(learner, 1)
            learner.train(batch)
        losses[epochs] = learner.reward.metrics()["e3b_inverse_loss"]
        steps = next(iter(learner.reward.optimizer.state.values()))["step"]
        minibatches = -(-ROLLOUTS * 8 // learner.cfg.batch_size)
        assert steps == 2 * (1 + (epochs - 1) * minibatches)
    assert losses[20] < losses[1]
