"""Explore-Go for any library: a Gymnasium wrapper whose `reset` plays the explore phase.

Section 4 of the paper, as in this project's own trainings: k, the explorer and what happens to episodes that end while
exploring come from the same code. There, steps of both phases pass through the environment; here the agent's library
sees those of the go phase only. docs/any_library.md shows it with Stable-Baselines3 and with a loop of one's own.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers.env_checker import PassiveEnvChecker
from gymnasium.wrappers.order_enforcing import OrderEnforcing
from gymnasium.wrappers.record_episode_statistics import RecordEpisodeStatistics
from gymnasium.wrappers.time_limit import TimeLimit

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import env_seed
from sf_explore_go.explorers.base import ActorExplorer
from sf_explore_go.explorers.standalone import explorer_maker
from sf_explore_go.phases.schedule import Phase, PhaseSchedule

BLIND = (OrderEnforcing, PassiveEnvChecker, RecordEpisodeStatistics, TimeLimit)  # keep nothing of observations


class ExploreGo(gym.Wrapper, RecordConstructorArgs):
    """Begins every episode where k ~ Uniform{0..K} steps of an explorer lead.

    | argument | what it is |
    |---|---|
    | `env` | one environment; in a vector of environments each has a wrapper of its own |
    | `max_explore_steps` | K, in steps of `env`; with 0 the environment stays as it is |
    | `explorer` | `random`, `sticky`, `module:Class` or `file.py:Class`; an `ActorExplorer`, as a class or made already; or a function from observations to actions |
    | `seed` | for everything random: the environment's first reset, k, the explorer; None: other numbers every time |
    | `env_index` | which environment of a training with this seed it equals, in k, explorer and first reset |
    | `options` | flags of the explorer, e.g. `{"sticky_longest": [16]}`; the others have their defaults |

    | what | how |
    |---|---|
    | `reset` | plays the explore phase, whose rewards nobody gets; `info["explore_steps"]` is its k |
    | an episode that ends while exploring | is followed by another one with another k, until an episode has a go phase |
    | `reset(seed=...)` | seeds the environment with this number, and draws k and explorer anew from it |
    | `reset(options=...)` | passed on, also to the episodes that follow one that ended while exploring |
    | time limits | one inside the wrapper covers both phases; one outside, the go phase |
    | `total_explore_steps`, `total_go_steps`, `total_env_steps` | steps of `env` since it was wrapped |

    An explorer that was made already, or is a function, cannot be seeded from here.
    """  # noqa: E501 - rows of a table cannot be broken

    def __init__(
        self,
        env: gym.Env,
        max_explore_steps: int,
        explorer: str | type[ActorExplorer] | ActorExplorer | Callable[[Any], Any] = "random",
        seed: int | None = None,
        *,
        env_index: int = 0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        RecordConstructorArgs.__init__(
            self,
            max_explore_steps=max_explore_steps,
            explorer=explorer,
            seed=seed,
            env_index=env_index,
            options=options,
            _disable_deepcopy=True,
        )
        check_is_single(env)
        gym.Wrapper.__init__(self, env)
        check_number("max_explore_steps", max_explore_steps)
        check_number("env_index", env_index)
        self.max_explore_steps, self.env_index = int(max_explore_steps), int(env_index)
        self.total_explore_steps = 0
        self.total_go_steps = 0
        self._make_explorer = explorer_maker(explorer, env, options)
        self._env_seed: int | None = None  # for the next reset
        if seed is not None:
            check_number("seed", seed)
            self._env_seed = env_seed(seed, "env", self.env_index)
        self._begin_streams(secrets.randbits(32) if seed is None else seed)

    @property
    def total_env_steps(self) -> int:
        """Of both phases: what to count a budget in, and what to draw curves against."""
        return self.total_explore_steps + self.total_go_steps

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self._env_seed = seed
            self._begin_streams(seed)
        obs, info = self.env.reset(seed=self._env_seed, options=options)
        self._env_seed = None
        while (start := self._explore(obs, info)) is None:
            obs, info = self.env.reset(options=options)
        return start

    def step(self, action: Any) -> Any:
        outcome = self.env.step(action)
        self.total_go_steps += 1
        return outcome

    def _begin_streams(self, seed: int) -> None:
        self._schedule = PhaseSchedule(self.max_explore_steps, env_seed(seed, "phase", self.env_index))
        self._explorer = self._make_explorer(env_seed(seed, "explorer", self.env_index))
        self._unseen_env = None if self._explorer.looks else env_that_goes_unseen(self.env)

    def _explore(self, obs: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
        """Play an explore phase from here; where it leads, or None if the episode ended before the go phase."""
        found = info
        if self._schedule.begin_episode() is Phase.EXPLORE:
            self._explorer.begin_phase(self._as_dictionary(obs))
        while self._schedule.phase is Phase.EXPLORE:
            action = self._explorer.act(self._as_dictionary(obs))
            obs, ended, found = self._explore_step(action)
            if ended:
                return None
        return obs, {**info, **found, "explore_steps": self._schedule.explore_steps}

    def _explore_step(self, action: Any) -> tuple[Any, bool, dict[str, Any]]:
        if self._unseen_env is not None:  # the agent looks at what the last step of the phase leads to
            self._unseen_env.unseen = not self._schedule.switches_next
        obs, _, terminated, truncated, info = self.env.step(action)
        if self._unseen_env is not None:
            self._unseen_env.unseen = False
        self._schedule.advance()
        self.total_explore_steps += 1
        return obs, terminated or truncated, info

    def _as_dictionary(self, obs: Any) -> dict[str, Any]:
        """As explorers get observations in a training."""
        return obs if isinstance(self.env.observation_space, gym.spaces.Dict) else {"obs": obs}


def env_that_goes_unseen(env: gym.Env) -> Any:
    """The environment, if it offers to leave observations out (see `World.make_env`) and no wrapper inside needs them;
    else None."""
    while isinstance(env, BLIND):
        env = env.env
    return env if hasattr(env.unwrapped, "unseen") and env is env.unwrapped else None


def check_is_single(env: gym.Env) -> None:
    if isinstance(env, gym.vector.VectorEnv):
        raise UsageError(f"env={env}: it must be one environment; wrap each one before a vector is made of them")
    if not isinstance(env, gym.Env):
        raise UsageError(f"env={env!r}: it must be a Gymnasium environment")


def check_number(name: str, value: Any) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
        raise UsageError(f"{name}={value!r}: it must be a whole number, at least 0")
