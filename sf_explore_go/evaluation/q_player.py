"""Playing an agent that was trained with DQN: it takes the action of the highest Q, and its value is the highest Q.

The same network, with the weights of U, plays the explore phase.
"""

from typing import Any

import numpy as np
import torch
from sample_factory.utils.attr_dict import AttrDict
from torch import Tensor

from sf_explore_go.core.errors import UsageError
from sf_explore_go.evaluation.player import ROWS, Player, filled_up
from sf_explore_go.offpolicy.arguments import DQN, is_dqn
from sf_explore_go.offpolicy.dqn import ActionValues


class QPlayer:
    """Does for Q what `Player` does for a policy. It has no memory and needs no random numbers."""

    rnn_size, draws = 1, 1  # of both as little as there can be

    def __init__(self, cfg: AttrDict, env: Any, weights: dict[str, Tensor]) -> None:
        self.network = ActionValues(cfg, env.observation_space["obs"], int(env.action_space.n))
        self.network.load_state_dict(weights)
        self.network.eval()

    @torch.no_grad()
    def judge(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What observations [n, ...] are worth, max Q, and the best actions."""
        values, actions = self.network(torch.from_numpy(observations)).max(dim=1)
        return values.double().numpy(), actions.numpy()

    def act(
        self, obs: list[dict], rnn_states: Tensor, draws: np.ndarray, *, greedy: bool | None = None
    ) -> tuple[list[Any], Tensor]:
        """In groups of `ROWS`, so that an episode does not depend on those beside it."""
        if greedy is False:
            raise cannot_sample()
        parts = [obs[begin : begin + ROWS] for begin in range(0, len(obs), ROWS)]
        actions = [self.judge(filled_up(np.stack([one["obs"] for one in part])))[1][: len(part)] for part in parts]
        return np.concatenate(actions).tolist(), rnn_states


def make_agent(cfg: AttrDict, env: Any, state: dict[str, Any], *, greedy: bool) -> Player | QPlayer:
    """The player of a run's agent, whatever it was trained with. Raises RuntimeError if the weights do not fit."""
    if not is_dqn(cfg):
        return Player(cfg, env, state, greedy=greedy)
    if not greedy:
        raise cannot_sample()
    return QPlayer(cfg, env, state["model"])


def cannot_sample() -> UsageError:
    return UsageError(f"--sampled: an agent of --algo={DQN} has no probabilities to sample from; leave the flag out")
