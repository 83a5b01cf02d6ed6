"""DQN with two values of every action (appendix on Four Rooms): Q of the reward, U of the count bonus.

    Q(s, a) <- r + gamma max_b Q'(s', b)        U(s, a) <- bonus + gamma max_b U'(s', b)

Q' and U' are copies that follow slowly: after every gradient step they move by tau towards the network. Nothing is
shared between Q and U. The loss is Huber's, gradients are clipped to a norm, the optimiser is Adam.

Who acts: the explorer takes argmax U; the agent argmax Q + beta U, or, with probability epsilon, any action, where each
environment throws a coin of its own; an agent that is evaluated takes argmax Q. With TEE (Jiang et al. 2023)
environment i of n has beta_i = 0.5 * 0.9^(1 + 25 i / (n - 1)).

What differs from the authors' code, as far as their notes tell:

* Both targets are cut at terminal states; theirs cuts Q's only. A time-out is no terminal state for either.
* A coin for each environment; Stable-Baselines3 throws one for all environments of a step.
* The agent does not add the current bonus of each action to U.
* The bonus is kept in the buffer as it was when the step was made.
"""

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sf_explore_go.worlds.grid.model import FlatNetwork
from sf_explore_go.worlds.registry import world_of

TEE = "tee"
TEE_HIGHEST, TEE_BASE, TEE_SPREAD = 0.5, 0.9, 25.0  # phi, lambda and alpha of the paper


class ActionValues(nn.Module):
    """Observations [B, ...] as the environment gives them -> [B, actions]."""

    def __init__(self, cfg: Any, obs_space: gym.Space, actions: int) -> None:
        super().__init__()
        encoder: Any = world_of(cfg.env).make_encoder(cfg, gym.spaces.Dict({"obs": obs_space}))
        if encoder is None:
            encoder = FlatNetwork(cfg.encoder_mlp_layers, obs_space, cfg.nonlinearity)
        self.encoder, self.values = encoder, nn.Sequential(nn.ReLU(), nn.Linear(encoder.out_size, actions))
        self._mean, self._scale = cfg.obs_subtract_mean, cfg.obs_scale

    def forward(self, observations: Tensor) -> Tensor:
        seen = (observations.float() - self._mean) / self._scale
        values: Tensor = self.values(self.encoder({"obs": seen}))
        return values


def td_target(reward: Tensor, terminal: Tensor, next_values: Tensor, gamma: float) -> Tensor:
    """[B], [B], [B, actions] -> [B]: r + gamma max_b Q'(s', b), and r alone where s' is terminal."""
    return reward + gamma * next_values.amax(dim=1) * (~terminal)


@torch.no_grad()
def soft_update(target: nn.Module, network: nn.Module, tau: float) -> None:
    """target <- (1 - tau) target + tau network."""
    for slow, fast in zip(target.parameters(), network.parameters(), strict=True):
        slow.lerp_(fast, tau)


class ValueLearner:
    """One of the two networks, with its target and its optimiser."""

    def __init__(self, network: ActionValues, cfg: Any, learning_rate: float, tau: float) -> None:
        self.network, self.target = network, copy.deepcopy(network).requires_grad_(False)
        self._gamma, self._tau, self._max_norm = cfg.gamma, tau, cfg.max_grad_norm
        betas = (cfg.adam_beta1, cfg.adam_beta2)
        self.optimiser = torch.optim.Adam(network.parameters(), learning_rate, betas, eps=cfg.adam_eps)

    def learn(self, seen: Tensor, action: Tensor, reward: Tensor, next_seen: Tensor, terminal: Tensor) -> list[Tensor]:
        """One gradient step and one soft update; loss, norm of the gradient and mean value, for curves."""
        with torch.no_grad():
            target = td_target(reward, terminal, self.target(next_seen), self._gamma)
        values = self.network(seen).gather(1, action[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(values, target)
        self.optimiser.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self._max_norm)
        self.optimiser.step()
        soft_update(self.target, self.network, self._tau)
        return [loss.detach(), norm, values.detach().mean()]

    def state_dict(self) -> dict[str, Any]:
        return {"target": self.target.state_dict(), "optimiser": self.optimiser.state_dict()}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """But for the network itself. The rate is the one of this part of the run."""
        rate = self.optimiser.param_groups[0]["lr"]
        self.target.load_state_dict(saved["target"])
        self.optimiser.load_state_dict(saved["optimiser"])
        for group in self.optimiser.param_groups:
            group["lr"] = rate


def betas(choice: str, num_envs: int) -> NDArray[np.float64]:
    """[environments]: how much of U the agent adds to Q; `tee`, or one number for all."""
    if choice != TEE:
        return np.full(num_envs, float(choice))
    share = np.arange(num_envs) / max(1, num_envs - 1)
    return TEE_HIGHEST * TEE_BASE ** (1 + TEE_SPREAD * share)


def epsilon_at(frames: int, ramp: float, last: float) -> float:
    """In a straight line from 1 to `last` over the first `ramp` frames."""
    return max(last, 1.0 - (1.0 - last) * frames / ramp) if ramp > 0 else last


class Chooser:
    """Who does what: one action for every environment."""

    def __init__(self, beta: NDArray[np.float64], rng: np.random.Generator) -> None:
        self._beta, self._rng = beta[:, None], rng

    def choose(
        self, q: NDArray[Any], u: NDArray[Any], exploring: NDArray[np.bool_], epsilon: float
    ) -> NDArray[np.int64]:
        """Q and U [n, actions], exploring [n] -> actions [n]."""
        count, actions = q.shape
        coins, anything = self._rng.random(count), self._rng.integers(actions, size=count)
        going = np.where(coins < epsilon, anything, (q + self._beta * u).argmax(axis=1))
        return np.where(exploring, u.argmax(axis=1), going)
