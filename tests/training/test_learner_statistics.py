"""The table "Agent" of docs/metrics.md: what its rows say against one batch that is computed by hand.

Without an RNN and with a learning rate of 0, so that the network can be asked again after the update.
"""

import re
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

from sf_explore_go.training.accounting import FrameCounter
from sf_explore_go.training.buffers import add_phase_tensors
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.training.learner import ExploreGoLearner
from tests.training.recording import ENV_NAME, make_cfg, make_counting_env

ROLLOUTS, STEPS, EPOCHS = 4, 8, 2
GAMMA, LAMBDA, CLIP = 0.99, 0.95, 0.1


def make_learner(folder: Path, *flags: str) -> ExploreGoLearner:
    register_worlds()
    register_env(ENV_NAME, make_counting_env)
    small = ("--serial_mode=True", "--use_rnn=False", "--recurrence=1", "--normalize_returns=True")
    ppo = (f"--num_epochs={EPOCHS}", f"--gamma={GAMMA}", f"--gae_lambda={LAMBDA}", f"--ppo_clip_ratio={CLIP}")
    cfg = make_cfg(folder, *small, *ppo, "--value_bootstrap=False", *flags)
    env = make_env_func_non_batched(cfg, env_config=AttrDict(worker_index=0, vector_index=0, env_id=0))
    env_info = extract_env_info(env, cfg)
    env.close()
    versions = torch.zeros(2, dtype=torch.int32)
    server = ParameterServer(0, versions, True)
    learner = ExploreGoLearner(cfg, env_info, versions, 0, server, FrameCounter(1, share=False))
    learner.init()
    learner._should_save_summaries = lambda: True  # type: ignore[method-assign]
    return learner


def make_batch(learner: ExploreGoLearner) -> Any:
    torch.manual_seed(3)
    cpu = torch.device("cpu")
    batch = alloc_trajectory_tensors(learner.env_info, ROLLOUTS, STEPS, get_rnn_size(learner.cfg), cpu, False)
    add_phase_tensors(batch, learner.cfg, cpu, share=False)
    batch["obs"]["obs"].copy_(torch.randn(ROLLOUTS, STEPS + 1, 3))
    batch["actions"].copy_(torch.randint(3, batch["actions"].shape))
    for key in ("rewards", "values", "action_logits"):
        batch[key].copy_(torch.randn(batch[key].shape))
    for key in ("dones", "time_outs", "policy_id", "rnn_states"):
        batch[key].zero_()
    batch["dones"][:, 4] = True
    batch["log_prob_actions"].fill_(-1.0)
    batch["policy_version"].fill_(learner.train_step)
    return batch


@pytest.fixture(autouse=True)
def _last_minibatch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which Sample Factory then takes its statistics; else of a random one in half of the cases."""
    monkeypatch.setattr(np.random, "rand", lambda: 0.9)


def train(learner: ExploreGoLearner) -> tuple[Any, dict[str, float]]:
    """A batch as it was before the update, and the statistics of the update."""
    batch = make_batch(learner)
    return batch, learner.train(make_batch(learner))[TRAIN_STATS]


def asked_again(learner: ExploreGoLearner, batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Values [N, T + 1] and log-probabilities of all actions [N, T, A]."""
    obs = batch["obs"]["obs"].flatten(0, 1)
    with torch.no_grad():
        result = learner.actor_critic({"obs": obs}, torch.zeros(len(obs), get_rnn_size(learner.cfg)))
    logits = result["action_logits"].view(ROLLOUTS, STEPS + 1, -1)[:, :-1]
    return result["values"].view(ROLLOUTS, STEPS + 1), logits.log_softmax(-1)


def advantages_by_hand(batch: Any, last_values: torch.Tensor) -> np.ndarray:
    """Generalised advantages [N, T]. A fresh normaliser has mean 0 and variance 1, to which it adds 1e-5."""
    values = torch.cat([batch["values"][:, :-1], last_values[:, None]], dim=1).clamp(-5, 5).numpy() * np.sqrt(1 + 1e-5)
    rewards, dones = batch["rewards"].numpy(), batch["dones"].numpy().astype(float)
    advantages, following = np.zeros((ROLLOUTS, STEPS)), np.zeros(ROLLOUTS)
    for t in reversed(range(STEPS)):
        goes_on = 1 - dones[:, t]
        delta = rewards[:, t] + GAMMA * goes_on * values[:, t + 1] - values[:, t]
        following = advantages[:, t] = delta + GAMMA * LAMBDA * goes_on * following
    return advantages


