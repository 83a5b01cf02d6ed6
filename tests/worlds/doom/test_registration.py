"""The environment by its names: in Gymnasium and in Sample Factory."""

import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from sample_factory.envs.create_env import create_env
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.contexts import draw_context_set
from sf_explore_go.core.errors import UsageError
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.worlds.doom.env import MyWayHomeEnv
from sf_explore_go.worlds.doom.scenario import SCENARIOS, load_scenario
from sf_explore_go.worlds.doom.world import MyWayHome
from sf_explore_go.worlds.registry import known_worlds, place_of

ROOT = Path(__file__).parents[3]


def test_importing_the_package_registers_without_loading_engine_or_torch() -> None:
    program = """
import sys, sf_explore_go, gymnasium
assert {"SfExploreGo/MyWayHome-v0", "SfExploreGo/MyWayHomeSmall-v0"} <= set(gymnasium.registry)
print([name for name in ("vizdoom", "torch", "sample_factory") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_gymnasium_passes_options_on() -> None:
    env = gymnasium.make("SfExploreGo/MyWayHome-v0", split="test", num_contexts=3, context_seed=5, frameskip=2)
    assert isinstance(env.unwrapped, MyWayHomeEnv)
    assert env.unwrapped.contexts == draw_context_set(load_scenario().goals("test"), 3, 5)
    assert env.unwrapped.frameskip == 2


def test_the_small_labyrinth_has_names_of_its_own() -> None:
    small = load_scenario("my_way_home_small")
    env = gymnasium.make("SfExploreGo/MyWayHomeSmall-v0", split="test", num_contexts=0).unwrapped
    assert isinstance(env, MyWayHomeEnv)
    assert env.scenario == small
    env = make_my_way_home_env("my_way_home_small_train", flags(num_contexts=4))
    assert env.scenario == small
    assert env.contexts == draw_context_set((10, 20, 17), 4, 3)
    env = make_my_way_home_env("my_way_home_small_test", flags())
    assert env.contexts.goals == (11, 16, 18, 19, 21, 22)
    assert [world.name for world in known_worlds() if isinstance(world, MyWayHome)] == list(SCENARIOS)


def test_gymnasium_vectorises_it() -> None:
    env = gymnasium.make_vec("SfExploreGo/MyWayHome-v0", num_envs=2, vectorization_mode="sync")
    try:
        pictures, infos = env.reset(seed=[1, 2])
        assert pictures.shape == (2, 72, 128, 3)
        assert len(infos["context"]) == 2
        assert env.step(np.array([3, 3]))[0].shape == (2, 72, 128, 3)
    finally:
        env.close()


def make_my_way_home_env(name: str, cfg: Any) -> MyWayHomeEnv:
    world, split = place_of(name)
    env = world.make_env(split, cfg)
    assert isinstance(env, MyWayHomeEnv)
    return env


def flags(**changed: Any) -> Any:
    """The flags of Sample Factory that matter here, as its parser would give them."""
    defaults = {
        "num_contexts": 10, "context_seed": None, "seed": 3, "res_w": 128, "res_h": 72, "wide_aspect_ratio": False,
        "env_frameskip": 4, "pixel_format": "CHW",
    }  # fmt: skip
    return AttrDict({**defaults, **changed})


def test_sample_factory_makes_it_by_name() -> None:
    register_worlds()
    env = create_env("my_way_home_train", cfg=flags(res_w=64, res_h=36), env_config=None)
    try:
        picture, info = env.reset(seed=0)
        assert picture.shape == env.observation_space.shape == (3, 36, 64)
        assert env.action_space == gymnasium.spaces.Discrete(5)
        assert info["context"] in draw_context_set(load_scenario().goals("train"), 10, 3).contexts
    finally:
        env.close()


def test_flags_reach_the_environment() -> None:
    env = make_my_way_home_env("my_way_home_train", flags(num_contexts=4, context_seed=9, env_frameskip=2))
    assert env.contexts == draw_context_set(load_scenario().goals("train"), 4, 9)
    assert env.frameskip == 2


def test_goals_can_be_balanced() -> None:
    """In training, and where a run is evaluated on its training contexts; a run without the flag has random ones."""
    small = load_scenario("my_way_home_small").goals("train")
    world, _ = place_of("my_way_home_small_train")
    for cfg, way in ((flags(context_goals="balanced"), "balanced"), (flags(context_goals="random"), "random"),
                     (flags(), "random")):  # fmt: skip
        expected = draw_context_set(small, 10, 3, way)
        assert make_my_way_home_env("my_way_home_small_train", cfg).contexts == expected
        played = world.evaluation_contexts(cfg, "train", 30, 0)
        assert played is not None
        assert Counter(played) == dict.fromkeys(expected.contexts, 3)
        assert make_my_way_home_env("my_way_home_small_test", cfg).contexts.contexts == ()
    assert draw_context_set(small, 10, 3, "balanced") != draw_context_set(small, 10, 3)


def test_gymnasium_balances_goals_too() -> None:
    env = gymnasium.make("SfExploreGo/MyWayHome-v0", num_contexts=6, context_goals="balanced").unwrapped
    assert isinstance(env, MyWayHomeEnv)
    assert env.contexts == draw_context_set(load_scenario().goals("train"), 6, 0, "balanced")
    with pytest.raises(UsageError, match=r"^context_goals='even': it must be random or balanced$"):
        MyWayHomeEnv(context_goals="even")


def test_context_seed_zero_is_not_the_runs_seed() -> None:
    env = make_my_way_home_env("my_way_home_train", flags(context_seed=0, seed=3))
    assert env.contexts == draw_context_set(load_scenario().goals("train"), 10, 0)


def test_the_test_environment_plays_the_whole_test_distribution() -> None:
    env = make_my_way_home_env("my_way_home_test", flags())
    assert env.contexts.contexts == ()
    assert env.contexts.goals == load_scenario().goals("test")


def test_flags_that_are_missing_have_defaults() -> None:
    env = make_my_way_home_env("my_way_home_train", SimpleNamespace())
    assert env.observation_space.shape == (3, 72, 128)
    assert env.contexts == draw_context_set(load_scenario().goals("train"), 10, 0)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^--env=my_way_out: it must be my_way_home_train, my_way_home_test, my"):
        make_my_way_home_env("my_way_out", flags())
