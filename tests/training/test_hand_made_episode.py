"""One episode with a switch in the middle, small enough to work out by hand, through the real actor and learner."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from sample_factory.algo.utils.env_info import extract_env_info
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.algo.utils.model_sharing import ParameterServer
from sample_factory.algo.utils.tensor_dict import clone_tensordict
from sample_factory.utils.attr_dict import AttrDict
from sample_factory.utils.gpu_utils import set_global_cuda_envvars
from sample_factory.utils.timing import Timing

from sf_explore_go.training.buffers import ExploreGoBufferMgr
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.training.learner import ExploreGoLearner
from sf_explore_go.training.vector_env import ExploreGoVectorEnvRunner
from sf_explore_go.worlds.base import World
from tests.training.recording import make_cfg

ENV_NAME = "tests.training.test_hand_made_episode:SixStepsWorld"
LENGTH, SWITCH, ROLLOUT = 6, 2, 4
VALUE = 1.0  # the critic's answer, everywhere


class SixSteps(gym.Env):
    """Episodes of six steps; step t (from 0) is worth t + 1, and more in the explore phase if a test says so."""

    explore_bonus = 0.0

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-10, 10, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.t = 0
        return self._obs(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        reward = self.t + 1 + (self.explore_bonus if self.t < SWITCH else 0.0)
        self.t += 1
        return self._obs(), reward, self.t == LENGTH, False, {}

    def _obs(self) -> np.ndarray:
        return np.array([self.t, 1.0], np.float32)


class SixStepsWorld(World):
    def make_env(self, split: str, cfg: Any, render_mode: str | None = None) -> SixSteps:
        return SixSteps()


class AlwaysTwo:
    """Stands in for the generator of k."""

    def randint(self, low: int, high: int) -> int:
        return SWITCH


@pytest.fixture
def cfg(tmp_path: Path) -> AttrDict:
    flags = (
        "--serial_mode=True", "--explorer=tests.training.recording:PolicyExplorer", "--num_workers=1",
        "--num_envs_per_worker=1", "--worker_num_splits=1", f"--rollout={ROLLOUT}", f"--batch_size={ROLLOUT}",
        "--recurrence=4", "--max_pure_expl_steps=5", "--gamma=0.5", "--gae_lambda=0.5",
    )  # fmt: skip
    cfg = make_cfg(tmp_path, *flags)
    cfg.env = ENV_NAME
    set_global_cuda_envvars(cfg)
    register_worlds(ENV_NAME)
    return cfg


def play_episodes(cfg: AttrDict, explorer_action: int) -> tuple[dict[int, Any], Any]:
    """Drive the real actor by hand until both policies have sent a rollout: policy -> rollout tensors [1, T, ...]."""
    env = make_env_func_non_batched(cfg, AttrDict(worker_index=0, vector_index=0, env_id=0))
    env_info = extract_env_info(env, cfg)
    buffer_mgr = ExploreGoBufferMgr(cfg, env_info)
    runner = ExploreGoVectorEnvRunner(cfg, env_info, 1, 0, 0, buffer_mgr, "cpu", [None, None])
    runner.init(Timing())
    actor = runner.actors[0]
    actor.schedule._rng = AlwaysTwo()  # type: ignore[assignment]
    actor.begin_episode(actor.last_obs, {})
    runner.without_buffer.clear()
    runner._ask_for_buffer(actor)
    sent: dict[int, Any] = {}
    while len(sent) < 2:
        assert runner.update_trajectory_buffers(Timing())
        request = runner.generate_policy_request()
        assert request is not None
        (policy_id,) = request
        action = explorer_action if policy_id == 1 else actor.schedule.step % 3
        answer(actor, action)
        full, _ = runner.advance_rollouts(policy_id, Timing())
        for rollout in full:
            index = rollout["traj_buffer_idx"]
            sent.setdefault(
                rollout["policy_id"], clone_tensordict(buffer_mgr.traj_tensors_torch["cpu"][index : index + 1])
            )
    return sent, env_info


def answer(actor: Any, action: int) -> None:
    """What an inference worker would write: a chosen action, uniform logits, the constant value, some RNN state."""
    row = actor.policy_output_tensors
    for name, value in {"actions": action, "action_logits": 0.0, "log_prob_actions": np.log(1 / 3)}.items():
        start, stop = actor._output_places[name]
        row[start:stop] = value
    for name, value in {"values": VALUE, "policy_version": 0, "new_rnn_states": 0.3}.items():
        start, stop = actor._output_places[name]
        row[start:stop] = value


def make_learner(cfg: AttrDict, env_info: Any, policy_id: int) -> ExploreGoLearner:
    """A real learner whose critic says `VALUE` whatever it sees."""
    versions = torch.zeros(2, dtype=torch.int32)
    server = ParameterServer(policy_id, versions, serial_mode=True)
    learner = ExploreGoLearner(cfg, env_info, versions, policy_id, server, ExploreGoBufferMgr(cfg, env_info).frames)
    learner.init()
    torch.nn.init.zeros_(learner.actor_critic.critic_linear.weight)
    torch.nn.init.constant_(learner.actor_critic.critic_linear.bias, VALUE)
    return learner


def test_advantages_of_both_policies_worked_out_by_hand(cfg: AttrDict) -> None:
    sent, env_info = play_episodes(cfg, explorer_action=0)
    # gamma = lambda = 1/2 and V = 1 everywhere, so delta = r + 1/2 - 1 inside a phase and r - 1 at its end,
    # and A_t = delta_t + A_t+1 / 4.
    by_hand = {
        # agent: rewards 3, 4, 5, 6; deltas 2.5, 3.5, 4.5, 5
        0: [2.5 + (3.5 + (4.5 + 5 / 4) / 4) / 4, 3.5 + (4.5 + 5 / 4) / 4, 4.5 + 5 / 4, 5],
        # explorer: rewards 1, 2 of one phase and 1, 2 of the next; deltas 0.5, 1 in each, nothing flows between them
        1: [0.5 + 1 / 4, 1, 0.5 + 1 / 4, 1],
    }
    for policy_id, expected in by_hand.items():
        batch, size, invalid = make_learner(cfg, env_info, policy_id)._prepare_batch(sent[policy_id])
        assert (size, invalid) == (ROLLOUT, 0)
        np.testing.assert_allclose(batch["advantages"].numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(batch["returns"].numpy(), np.array(expected) + VALUE, rtol=1e-6)


def test_what_the_explorer_does_never_moves_the_agents_loss(cfg: AttrDict, monkeypatch: Any) -> None:
    def agent_loss() -> list[torch.Tensor]:
        learner = make_learner(cfg, env_info, 0)
        batch, _, invalid = learner._prepare_batch(sent[0])
        _, policy_loss, exploration_loss, _, _, value_loss, _ = learner._calculate_losses(AttrDict(batch), invalid)
        return [policy_loss, exploration_loss, value_loss]

    sent, env_info = play_episodes(cfg, explorer_action=0)
    explorer_rewards = sent[1]["rewards"].clone()
    before = agent_loss()
    monkeypatch.setattr(SixSteps, "explore_bonus", 1000.0)
    sent, env_info = play_episodes(cfg, explorer_action=2)
    assert not torch.equal(explorer_rewards, sent[1]["rewards"])
    assert sent[1]["actions"].eq(2).all()
    for one, other in zip(before, agent_loss(), strict=True):
        assert torch.equal(one, other)
