"""The learner by itself: one batch, its metrics, and checkpoints."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sample_factory.algo.utils.env_info import extract_env_info
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.algo.utils.misc import TRAIN_STATS
from sample_factory.algo.utils.model_sharing import ParameterServer
from sample_factory.algo.utils.shared_buffers import alloc_trajectory_tensors
from sample_factory.envs.env_utils import register_env
from sample_factory.model.model_utils import get_rnn_size
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.errors import UsageError
from sf_explore_go.training.accounting import FrameCounter
from sf_explore_go.training.buffers import add_phase_tensors
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.training.explorer_learner import ExplorerLearner
from tests.explorers.e3b.reference import direct_bonuses
from tests.training.recording import ENV_NAME, make_cfg, make_counting_env

ROLLOUTS, STEPS = 4, 8
METRICS = {
    "explore/e3b_inverse_loss", "explore/e3b_inverse_accuracy", "explore/e3b_bonus_raw", "explore/e3b_bonus_std",
    "explore/e3b_bonus_normalised", "explore/e3b_phase_length", "explore/e3b_late_rollouts",
}  # fmt: skip


def make_learner(folder: Path, *flags: str) -> Any:
    register_worlds()
    register_env(ENV_NAME, make_counting_env)
    cfg = make_cfg(
        folder,
        "--explorer=e3b",
        "--serial_mode=True",
        "--recurrence=8",
        "--normalize_input=True",
        *flags,
        learning_rate=1e-3,
    )
    env = make_env_func_non_batched(cfg, env_config=AttrDict(worker_index=0, vector_index=0, env_id=0))
    env_info = extract_env_info(env, cfg)
    env.close()
    versions = torch.zeros(2, dtype=torch.int32)
    server, frames = ParameterServer(1, versions, True), FrameCounter(1, share=False)
    learner = ExplorerLearner(cfg, env_info, versions, 1, server, frames)
    learner.init()
    return learner


def make_batch(learner: Any, seed: int, first_step: int = 0) -> Any:
    """Each rollout is of its own environment: 5 steps to the end of one phase, 3 of the next."""
    torch.manual_seed(seed)
    size = get_rnn_size(learner.cfg)
    batch = alloc_trajectory_tensors(learner.env_info, ROLLOUTS, STEPS, size, torch.device("cpu"), False)
    add_phase_tensors(batch, learner.cfg, torch.device("cpu"), share=False)
    batch["obs"]["obs"].copy_(torch.randn(ROLLOUTS, STEPS + 1, 3))
    batch["actions"].copy_(torch.randint(3, batch["actions"].shape))
    batch["rewards"].fill_(torch.nan)  # what the environment gives must not be used
    batch["dones"].fill_(False)
    batch["dones"][:, 4] = True
    batch["policy_id"].fill_(1)
    batch["policy_version"].fill_(learner.train_step)
    batch["log_prob_actions"].fill_(-1.0)
    batch["env_index"].copy_(torch.arange(ROLLOUTS).unsqueeze(1).expand(-1, STEPS))
    batch["phase_index"].copy_(torch.tensor([0] * 5 + [1] * 3).expand(ROLLOUTS, -1))
    batch["phase_step"].copy_(torch.tensor([*range(first_step, first_step + 5), 0, 1, 2]).expand(ROLLOUTS, -1))
    return batch


@pytest.mark.parametrize("scaled", [False, True])
def test_reward_is_the_bonus(tmp_path: Path, scaled: bool) -> None:
    raw = ("--normalize_intrinsic_rewards=False", "--intrinsic_reward_coeff=2.0", "--e3b_first_bonus=True")
    features_flags = (f"--e3b_scale_features={scaled}", f"--e3b_layer_norm={not scaled}")
    learner = make_learner(tmp_path, *raw, *features_flags)
    fresh = make_learner(tmp_path, *features_flags)  # the same networks, which are not trained
    batch = make_batch(learner, 1)
    learner._prepare_batch(batch)
    learner.actor_critic.eval()  # statistics of observations as they were when the batch was used
    with torch.no_grad():
        normalized = learner.actor_critic.normalize_obs({"obs": batch["obs"]["obs"].flatten(0, 1)})
        features = fresh.reward.dynamics.features({"obs": normalized["obs"].view(ROLLOUTS, STEPS + 1, 3)})
    if scaled:
        features = features / features[:, :-1].norm(dim=-1).square().mean().sqrt()
    for rollout in range(ROLLOUTS):
        for part in (slice(0, 5), slice(5, 8)):
            expected = 2.0 * direct_bonuses(features[rollout, part], 0.1)
            torch.testing.assert_close(batch["rewards"][rollout, part].double(), expected, rtol=1e-3, atol=0.0)


def test_the_first_bonus_of_a_phase_is_neither_rewarded_nor_counted(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    bonuses = torch.tensor([[100.0, 1.0, 2.0], [3.0, 100.0, 4.0]])
    first = torch.tensor([[True, False, False], [False, True, False]])
    rewards = learner.reward._rewards(bonuses, first)
    std = np.std([1.0, 2.0, 3.0, 4.0])
    expected = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0]]) / std
    np.testing.assert_allclose(rewards.numpy(), expected, rtol=1e-6)
    assert learner.reward.bonus_std.count == 4


def what_the_optimiser_sees(folder: Path, *flags: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Normalised advantages and value targets of the last of many batches, with the same values and weights for all."""
    learner = make_learner(folder, "--normalize_returns=True", "--e3b_layer_norm=False", *flags)
    for seed in range(50):
        batch = make_batch(learner, seed)
        batch["values"].zero_()  # a critic that knows the mean return and nothing else
        batch["dones"][:, -1] = True  # and is asked for nothing else
        prepared, _, _ = learner._prepare_batch(batch)
    advantages = prepared["advantages"]
    return (advantages - advantages.mean()) / advantages.std().clamp_min(1e-7), prepared["returns"]


