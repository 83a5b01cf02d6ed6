"""Who acts in the explore phase: the interface, and the registry by name.

There are two kinds. An `ActorExplorer` chooses actions inside the rollout worker, needs no inference and leaves
nothing to learn from. A `LearnedExplorer` is a policy of its own (policy 1 of the run): the inference worker answers
for it, its steps go to a learner of its own, and that learner decides what is rewarded. Either is chosen with
`--explorer=name` or, for one in your own file, `--explorer=module:Class`.
"""

import importlib
import sys
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym

from sf_explore_go.core.errors import UsageError

EXPLORERS: dict[str, str] = {
    "random": "sf_explore_go.explorers.random:RandomExplorer",
    "e3b": "sf_explore_go.explorers.e3b:E3BExplorer",
}


class Explorer:
    """What all explorers share."""

    learned: ClassVar[bool] = False

    @classmethod
    def check(cls, action_space: gym.Space) -> None:
        """Raise a UsageError if the explorer cannot act in this space."""

    @classmethod
    def check_cfg(cls, cfg: Any) -> None:
        """Raise a UsageError if one of the explorer's own flags has a bad value."""


class ActorExplorer(Explorer):
    """Chooses actions by itself; one instance per environment, living in the rollout worker."""

    def __init__(self, action_space: gym.Space, seed: int, cfg: Any) -> None:
        self.action_space = action_space
        self.cfg = cfg

    def begin_phase(self, obs: dict[str, Any]) -> None:
        """A new explore phase starts with this observation (the environment's, as a dictionary of arrays)."""

    def act(self, obs: dict[str, Any]) -> Any:
        """The action for this observation, as `action_space` defines it."""
        raise NotImplementedError


class LearnedExplorer(Explorer):
    """A policy of its own, with the agent's architecture, trained on the explore phases by `learner_class()`."""

    learned: ClassVar[bool] = True

    @classmethod
    def learner_class(cls) -> type:
        """A subclass of `sf_explore_go.training.learner.ExploreGoLearner`."""
        raise NotImplementedError

    @classmethod
    def check_checkpoint(cls, state: dict[str, Any]) -> None:
        """Raise a UsageError if this explorer cannot go on from such a checkpoint; called before a resume."""


def resolve_explorer(name: str) -> type[Explorer]:
    """The explorer class behind `--explorer`: a registered name, or `module:Class` from the user's own files."""
    target = EXPLORERS.get(name, name)
    allowed = f"allowed are {', '.join(EXPLORERS)} and module:Class"
    module_name, _, class_name = target.partition(":")
    if not module_name or not class_name:
        raise UsageError(f"--explorer={name}: {allowed}")
    if str(Path.cwd()) not in sys.path:  # a console script does not look in the user's folder by itself
        sys.path.append(str(Path.cwd()))
    try:
        explorer = getattr(importlib.import_module(module_name), class_name)
    except ModuleNotFoundError as error:
        raise UsageError(f"--explorer={name}: module {error.name!r} was not found; {allowed}") from error
    except AttributeError as error:
        raise UsageError(f"--explorer={name}: {module_name} has no {class_name!r}; {allowed}") from error
    if not (isinstance(explorer, type) and issubclass(explorer, ActorExplorer | LearnedExplorer)):
        raise UsageError(
            f"--explorer={name}: {class_name} is neither an ActorExplorer nor a LearnedExplorer; {allowed}"
        )
    return explorer
