"""Features that hold what the agent can control, learned by guessing its actions.

Henaff et al. (2022), section 3.1: an encoder phi and an inverse model p are trained together to tell, from the
features of two states that follow each other, which action lies between them:

    loss = - mean over t of log p(a_t | phi(s_t), phi(s_t+1))

What no action changes (the sky, a flickering lamp) does not help to guess, so it is left out of the features and earns
no bonus. The bonus itself trains neither of the two.

Deviations: the encoder is a network like the policy's own, so any observation works that the policy can see; an action
that is a vector is guessed too, with the squared error as loss; features may get a LayerNorm, as in the E3B code for
Sample Factory.
"""

import math
from typing import Any, NamedTuple

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

HIDDEN_SIZE = 256  # of the inverse model, as in the E3B code


class Guess(NamedTuple):
    """How well the inverse model did on a batch."""

    loss: Tensor  # scalar, with gradient
    accuracy: float | None  # share of classes guessed right, the mean over the parts of a tuple; None without classes


class Part(NamedTuple):
    """One part of an action: a class out of `size`, or a vector of `size` numbers."""

    size: int  # of the guess
    is_class: bool

    @property
    def width(self) -> int:
        """How many numbers of a batch's actions it takes."""
        return 1 if self.is_class else self.size


def action_parts(action_space: Any) -> list[Part]:
    """Of a Discrete or Box space, or a Tuple of these."""
    spaces: Any = action_space.spaces if isinstance(action_space, gym.spaces.Tuple) else [action_space]
    return [
        Part(int(space.n), True) if isinstance(space, gym.spaces.Discrete) else Part(math.prod(space.shape), False)
        for space in spaces
    ]


class FeatureEncoder(nn.Module):
    """Normalised observations, a dictionary of [B, ...] -> features [B, d]."""

    def __init__(self, encoder: Any, *, layer_norm: bool) -> None:
        super().__init__()
        self.encoder = encoder
        self.size: int = encoder.get_out_size()
        self.norm = nn.LayerNorm(self.size) if layer_norm else nn.Identity()

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        features: Tensor = self.norm(self.encoder(obs).flatten(1))
        return features


def orthogonal(layer: nn.Linear, gain: float) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


class InverseModel(nn.Module):
    """Features of two states [B, d] each -> a guess [B, size] for each part of the action; logits for a class."""

    def __init__(self, feature_size: int, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes
        self.layers = nn.Sequential(
            orthogonal(nn.Linear(2 * feature_size, HIDDEN_SIZE), gain=math.sqrt(2.0)),
            nn.ReLU(),
            orthogonal(nn.Linear(HIDDEN_SIZE, sum(sizes)), gain=1.0),
        )

    def forward(self, before: Tensor, after: Tensor) -> tuple[Tensor, ...]:
        guesses: Tensor = self.layers(torch.cat([before, after], dim=-1))
        return guesses.split(self.sizes, dim=-1)


class InverseDynamics(nn.Module):
    """Encoder and inverse model, on whole rollouts."""

    def __init__(self, encoder: nn.Module, action_space: gym.Space, *, layer_norm: bool) -> None:
        super().__init__()
        self.parts = action_parts(action_space)
        self.encoder = FeatureEncoder(encoder, layer_norm=layer_norm)
        self.inverse_model = InverseModel(self.encoder.size, [part.size for part in self.parts])

    def features(self, obs: dict[str, Tensor]) -> Tensor:
        """Features [N, T + 1, d] of observations [N, T + 1, ...]."""
        shape = next(iter(obs.values())).shape[:2]
        encoded: Tensor = self.encoder({key: value.flatten(0, 1) for key, value in obs.items()})
        return encoded.unflatten(0, shape)

    def guess(self, features: Tensor, actions: Tensor, dones: Tensor) -> Guess | None:
        """Guess actions [N, T] or [N, T, numbers] from features [N, T + 1, d].

        Where the phase ends with step t (`dones` [N, T]), what stands at t + 1 comes from another phase: such pairs
        are taken out before anything is computed from them. None if no pair is left.
        """
        follows = ~dones.bool()  # position T of a rollout is the successor of its last step
        if not follows.any():
            return None
        guesses = self.inverse_model(features[:, :-1][follows], features[:, 1:][follows])
        columns = actions[follows].reshape(len(guesses[0]), -1).split([part.width for part in self.parts], dim=-1)
        losses, hits = [], []
        for part, guess, target in zip(self.parts, guesses, columns, strict=True):
            if part.is_class:
                losses.append(cross_entropy(guess, target[:, 0].long()))
                hits.append((guess.argmax(-1) == target[:, 0].long()).float().mean())
            else:
                losses.append(mse_loss(guess, target.to(guess.dtype)))
        return Guess(torch.stack(losses).sum(), torch.stack(hits).mean().item() if hits else None)
