"""Who acts in the explore phase: the interface.

There are two kinds. An `ActorExplorer` chooses actions by itself, inside the rollout worker, and learns nothing. A
`LearnedExplorer` is a policy of its own (policy 1 of the run), trained by APPO on the explore phases alone; it only
says what is rewarded there. docs/explorers.md builds one of each.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym

from sf_explore_go.core.errors import UsageError

if TYPE_CHECKING:
    from sf_explore_go.explorers.intrinsic import IntrinsicReward, Setting  # which needs torch


class Explorer:
    """What all explorers share: their flags, their checks and their charts."""

    learned: ClassVar[bool] = False
    uses_states: ClassVar[bool] = False
    identity: ClassVar[Sequence[str]] = ()  # own flags that cannot change from one part of a run to the next
    charts: ClassVar[Mapping[str, Sequence[str]]] = {}  # for TensorBoard: title -> tags

    @classmethod
    def add_arguments(cls, group: argparse._ArgumentGroup) -> None:
        """Add the explorer's own flags; `train --help` shows them, and the run's config.json keeps their values."""

    @classmethod
    def check_cfg(cls, cfg: Any) -> None:
        """Raise a UsageError if one of the explorer's own flags has a bad value."""

    @classmethod
    def check(cls, action_space: gym.Space, cfg: Any) -> None:
        """Raise a UsageError if the explorer cannot act in this space."""


class ActorExplorer(Explorer):
    """Chooses actions by itself; one instance per environment, in the rollout worker."""

    looks: ClassVar[bool] = True  # at observations; if not, an environment that can saves the work of making them

    def __init__(self, action_space: gym.Space, seed: int, cfg: Any) -> None:
        self.action_space = action_space
        self.cfg = cfg

    def begin_phase(self, obs: dict[str, Any]) -> None:
        """A new explore phase starts with this observation (the environment's, as a dictionary of arrays)."""

    def act(self, obs: dict[str, Any]) -> Any:
        """The action for this observation, as `action_space` defines it."""
        raise NotImplementedError


class LearnedExplorer(Explorer):
    """A policy with the agent's architecture, rewarded by `make_reward()` and by nothing else."""

    learned: ClassVar[bool] = True
    uses_states: ClassVar[bool] = False  # whether batches shall hold the keys of states, which not every world has
    checkpoint_key: ClassVar[str] = "explorer"  # of the reward's state in a checkpoint

    @classmethod
    def make_reward(cls, setting: "Setting") -> "IntrinsicReward":
        """What is rewarded. Called once, in the learner's process, with torch's generator seeded for it."""
        raise NotImplementedError

    @classmethod
    def check_checkpoint(cls, state: dict[str, Any]) -> None:
        """Raise a UsageError if this explorer cannot go on from such a checkpoint; called before a resume."""
        if cls.checkpoint_key not in state:
            raise UsageError(
                f"--explorer={cls.__name__}: the explorer's checkpoint was written by another explorer; resume with the"
                " one that started the run, or choose another --experiment"
            )
