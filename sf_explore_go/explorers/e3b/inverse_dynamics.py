"""Features that hold what the agent can control, learned by guessing its actions.

Henaff et al. (2022), section 3.1: an encoder phi and an inverse model p are trained together to tell, from the
features of two states that follow each other, which action lies between them:

    loss = - mean over t of log p(a_t | phi(s_t), phi(s_t+1))

What no action changes (the sky, a flickering lamp) does not help to guess, so it is left out of the features and earns
no bonus. The bonus itself trains neither of the two.

Deviations: the encoder is whatever the policy's own encoder is, made by the same factory, so that any observation works
that Sample Factory can encode; features get a LayerNorm, as in the E3B code for Sample Factory.
"""

import math
from typing import Any, NamedTuple

import gymnasium as gym
import torch
from sample_factory.algo.utils.context import global_model_factory
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

HIDDEN_SIZE = 256  # of the inverse model, as in the E3B code


class Guess(NamedTuple):
    """How well the inverse model did on a batch."""

    loss: Tensor  # scalar, with gradient
    accuracy: float  # share of actions guessed right, the mean over the parts of a tuple


def action_sizes(action_space: Any) -> list[int]:
    """Number of actions of each part of a Discrete space or a Tuple of Discrete spaces."""
    parts: Any = action_space.spaces if isinstance(action_space, gym.spaces.Tuple) else [action_space]
    return [int(part.n) for part in parts]


class FeatureEncoder(nn.Module):
    """Normalised observations, a dictionary of [B, ...] -> features [B, d]."""

    def __init__(self, cfg: Any, obs_space: gym.Space) -> None:
        super().__init__()
        self.encoder = global_model_factory().make_model_encoder_func(cfg, obs_space)
        self.size: int = self.encoder.get_out_size()
        self.norm = nn.LayerNorm(self.size) if cfg.e3b_layer_norm else nn.Identity()

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        features: Tensor = self.norm(self.encoder(obs).flatten(1))
        return features


def orthogonal(layer: nn.Linear, gain: float) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class InverseModel(nn.Module):
    """Features of two states [B, d] each -> logits [B, number of actions], one block per part of the action."""

    def __init__(self, feature_size: int, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes
        self.layers = nn.Sequential(
            orthogonal(nn.Linear(2 * feature_size, HIDDEN_SIZE), gain=math.sqrt(2.0)),
            nn.ReLU(),
            orthogonal(nn.Linear(HIDDEN_SIZE, sum(sizes)), gain=1.0),
        )

    def forward(self, before: Tensor, after: Tensor) -> tuple[Tensor, ...]:
        logits: Tensor = self.layers(torch.cat([before, after], dim=-1))
        return logits.split(self.sizes, dim=-1)


class InverseDynamics(nn.Module):
    """Encoder and inverse model, on whole rollouts."""

    def __init__(self, cfg: Any, obs_space: gym.Space, action_space: gym.Space) -> None:
        super().__init__()
        self.encoder = FeatureEncoder(cfg, obs_space)
        self.inverse_model = InverseModel(self.encoder.size, action_sizes(action_space))

    def features(self, obs: dict[str, Tensor]) -> Tensor:
        """Features [N, T + 1, d] of observations [N, T + 1, ...]."""
        shape = next(iter(obs.values())).shape[:2]
        encoded: Tensor = self.encoder({key: value.flatten(0, 1) for key, value in obs.items()})
        return encoded.unflatten(0, shape)

    def guess(self, features: Tensor, actions: Tensor, dones: Tensor) -> Guess | None:
        """Guess actions [N, T] or [N, T, parts] from features [N, T + 1, d].

        Where the phase ends with step t (`dones` [N, T]), what stands at t + 1 comes from another phase: such pairs
        are taken out before anything is computed from them. None if no pair is left.
        """
        follows = ~dones.bool()  # position T of a rollout is the successor of its last step
        if not follows.any():
            return None
        logits = self.inverse_model(features[:, :-1][follows], features[:, 1:][follows])
        targets = actions[follows].long().reshape(len(logits[0]), -1).unbind(-1)
        losses = [cross_entropy(guess, target) for guess, target in zip(logits, targets, strict=True)]
        hits = [(guess.argmax(-1) == target).float().mean() for guess, target in zip(logits, targets, strict=True)]
        return Guess(torch.stack(losses).sum(), torch.stack(hits).mean().item())
