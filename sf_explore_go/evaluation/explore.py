"""Who acts before the agent when a run is played: its trained explorer, one that acts by itself, or nobody."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.errors import UsageError
from sf_explore_go.evaluation.player import Player
from sf_explore_go.explorers.base import ActorExplorer
from sf_explore_go.explorers.registry import NONE, resolve_explorer
from sf_explore_go.phases.schedule import EXPLORER
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.names import checkpoints_in, policy_folder

TRAINED = "trained"  # the explorer that the run has trained


class Explores(Protocol):
    """Chooses the actions of one phase."""

    def begin(self, obs: dict[str, Any], seed: int) -> None: ...

    def act(self, obs: dict[str, Any]) -> Any: ...


class ByItself:
    """An explorer that needs no policy."""

    def __init__(self, explorer_class: type[ActorExplorer], action_space: Any, cfg: Any) -> None:
        self._make = lambda seed: explorer_class(action_space, seed, cfg)

    def begin(self, obs: dict[str, Any], seed: int) -> None:
        self._explorer = self._make(seed)
        self._explorer.begin_phase(obs)

    def act(self, obs: dict[str, Any]) -> Any:
        return self._explorer.act(obs)


class Trained:
    """The explorer that a run has trained, policy 1."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def begin(self, obs: dict[str, Any], seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._rnn_state = torch.zeros((1, self._player.rnn_size))

    def act(self, obs: dict[str, Any]) -> Any:
        actions, self._rnn_state = self._player.act([obs], self._rnn_state, self._rng.random((1, self._player.draws)))
        return actions[0]


class Nobody:
    """The baseline: no explore phase."""

    def begin(self, obs: dict[str, Any], seed: int) -> None: ...

    def act(self, obs: dict[str, Any]) -> Any:
        raise AssertionError("a phase without steps")


def explorer_checkpoints(folder: Path) -> list[Path]:
    """Of a run whose explorer is a policy, oldest first."""
    return checkpoints_in(policy_folder(folder, EXPLORER))


def make_explorer(name: str, folder: Path, cfg: AttrDict, env: Any, flag: str) -> Explores:
    """`trained`, `none`, or the name of an explorer that acts by itself; `flag` is where the user names it."""
    if name == NONE:
        return Nobody()
    if name == TRAINED:
        if not (found := explorer_checkpoints(folder)):
            raise UsageError(f"{flag}=trained: {folder} has no trained explorer; it must be another, such as random")
        return Trained(Player(cfg, env, read_checkpoint(found[-1], "cpu"), greedy=False))
    explorer_class = resolve_explorer(name, flag)
    if not issubclass(explorer_class, ActorExplorer):
        raise UsageError(
            f"{flag}={name}: it is a policy; it must be trained (the run's own) or one that acts without a policy"
        )
    return ByItself(explorer_class, env.action_space, cfg)
