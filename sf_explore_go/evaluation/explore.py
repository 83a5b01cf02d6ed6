"""Who acts before the agent: the explorer that a run has trained, one that acts by itself, an oracle, or nobody."""

import argparse
import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.errors import UsageError
from sf_explore_go.evaluation.player import Player
from sf_explore_go.evaluation.q_player import QPlayer
from sf_explore_go.explorers.base import ActorExplorer
from sf_explore_go.explorers.registry import NONE, resolve_explorer
from sf_explore_go.offpolicy.arguments import is_dqn
from sf_explore_go.phases.schedule import AGENT, EXPLORER
from sf_explore_go.runs.checkpoints import CheckpointError, read_checkpoint
from sf_explore_go.runs.names import checkpoints_in, policy_folder
from sf_explore_go.worlds.base import Oracle
from sf_explore_go.worlds.registry import world_of

TRAINED = "trained"  # the explorer that the run has trained
ORACLE = "oracle"  # the one that knows the world's map

Obs = dict[str, Any]
Info = dict[str, Any]


class Explores(Protocol):
    """Chooses the actions of phases in several environments at once; `seat` says in which.

    What a phase does follows from its seed and from what it sees, and not from the other phases.
    """

    def begin(self, seat: int, obs: Obs, info: Info, seed: int) -> None: ...

    def act(self, seats: Sequence[int], obs: Sequence[Obs], infos: Sequence[Info]) -> list[Any]: ...


class ByItself:
    """An explorer that needs no policy; a new one for each phase, with an action space of its own to draw from."""

    def __init__(self, explorer_class: type[ActorExplorer], action_space: Any, cfg: Any) -> None:
        self._make = lambda seed: explorer_class(copy.deepcopy(action_space), seed, cfg)
        self._explorers: dict[int, ActorExplorer] = {}

    def begin(self, seat: int, obs: Obs, info: Info, seed: int) -> None:
        self._explorers[seat] = self._make(seed)
        self._explorers[seat].begin_phase(obs)

    def act(self, seats: Sequence[int], obs: Sequence[Obs], infos: Sequence[Info]) -> list[Any]:
        return [self._explorers[seat].act(one) for seat, one in zip(seats, obs, strict=True)]


class Knowing:
    """The oracle of a world."""

    def __init__(self, make: Callable[[], Oracle]) -> None:
        self._make = make
        self._oracles: dict[int, Oracle] = {}

    def begin(self, seat: int, obs: Obs, info: Info, seed: int) -> None:
        self._oracles[seat] = self._make()
        self._oracles[seat].begin(info, seed)

    def act(self, seats: Sequence[int], obs: Sequence[Obs], infos: Sequence[Info]) -> list[Any]:
        return [self._oracles[seat].act(info) for seat, info in zip(seats, infos, strict=True)]


class Trained:
    """The explorer that a run has trained, policy 1."""

    def __init__(self, player: Player | QPlayer) -> None:
        self._player = player
        self._rngs: dict[int, np.random.Generator] = {}
        self._rnn_states: dict[int, torch.Tensor] = {}

    def begin(self, seat: int, obs: Obs, info: Info, seed: int) -> None:
        self._rngs[seat] = np.random.default_rng(seed)
        self._rnn_states[seat] = torch.zeros(self._player.rnn_size)

    def act(self, seats: Sequence[int], obs: Sequence[Obs], infos: Sequence[Info]) -> list[Any]:
        draws = np.stack([self._rngs[seat].random(self._player.draws) for seat in seats])
        states = torch.stack([self._rnn_states[seat] for seat in seats])
        actions, new_states = self._player.act(list(obs), states, draws)
        self._rnn_states.update(zip(seats, new_states, strict=True))
        return actions


class Nobody:
    """The baseline: no explore phase."""

    def begin(self, seat: int, obs: Obs, info: Info, seed: int) -> None: ...

    def act(self, seats: Sequence[int], obs: Sequence[Obs], infos: Sequence[Info]) -> list[Any]:
        raise AssertionError("a phase without steps")


def explorer_checkpoints(folder: Path) -> list[Path]:
    """Of a run whose explorer is a policy, oldest first."""
    return checkpoints_in(policy_folder(folder, EXPLORER))


def explorer_player(path: Path, cfg: AttrDict, env: Any) -> Player | QPlayer:
    state = read_checkpoint(path, "cpu")
    return QPlayer(cfg, env, state["u"]) if is_dqn(cfg) else Player(cfg, env, state, greedy=False)


def check_explorer(name: str, cfg: AttrDict, flag: str) -> None:
    """Refuse one that cannot act here; `flag` is where the user names it. `trained` is a matter of the run."""
    if name == ORACLE and world_of(cfg.env).make_oracle(cfg) is None:
        raise UsageError(f"{flag}={name}: the world of --env={cfg.env} has none; it must be another, such as random")
    if name not in (NONE, ORACLE, TRAINED):
        class_by_itself(name, flag).check_cfg(with_own_flags(cfg, name, flag))


def class_by_itself(name: str, flag: str) -> type[ActorExplorer]:
    explorer_class = resolve_explorer(name, flag)
    if not issubclass(explorer_class, ActorExplorer):
        raise UsageError(
            f"{flag}={name}: it is a policy; it must be trained (the run's own) or one that acts without a policy"
        )
    return explorer_class


def with_own_flags(cfg: AttrDict, name: str, flag: str) -> AttrDict:
    """The configuration with the explorer's own flags, which a run that was trained with another may lack."""
    parser = argparse.ArgumentParser()
    resolve_explorer(name, flag).add_arguments(parser.add_argument_group())
    return AttrDict(vars(parser.parse_args([])) | cfg)


def make_explorer(name: str, folder: Path | None, cfg: AttrDict, env: Any, flag: str) -> Explores:
    """`trained`, `none`, `oracle`, or an explorer that acts by itself; `flag` is where the user names it."""
    check_explorer(name, cfg, flag)
    if name == NONE:
        return Nobody()
    if name == ORACLE:
        return Knowing(lambda: world_of(cfg.env).make_oracle(cfg))  # type: ignore[arg-type, return-value]
    if name == TRAINED:
        return make_trained(folder, cfg, env, flag)
    explorer_class = class_by_itself(name, flag)
    cfg = with_own_flags(cfg, name, flag)
    explorer_class.check(env.action_space, cfg)
    return ByItself(explorer_class, env.action_space, cfg)


def make_trained(folder: Path | None, cfg: AttrDict, env: Any, flag: str) -> Trained:
    kept = explorer_checkpoints if not is_dqn(cfg) else lambda run: checkpoints_in(policy_folder(run, AGENT))
    if folder is None or not (found := kept(folder)):
        raise UsageError(
            f"{flag}=trained: {folder or 'without --experiment there'} has no trained explorer; it must be another,"
            " such as random"
        )
    try:
        return Trained(explorer_player(found[-1], cfg, env))
    except RuntimeError as error:
        raise CheckpointError(f"checkpoint {found[-1]} does not fit the network of {folder}") from error