def test_normalising_the_bonus_only_replaces_the_coefficient(tmp_path: Path) -> None:
    """With normalised returns and advantages a constant scale of the reward cancels, but for a tiny one."""
    raw = "--normalize_intrinsic_rewards=False"
    one, many, tiny = (
        what_the_optimiser_sees(tmp_path, raw, f"--intrinsic_reward_coeff={number}") for number in (1.0, 1000.0, 3e-6)
    )
    for ours, theirs in zip(one, many, strict=True):
        assert ours.std() > 0.5
        torch.testing.assert_close(ours, theirs, rtol=0.0, atol=1e-3)
    # a running standard deviation is not quite constant
    for ours, theirs in zip(one, what_the_optimiser_sees(tmp_path), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0.1, atol=0.1)
    # the authors' coefficient: the critic's targets drown in the 1e-5 that the normaliser adds to the variance
    torch.testing.assert_close(tiny[0], one[0], rtol=0.0, atol=1e-3)
    assert tiny[1].std() < 0.05


def test_observation_statistics_count_a_batch_once(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    counts = [value for name, value in learner.actor_critic.named_buffers() if name.endswith("obs.count")]
    start = counts[0].item()
    learner.train(make_batch(learner, 1))
    assert counts[0].item() == start + ROLLOUTS * (STEPS + 1)


def test_metrics_travel_with_the_training_statistics(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    learner._should_save_summaries = lambda: True
    stats = learner.train(make_batch(learner, 1))[TRAIN_STATS]
    assert stats.keys() >= METRICS
    assert all(isinstance(stats[name], float) for name in METRICS)
    assert stats["explore/e3b_phase_length"] == 5.0
    assert stats["explore/e3b_late_rollouts"] == 0.0
    assert 0.0 <= stats["explore/e3b_inverse_accuracy"] <= 1.0
    assert stats["explore/e3b_bonus_normalised"] == pytest.approx(
        stats["explore/e3b_bonus_raw"] / stats["explore/e3b_bonus_std"], rel=1e-4
    )


def test_late_rollouts_are_counted(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    learner._prepare_batch(make_batch(learner, 1, first_step=7))
    assert learner.reward.bonus.late == ROLLOUTS
    assert learner.reward.metrics()["e3b_late_rollouts"] == ROLLOUTS


@pytest.mark.parametrize("rewarded", [False, True])
def test_the_first_bonus_of_a_late_piece_is_treated_as_that_of_a_phase(tmp_path: Path, rewarded: bool) -> None:
    """Nothing came before it either, so it is as large and says as little."""
    learner = make_learner(tmp_path, f"--e3b_first_bonus={rewarded}")
    late = make_batch(learner, 1, first_step=7)
    learner._prepare_batch(late)
    assert (late["rewards"] > 0).tolist() == [[rewarded, *[True] * 4, rewarded, True, True]] * ROLLOUTS
    assert learner.reward.bonus_std.count == ROLLOUTS * (STEPS if rewarded else STEPS - 2)


def test_the_first_step_of_a_rollout_that_goes_on_with_a_phase_is_rewarded(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    learner._prepare_batch(make_batch(learner, 1))
    more = make_batch(learner, 2, first_step=3)  # phase 1 of the batch before had three steps
    more["phase_index"] += 1
    learner._prepare_batch(more)
    assert learner.reward.bonus.late == 0
    assert (more["rewards"] > 0).tolist() == [[True] * 5 + [False, True, True]] * ROLLOUTS


def test_every_phase_of_one_step(tmp_path: Path) -> None:
    """No pair of states to learn from: the batch is used for the policy all the same."""
    learner = make_learner(tmp_path)
    batch = make_batch(learner, 1)
    batch["dones"].fill_(True)
    batch["phase_step"].fill_(0)
    before = [p.clone() for p in learner.reward.dynamics.parameters()]
    assert learner.train(batch) is not None
    assert all(torch.equal(a, b) for a, b in zip(before, learner.reward.dynamics.parameters(), strict=True))


def test_learning_rate_follows_the_policy(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    learner.curr_lr = 0.0
    before = [p.clone() for p in learner.reward.dynamics.parameters()]
    learner._prepare_batch(make_batch(learner, 1))
    assert all(torch.equal(a, b) for a, b in zip(before, learner.reward.dynamics.parameters(), strict=True))


def test_same_seed_same_networks(tmp_path: Path) -> None:
    first, second = make_learner(tmp_path), make_learner(tmp_path)
    pairs = zip(first.reward.dynamics.parameters(), second.reward.dynamics.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


# --- checkpoints ------------------------------------------------------------------------------------------------------


def flat(state: Any, prefix: str = "") -> dict[str, Any]:
    """A nested checkpoint as one dictionary."""
    if isinstance(state, dict):
        items = state.items()
    elif isinstance(state, list | tuple):
        items = dict(enumerate(state)).items()
    else:
        return {prefix: state}
    return {key: value for name, part in items for key, value in flat(part, f"{prefix}/{name}").items()}


def test_a_resume_is_bit_identical(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    for seed in range(3):
        learner.train(make_batch(learner, seed, first_step=seed))
    assert learner.reward.bonus.late > 0
    learner.save()
    other = make_learner(tmp_path)  # finds the checkpoint
    saved, loaded = flat(learner._get_checkpoint_dict()), flat(other._get_checkpoint_dict())
    assert saved.keys() == loaded.keys()
    assert any(key.startswith("/e3b/optimizer/state/0/exp_avg") for key in saved)
    for key, value in saved.items():
        assert torch.equal(value, loaded[key]) if isinstance(value, torch.Tensor) else value == loaded[key], key


def test_both_go_on_alike(tmp_path: Path) -> None:
    """One more batch gives the same weights and rewards with and without a resume in between."""
    learner = make_learner(tmp_path)
    learner.train(make_batch(learner, 0))
    learner.save()
    other = make_learner(tmp_path)
    other.env_steps = learner.env_steps
    batches = [make_batch(learner, 1), make_batch(other, 1)]
    for one, batch in zip((learner, other), batches, strict=True):
        torch.manual_seed(5)
        one.train(batch)
    assert torch.equal(batches[0]["rewards"], batches[1]["rewards"])
    for key, value in flat(learner._get_checkpoint_dict()["e3b"]).items():
        expected = flat(other._get_checkpoint_dict()["e3b"])[key]
        assert torch.equal(value, expected) if isinstance(value, torch.Tensor) else value == expected, key


def test_a_checkpoint_without_e3b_is_refused(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    state = learner._get_checkpoint_dict()
    del state["e3b"]
    with pytest.raises(
        UsageError, match=r"has no encoder, inverse_model, optimizer, bonus_std, squared_length, late_rollouts of E3B"
    ):
        learner._load_state(state)


@pytest.mark.parametrize("part", ["encoder", "inverse_model", "optimizer", "bonus_std", "squared_length"])
def test_a_checkpoint_with_a_part_missing_is_refused(tmp_path: Path, part: str) -> None:
    learner = make_learner(tmp_path)
    before = [p.clone() for p in learner.actor_critic.parameters()]
    state = learner._get_checkpoint_dict()
    del state["e3b"][part]
    with pytest.raises(UsageError, match=f"has no {part} of E3B"):
        learner._load_state(state)
    assert all(torch.equal(a, b) for a, b in zip(before, learner.actor_critic.parameters(), strict=True))
