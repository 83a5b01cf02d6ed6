"""Worlds as Sample Factory knows them: environments by name, and the encoders of their observations."""

from typing import Any

import gymnasium as gym
import numpy as np
from sample_factory.algo.utils.context import global_env_registry, global_model_factory
from sample_factory.envs.env_utils import register_env
from sample_factory.model.encoder import Encoder, default_make_encoder_func
from torch import Tensor

from sf_explore_go.core.plugins import is_foreign
from sf_explore_go.worlds.registry import known_places, place_of, sibling, world_of


def register_worlds(env_name: str | None = None) -> None:
    """Tell Sample Factory of the worlds of this package, and of the one from outside that a run uses."""
    names = list(known_places())
    if env_name is not None and is_foreign(env_name):
        names += [sibling(env_name, split) for split in world_of(env_name).splits]
    known = global_env_registry()
    for name in names:
        if known.get(name) is not make_env:  # else Sample Factory warns
            register_env(name, make_env)
    global_model_factory().register_encoder_factory(make_encoder)


def prepare_world(env_name: str) -> None:
    """Build what the environment needs, so that trouble with it is one sentence and not a failure in some worker."""
    world, split = place_of(env_name)
    world.prepare(split)


def make_env(env_name: str, cfg: Any, env_config: Any, render_mode: str | None = None) -> gym.Env:
    """What Sample Factory calls to make an environment."""
    world, split = place_of(env_name)
    env = world.make_env(split, cfg, render_mode)
    return ForSampleFactory(OneHot(env) if needs_one_hot(env.observation_space) else env)


class ForSampleFactory(gym.Wrapper):
    """Says how many agents there are, and reports `info["success"]` at an episode's end as a statistic."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.num_agents = int(getattr(env.unwrapped, "num_agents", 1))
        self.is_multiagent = bool(getattr(env.unwrapped, "is_multiagent", self.num_agents > 1))

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        if (terminated or truncated) and "success" in info:
            info.setdefault("episode_extra_stats", {}).setdefault("success", float(info["success"]))
        return obs, reward, terminated, truncated, info


def needs_one_hot(space: gym.Space) -> bool:
    parts = space.spaces.values() if isinstance(space, gym.spaces.Dict) else (space,)
    return any(isinstance(part, gym.spaces.Discrete) for part in parts)


class OneHot(gym.ObservationWrapper):
    """Observations that are numbers of a Discrete space become vectors, alone or inside a dictionary."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.observation_space = one_hot_space(env.observation_space)

    def observation(self, observation: Any) -> Any:
        space: Any = self.env.observation_space
        if isinstance(space, gym.spaces.Dict):
            return {key: one_hot(observation[key], part) for key, part in space.spaces.items()}
        return one_hot(observation, space)


def one_hot_space(space: gym.Space) -> gym.Space:
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({key: one_hot_space(part) for key, part in space.spaces.items()})
    if isinstance(space, gym.spaces.Discrete):
        return gym.spaces.Box(0.0, 1.0, (int(space.n),), np.float32)
    return space


def one_hot(value: Any, space: gym.Space) -> Any:
    if not isinstance(space, gym.spaces.Discrete):
        return value
    vector = np.zeros(int(space.n), np.float32)
    vector[int(value) - int(space.start)] = 1.0
    return vector


class WorldEncoder(Encoder):
    """The network that a world brings for its observations."""

    def __init__(self, cfg: Any, network: Any) -> None:
        super().__init__(cfg)
        self.layers = network

    def forward(self, obs_dict: dict[str, Tensor]) -> Tensor:
        features: Tensor = self.layers(obs_dict)
        return features

    def get_out_size(self) -> int:
        return int(self.layers.out_size)


def make_encoder(cfg: Any, obs_space: Any) -> Encoder:
    """The encoder that belongs to the environment; Sample Factory's own where the world has none."""
    is_world = is_foreign(cfg.env) or cfg.env in known_places()  # Sample Factory may know environments of its own
    network = world_of(cfg.env).make_encoder(cfg, obs_space) if is_world else None
    return default_make_encoder_func(cfg, obs_space) if network is None else WorldEncoder(cfg, network)
