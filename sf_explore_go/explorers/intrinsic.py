"""What a learned explorer is rewarded for: the interface, on plain tensors.

A batch is N rollouts of T steps, all of them steps of explore phases. A rollout holds T + 1 observations: action t was
taken in observation t and led to observation t + 1, unless the phase ended with it (`dones`), when observation t + 1
belongs to another phase. Rollouts of one environment come in the order in which they were made, but a phase may go on
in a later batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym
import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Setting:
    """What an intrinsic reward is built from."""

    obs_space: gym.spaces.Dict
    action_space: gym.Space
    options: Any  # every flag of the run, the explorer's own among them
    device: torch.device
    make_encoder: Callable[[], nn.Module]  # a new network like the policy's encoder: {key: [B, ...]} -> [B, size]


@dataclass(frozen=True)
class ExploreBatch:
    """Steps of explore phases, on the policy's device."""

    obs: dict[str, Tensor]  # [N, T + 1, ...], normalised as the policy sees them
    raw_obs: dict[str, Tensor]  # [N, T + 1, ...], as the environment gave them
    actions: Tensor  # [N, T], or [N, T, parts] where an action has several numbers
    dones: Tensor  # [N, T], bool: the phase ends with this step
    env: Tensor  # [N, T], which environment of the run
    phase: Tensor  # [N, T], which explore phase of that environment
    step: Tensor  # [N, T], which step of that phase, from 0
    learning_rate: float  # the policy's, at present
    state: Tensor | None = None  # [N, T], the world's key of the state in which the action was taken
    next_state: Tensor | None = None  # [N, T], of the state that it led to, in this phase even where the phase ends


class IntrinsicReward(Protocol):
    """Rewards every step of a batch; may learn from it too. For each batch `rewards` is called first, then `learn`."""

    def rewards(self, batch: ExploreBatch) -> Tensor:
        """The rewards [N, T] of the actions."""
        ...

    def learn(self, batch: ExploreBatch) -> None:
        """Learn from the batch, if there is anything to learn."""
        ...

    def metrics(self) -> dict[str, float]:
        """Name -> number, shown in TensorBoard as `explore/<name>`."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What a resume needs: tensors, numbers, strings, lists and dictionaries of them."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...