def test_advantages_are_raw(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    batch, stats = train(learner)
    expected = advantages_by_hand(batch, asked_again(learner, batch)[0][:, -1])
    assert expected.std() > 1.2  # normalised ones would have 1
    assert stats["adv_min"] == pytest.approx(expected.min(), rel=1e-4)
    assert stats["adv_max"] == pytest.approx(expected.max(), rel=1e-4)
    assert stats["adv_mean"] == pytest.approx(expected.mean(), rel=1e-4)
    assert stats["adv_std"] == pytest.approx(expected.std(ddof=1), rel=1e-4)


def test_values_are_in_normalised_units(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    learner.actor_critic.returns_normalizer.running_mean.fill_(50.0)
    learner.actor_critic.returns_normalizer.running_var.fill_(400.0)
    batch, stats = train(learner)
    values = asked_again(learner, batch)[0][:, :-1]
    change = (values - batch["values"][:, :-1]).abs()
    assert stats["value"] == pytest.approx(values.mean().item(), rel=1e-4)
    assert abs(stats["value"]) < 5  # and not near 50
    assert stats["value_delta"] == pytest.approx(change.mean().item(), rel=1e-4)
    assert stats["value_delta_max"] == pytest.approx(change.max().item(), rel=1e-4)
    assert stats["returns_running_mean"] == pytest.approx(
        learner.actor_critic.returns_normalizer.running_mean.item(), rel=1e-4
    )


def test_ratios_and_entropy(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    batch, stats = train(learner)
    log_probs = asked_again(learner, batch)[1]
    taken = log_probs.gather(-1, batch["actions"].long().view(ROLLOUTS, STEPS, 1)).squeeze(-1)
    ratios = (taken - batch["log_prob_actions"]).exp()
    assert stats["ratio_mean"] == pytest.approx((1 - ratios).abs().mean().item(), rel=1e-4)
    assert stats["ratio_min"] == pytest.approx(ratios.min().item(), rel=1e-4)
    assert stats["ratio_max"] == pytest.approx(ratios.max().item(), rel=1e-4)
    outside = (ratios < 1 / (1 + CLIP)) | (ratios > 1 + CLIP)
    assert stats["fraction_clipped"] == pytest.approx(outside.float().mean().item())
    entropy = -(log_probs.exp() * log_probs).sum(-1)
    assert stats["entropy"] == pytest.approx(entropy.mean().item(), rel=1e-4)
    acted = batch["action_logits"].log_softmax(-1)
    divergence = (log_probs.exp() * (log_probs - acted)).sum(-1)
    assert stats["kl_divergence"] == pytest.approx(divergence.mean().item(), rel=1e-4)
    assert stats["kl_divergence_max"] == pytest.approx(divergence.max().item(), rel=1e-4)
    assert stats["max_abs_logprob"] == pytest.approx(batch["action_logits"].abs().max().item())


def test_the_gradient_is_measured_after_clipping(tmp_path: Path) -> None:
    whole = train(make_learner(tmp_path, "--max_grad_norm=0"))[1]["grad_norm"]
    clipped = train(make_learner(tmp_path, f"--max_grad_norm={whole / 2}"))[1]["grad_norm"]
    assert clipped == pytest.approx(whole / 2, rel=1e-3)


def test_steps_of_gradient_descent_are_counted_within_a_batch(tmp_path: Path) -> None:
    learner = make_learner(tmp_path)
    assert [train(learner)[1]["num_sgd_steps"] for _ in range(2)] == [EPOCHS, EPOCHS]
    assert learner.train_step == 2 * EPOCHS


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ("adv_min", "before normalisation"),
        ("adv_max", "before normalisation"),
        ("adv_std", "before normalisation"),
        ("grad_norm", "after clipping"),
        ("ratio_mean", "mean distance of the probability ratio from 1;"),
        ("num_sgd_steps", "within a batch"),
        ("value", "normalised"),
        ("value_delta", "normalised"),
    ],
)
def test_the_page_says_so(tag: str, words: str) -> None:
    row = re.search(rf"^\| `train/{tag}` \|.*$", Path("docs/metrics.md").read_text(), re.MULTILINE)
    assert row is not None
    assert words in row[0]
