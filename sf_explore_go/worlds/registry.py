"""The environments that `--env` can name: how each is made, how long an episode lasts, which split it tests on."""

from dataclasses import dataclass
from typing import Any

from sample_factory.algo.utils.context import global_model_factory
from sample_factory.envs.env_utils import register_env
from sample_factory.model.encoder import Encoder, default_make_encoder_func

from sf_explore_go.core.errors import UsageError
from sf_explore_go.processes.console import follow_console
from sf_explore_go.worlds.doom.register import register_doom_envs
from sf_explore_go.worlds.doom.scenario import Scenario, ensure_wad, load_scenario
from sf_explore_go.worlds.grid.illustrative import TIME_LIMIT, IllustrativeEnv
from sf_explore_go.worlds.grid.model import FlatEncoder

DOOM_EPISODE_TICS = 2100

follow_console()  # here, since every worker imports this module to get at its environments


@dataclass(frozen=True)
class World:
    """One family of environments: a training and a test split."""

    name: str
    kind: str  # "doom" or "grid"
    default_preset: str

    @property
    def splits(self) -> dict[str, str]:
        """split -> environment name"""
        return {split: f"{self.name}_{split}" for split in ("train", "test")}

    @property
    def scenario(self) -> Scenario:
        """The labyrinth of a Doom world, which has the world's name."""
        return load_scenario(self.name)

    def decisions_per_episode(self, cfg: Any) -> int:
        return DOOM_EPISODE_TICS // cfg.env_frameskip if self.kind == "doom" else TIME_LIMIT


WORLDS = (
    World("my_way_home", "doom", "paper"),
    World("my_way_home_small", "doom", "laptop"),
    World("illustrative", "grid", "illustrative"),
)


def world_of(env_name: str | None) -> World:
    for world in WORLDS:
        if env_name in world.splits.values():
            return world
    names = [name for world in WORLDS for name in world.splits.values()]
    raise UsageError(f"--env={env_name}: allowed are {', '.join(names)}")


def make_illustrative_env(env_name: str, cfg: Any, env_config: Any, render_mode: str | None = None) -> IllustrativeEnv:
    return IllustrativeEnv(split=env_name.rsplit("_", 1)[1], render_mode=render_mode)


def prepare_world(env_name: str) -> None:
    """Build what the environment needs, so that trouble with it is one sentence and not a failure in some worker."""
    world = world_of(env_name)
    if world.kind == "doom":
        ensure_wad(world.scenario, env_name.rsplit("_", 1)[1])


def make_encoder(cfg: Any, obs_space: Any) -> Encoder:
    """The encoder that belongs to the environment; Sample Factory's own choice for all others."""
    kinds = {name: world.kind for world in WORLDS for name in world.splits.values()}
    if kinds.get(cfg.env) == "grid":
        return FlatEncoder(cfg, obs_space)
    return default_make_encoder_func(cfg, obs_space)


def register_worlds() -> None:
    """Tell Sample Factory of our environments and encoders; needed in every process that makes them."""
    register_doom_envs()
    for name in world_of("illustrative_train").splits.values():
        register_env(name, make_illustrative_env)
    global_model_factory().register_encoder_factory(make_encoder)
