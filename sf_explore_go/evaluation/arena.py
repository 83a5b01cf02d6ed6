"""The environments of a run, and its agent ready to play in them."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.machine import cores
from sf_explore_go.evaluation.player import Player
from sf_explore_go.evaluation.q_player import QPlayer, make_agent
from sf_explore_go.runs.checkpoints import CheckpointError
from sf_explore_go.training.environments import prepare_world
from sf_explore_go.worlds.registry import sibling, world_of


class Arena:
    """The environments of a run's splits, made when they are first needed."""

    def __init__(self, cfg: AttrDict, num_envs: int) -> None:
        self._cfg, self._num_envs = cfg, num_envs
        self._envs: dict[str, list[Any]] = {}
        self._open = ExitStack()

    def cfg(self, split: str) -> AttrDict:
        return AttrDict(self._cfg | {"env": sibling(self._cfg.env, split)})

    def envs(self, split: str) -> list[Any]:
        if split not in self._envs:
            cfg = self.cfg(split)
            prepare_world(cfg.env)
            self._envs[split] = [self._make(cfg, index) for index in range(self._num_envs)]
        return self._envs[split]

    def _make(self, cfg: AttrDict, index: int) -> Any:
        env = make_env_func_non_batched(cfg, AttrDict(worker_index=0, vector_index=index, env_id=index))
        self._open.callback(env.close)
        return env

    @property
    def threads(self) -> int:
        """Engines compute in processes of their own; a world that is plain Python gains nothing from threads."""
        return min(cores(), self._num_envs) if world_of(self._cfg.env).steps_outside else 1

    def __enter__(self) -> "Arena":
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()


def make_player(path: Path, state: dict[str, Any], arena: Arena, split: str, *, greedy: bool) -> Player | QPlayer:
    return fitting_player(path, state, arena.cfg(split), arena.envs(split)[0], greedy=greedy)


def fitting_player(path: Path, state: dict[str, Any], cfg: AttrDict, env: Any, *, greedy: bool) -> Player | QPlayer:
    """The player of a checkpoint, which must be one of this run's agent."""
    try:
        return make_agent(cfg, env, state, greedy=greedy)
    except RuntimeError as error:
        raise CheckpointError(
            f"checkpoint {path} does not fit this run's network; it may be another run's or an explorer's"
        ) from error
