"""Explorers without a training run: from a name, a class, an instance or a function, their flags as a dictionary."""

import argparse
import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium as gym

from sf_explore_go.core.arguments import ArgumentParser, flag_words
from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import ActorExplorer, Explorer
from sf_explore_go.explorers.registry import resolve_explorer

MakeExplorer = Callable[[int], ActorExplorer]  # from a seed
MUST_BE = (
    "it must be random, sticky, module:Class, path/to/file.py:Class, an ActorExplorer, or a function from observations"
    " to actions, such as a trained policy"
)


class FunctionExplorer(ActorExplorer):
    """Asks a function, which gets observations as the environment makes them."""

    def __init__(self, function: Callable[[Any], Any], observation_space: gym.Space) -> None:
        self._function = function
        self._takes_all = isinstance(observation_space, gym.spaces.Dict)

    def act(self, obs: dict[str, Any]) -> Any:
        return self._function(obs if self._takes_all else obs["obs"])


def explorer_maker(explorer: Any, env: gym.Env, options: Mapping[str, Any] | None = None) -> MakeExplorer:
    """What makes this explorer for this environment, once it is known that it can; a bad choice is a UsageError."""
    found = resolve_explorer(explorer, "explorer") if isinstance(explorer, str) else explorer
    if isinstance(found, type) and issubclass(found, Explorer):
        return class_maker(found, str(explorer if isinstance(explorer, str) else found.__name__), env, options)
    if options:
        raise UsageError(f"options={dict(options)}: only an explorer that is given by its name or class has any")
    if isinstance(found, ActorExplorer):
        return partial(the_same, found)
    if callable(found) and not isinstance(found, type):
        return partial(the_same, FunctionExplorer(found, env.observation_space))
    raise UsageError(f"explorer={explorer!r}: {MUST_BE}")


def class_maker(explorer: type[Explorer], name: str, env: gym.Env, options: Mapping[str, Any] | None) -> MakeExplorer:
    if not issubclass(explorer, ActorExplorer):
        raise UsageError(f"explorer={name}: it has to be trained, which only `sf-explore-go train` does; {MUST_BE}")
    cfg = explorer_cfg(explorer, options or {})
    explorer.check_cfg(cfg)
    explorer.check(env.action_space, cfg)
    return partial(make, explorer, env.action_space, cfg)


def make(explorer: type[ActorExplorer], action_space: gym.Space, cfg: Any, seed: int) -> ActorExplorer:
    """With a space of its own, as in a training: sampling from it must not move the environment's generator."""
    return explorer(copy.deepcopy(action_space), seed, cfg)


def the_same(explorer: ActorExplorer, seed: int) -> ActorExplorer:
    """It was made by somebody else, so its random numbers are not ours to seed."""
    return explorer


def explorer_cfg(explorer: type[Explorer], options: Mapping[str, Any]) -> argparse.Namespace:
    """The explorer's own flags: the options, and defaults for the rest."""
    parser = ArgumentParser(prog="options", add_help=False)
    explorer.add_arguments(parser.add_argument_group("explorer"))
    cfg: argparse.Namespace = parser.parse_args(flag_words(options, "options"))
    return cfg
