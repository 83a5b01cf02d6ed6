"""A trained agent in Python: load it, ask it for actions, make the environments that it was trained for."""

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.errors import UsageError
from sf_explore_go.evaluation.arena import fitting_player
from sf_explore_go.evaluation.arguments import is_greedy, load_config, splits
from sf_explore_go.evaluation.player import Player
from sf_explore_go.evaluation.q_player import QPlayer
from sf_explore_go.processes.console import NORMAL, VARIABLE, set_up_console
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.folder import CONFIG
from sf_explore_go.runs.names import find_checkpoints
from sf_explore_go.runs.pretrained import pretrained_agents
from sf_explore_go.training.environments import make_env, prepare_world, register_worlds
from sf_explore_go.worlds.base import TRAIN
from sf_explore_go.worlds.registry import sibling, world_of

State = NDArray[np.float32]  # [size]; what the agent remembers of its episode


class Agent:
    """The agent of a run, with the weights of one checkpoint. Nothing is ever written to the run's folder.

    `seed` is for sampled actions: agents with the same seed that are asked the same answer the same. `greedy` (the
    likeliest action) is as the run is evaluated, unless given.
    """

    def __init__(
        self, folder: Path, cfg: AttrDict, checkpoint: Path, *, seed: int = 0, greedy: bool | None = None
    ) -> None:
        self.folder, self.checkpoint = folder, checkpoint
        self.greedy = is_greedy(cfg) if greedy is None else greedy
        self.weights = read_checkpoint(checkpoint, "cpu")  # the whole checkpoint
        self._cfg = cfg
        self._rng = np.random.default_rng(seed)
        register_worlds(cfg.env)
        prepare_world(cfg.env)
        env = make_env_func_non_batched(cfg, AttrDict(worker_index=0, vector_index=0, env_id=0))
        try:
            self.player: Player | QPlayer = fitting_player(checkpoint, self.weights, cfg, env, greedy=self.greedy)
            self.input_space: gym.spaces.Dict = env.observation_space  # as the network sees it, by name
        finally:
            env.close()
        with self.make_env(TRAIN) as plain:
            self.observation_space: gym.Space = plain.observation_space
            self.action_space: gym.Space = plain.action_space

    @property
    def cfg(self) -> AttrDict:
        """The run's configuration as the rest of the package takes it."""
        return self._cfg

    @property
    def config(self) -> dict[str, Any]:
        """The run's configuration, as in its config.json; a copy."""
        return copy.deepcopy(dict(self._cfg))

    @property
    def splits(self) -> tuple[str, ...]:
        """Whose contexts `make_env` can play."""
        return tuple(world_of(self._cfg.env).splits)

    @property
    def frames(self) -> int:
        """Frames of the training up to this checkpoint, over both phases."""
        return sum(self.weights.get("frames", [self.weights["env_steps"]]))

    @property
    def state_size(self) -> int:
        return self.player.rnn_size

    def make_env(self, split: str = "test", render_mode: str | None = None) -> gym.Env:
        """A Gymnasium environment that plays the contexts of a split, with the settings of the training."""
        splits(self._cfg, split, several=False)
        cfg = AttrDict(self._cfg | {"env": sibling(self._cfg.env, split)})
        prepare_world(cfg.env)
        return make_env(cfg.env, cfg, None, render_mode)

    def act(
        self,
        obs: Any,
        state: State | None = None,
        *,
        greedy: bool | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[Any, State]:
        """The action for one observation of the agent's environment, and the state to pass with the next one.

        `state` is None at the start of an episode. `rng` draws sampled actions in place of the agent's own generator.
        """
        actions, states = self.act_batch([obs], None if state is None else state[None], greedy=greedy, rng=rng)
        return actions[0], states[0]

    def act_batch(
        self,
        observations: Sequence[Any],
        states: State | None = None,
        *,
        greedy: bool | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[list[Any], State]:
        """The same for n observations of n environments; states [n, size], rows of zeros where an episode starts."""
        if states is None:
            states = np.zeros((len(observations), self.state_size), np.float32)
        if states.shape != (len(observations), self.state_size):
            raise ValueError(f"states {list(states.shape)}: it must be [{len(observations)}, {self.state_size}]")
        draws = (self._rng if rng is None else rng).random((len(observations), self.player.draws))
        given = [obs if isinstance(obs, Mapping) else {"obs": obs} for obs in observations]
        arrays = [{key: np.asarray(obs[key], self.input_space[key].dtype) for key in self.input_space} for obs in given]
        actions, new = self.player.act(
            arrays,
            torch.as_tensor(states, dtype=torch.float32),
            draws,
            greedy=self.greedy if greedy is None else greedy,
        )
        return actions, new.numpy().copy()

    def __repr__(self) -> str:
        return f"<Agent {self._cfg.env}, {self.frames:,} frames, {self.checkpoint.name}>"


def load_agent(
    name: str | Path,
    checkpoint: str | Path = "latest",
    *,
    env: str | None = None,
    seed: int = 0,
    greedy: bool | None = None,
) -> Agent:
    """An agent by the name of one that comes with the package (`my_way_home_small`), or by the folder of its run.

    `checkpoint`: latest, best or a file. `env`: only for a run in a world of your own, its name, so that its code may
    run. What is wrong with the arguments or the files is a `UsageError`.
    """
    if os.environ.get(VARIABLE) is None:
        set_up_console(NORMAL)  # Sample Factory prints only warnings
    folder = agent_folder(name)
    cfg = load_config(folder, env)
    if checkpoint == "all":
        raise UsageError("--checkpoint=all: it must be latest, best or a file")
    return Agent(folder, cfg, find_checkpoints(folder, str(checkpoint))[0], seed=seed, greedy=greedy)


def agent_folder(name: str | Path) -> Path:
    """A word that names an agent of the package is that agent; a path is always a folder."""
    known = pretrained_agents()
    if isinstance(name, str) and name in known:
        return known[name]
    if not (Path(name) / CONFIG).is_file():
        raise UsageError(f"{name} is neither the folder of a run nor an agent of this package ({', '.join(known)})")
    return Path(name)
