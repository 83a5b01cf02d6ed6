"""The wrapper under Stable-Baselines3: what its algorithms learn from are the steps of go phases."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import PPO, SAC
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv

from sf_explore_go import ExploreGo
from sf_explore_go.worlds.grid.illustrative import IllustrativeEnv
from tests.phases.test_wrapper import Walk

K = 6


def make_walk() -> ExploreGo:
    return ExploreGo(Walk(10), K)


def numbers(envs: VecEnv, name: str) -> int:
    return sum(envs.get_attr(name))


@pytest.mark.parametrize("kind", [DummyVecEnv, SubprocVecEnv])
def test_episodes_of_a_vector_begin_explored(kind: Any) -> None:
    envs = make_vec_env(make_walk, n_envs=2, seed=3, vec_env_cls=kind)
    try:
        assert isinstance(envs, kind)
        obs = envs.reset()
        assert isinstance(obs, np.ndarray)
        ks = [info["explore_steps"] for info in envs.reset_infos]
        assert obs[:, 0].tolist() == ks
        for _ in range(60):
            obs, _, dones, infos = envs.step(np.zeros(2, int))
            assert isinstance(obs, np.ndarray)
            for index in np.flatnonzero(dones):
                ks.append(envs.reset_infos[index]["explore_steps"])
                assert obs[index].tolist() == ks[-1:]
                assert infos[index]["terminal_observation"].tolist() == [10]
        assert set(ks) <= set(range(K + 1))
        assert len(set(ks)) > 3
        assert numbers(envs, "total_go_steps") == 120
        assert numbers(envs, "total_explore_steps") == sum(ks)
    finally:
        envs.close()


def test_the_seed_of_a_vector_fixes_k() -> None:
    def played(seed: int) -> list[int]:
        envs = make_vec_env(make_walk, n_envs=3, seed=seed)
        envs.reset()
        for _ in range(40):
            envs.step(np.zeros(3, int))
        return list(envs.get_attr("total_explore_steps"))

    assert played(1) == played(1) != played(2)
    assert len(set(played(1))) > 1


def test_its_checker_is_content() -> None:
    check_env(ExploreGo(IllustrativeEnv(), 8), warn=False)


def test_ppo_learns_from_go_phases_only() -> None:
    envs = make_vec_env(make_walk, n_envs=2, seed=0)
    model = PPO("MlpPolicy", envs, n_steps=64, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(128)
    seen = model.rollout_buffer.observations[..., 0].reshape(-1)  # one environment after the other
    begins = model.rollout_buffer.episode_starts.swapaxes(0, 1).reshape(-1).astype(bool)
    assert numbers(envs, "total_go_steps") == 128
    assert numbers(envs, "total_explore_steps") > 10
    assert (np.diff(seen)[~begins[1:]] == 1).all()
    assert len(set(seen[begins].tolist())) > 3


def test_sac_keeps_go_phases_only() -> None:
    env = ExploreGo(gym.make("Pendulum-v1"), 100, seed=0)
    model = SAC("MlpPolicy", env, learning_starts=1000, seed=0, device="cpu")
    model.learn(500)
    assert model.replay_buffer is not None
    assert model.replay_buffer.size() == env.total_go_steps == 500
    assert env.total_explore_steps > 50
