"""The inverse model: what it learns from, and what it must not see."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from sample_factory.algo.utils.context import global_model_factory
from torch import Tensor

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.explorers.e3b.inverse_dynamics import InverseDynamics, InverseModel, action_parts
from sf_explore_go.training.environments import register_worlds

VECTOR = gym.spaces.Dict(obs=gym.spaces.Box(-1, 1, (6,), np.float32))
IMAGE = gym.spaces.Dict(obs=gym.spaces.Box(0, 255, (3, 36, 64), np.uint8))
BOTH = gym.spaces.Dict(obs=IMAGE["obs"], measurements=gym.spaces.Box(-1, 1, (4,), np.float32))
DISCRETE = gym.spaces.Discrete(5)
VECTOR_ACTION = gym.spaces.Box(-1, 1, (2,), np.float32)
MIXED = gym.spaces.Tuple((gym.spaces.Discrete(3), VECTOR_ACTION))
TUPLE = gym.spaces.Tuple((gym.spaces.Discrete(3), gym.spaces.Discrete(2), gym.spaces.Discrete(4)))


@pytest.fixture
def cfg() -> Any:
    register_worlds()
    flags = ["--env=my_way_home_train", "--preset=smoke", "--experiment=x", "--seed=1", "--device=cpu"]
    return parse_train_args([*flags, "--encoder_mlp_layers", "16", "--encoder_conv_mlp_layers", "16"])


def make_obs(space: gym.spaces.Dict, rollouts: int, steps: int) -> dict[str, Tensor]:
    return {key: torch.randn(rollouts, steps, *part.shape) for key, part in space.items() if part.shape is not None}


def make_actions(space: Any, rollouts: int, steps: int) -> Tensor:
    """As a batch holds them: float32 [N, T] or [N, T, parts]."""
    columns = [
        torch.randint(part.size, (rollouts, steps, 1)) if part.is_class else torch.randn(rollouts, steps, part.size)
        for part in action_parts(space)
    ]
    return torch.cat([column.float() for column in columns], dim=-1)


def make_dynamics(cfg: Any, obs: gym.spaces.Dict, actions: gym.Space) -> InverseDynamics:
    encoder = global_model_factory().make_model_encoder_func(cfg, obs)
    return InverseDynamics(encoder, actions, layer_norm=cfg.e3b_layer_norm)


@pytest.mark.parametrize("actions", [DISCRETE, TUPLE, VECTOR_ACTION, MIXED], ids=["discrete", "tuple", "box", "mixed"])
@pytest.mark.parametrize("obs", [VECTOR, IMAGE, BOTH], ids=["vector", "image", "both"])
@pytest.mark.parametrize("layer_norm", [True, False])
def test_any_observation_and_action(cfg: Any, obs: gym.spaces.Dict, actions: Any, layer_norm: bool) -> None:
    cfg.e3b_layer_norm = layer_norm
    dynamics = make_dynamics(cfg, obs, actions)
    features = dynamics.features(make_obs(obs, 3, 6))
    assert features.shape == (3, 6, dynamics.encoder.size)
    if layer_norm:  # each row has mean 0 and standard deviation 1, so its squared length is d
        torch.testing.assert_close(
            features.square().sum(-1), torch.full((3, 6), float(dynamics.encoder.size)), rtol=0.01, atol=0
        )
    guess = dynamics.guess(features, make_actions(actions, 3, 5), torch.zeros(3, 5, dtype=torch.bool))
    assert guess is not None
    guess.loss.backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in dynamics.parameters())


def test_loss_and_accuracy_by_hand(cfg: Any) -> None:
    """A model whose logits are known: the loss is the sum over the action's parts of the mean over steps."""
    dynamics = make_dynamics(cfg, VECTOR, gym.spaces.Tuple((gym.spaces.Discrete(2), gym.spaces.Discrete(2))))
    last: Any = dynamics.inverse_model.layers[2]
    torch.nn.init.zeros_(last.weight)
    last.bias.data = torch.tensor([1.0, 0.0, 0.0, 2.0])
    actions = torch.tensor([[[0.0, 1.0], [1.0, 1.0]]])  # parts guessed right: both, only the second
    guess = dynamics.guess(dynamics.features(make_obs(VECTOR, 1, 3)), actions, torch.zeros(1, 2, dtype=torch.bool))
    assert guess is not None
    first = np.mean([np.log(1 + np.exp(-1)), np.log(1 + np.exp(1))])
    assert guess.loss.item() == pytest.approx(first + np.log(1 + np.exp(-2)), rel=1e-5)
    assert guess.accuracy == pytest.approx(0.75)


def test_orthogonal_start() -> None:
    first: Any = InverseModel(200, [5]).layers[0]
    gram = first.weight @ first.weight.T
    torch.testing.assert_close(gram, 2.0 * torch.eye(256), rtol=0, atol=1e-4)


def loss_and_gradients(dynamics: InverseDynamics, features: Tensor, actions: Tensor, dones: Tensor) -> list[Tensor]:
    features = features.clone().requires_grad_()
    guess = dynamics.guess(features, actions, dones)
    assert guess is not None
    parameters = [features, *dynamics.inverse_model.parameters()]
    return [guess.loss.detach(), torch.tensor(guess.accuracy), *torch.autograd.grad(guess.loss, parameters)]


def test_what_follows_the_end_of_a_phase_is_not_seen(cfg: Any) -> None:
    """Garbage in an action whose successor is another phase's, or in that successor, moves nothing."""
    torch.manual_seed(0)
    dynamics = make_dynamics(cfg, VECTOR, DISCRETE)
    size = dynamics.encoder.size
    features, actions = torch.randn(2, 5, size), make_actions(DISCRETE, 2, 4)
    dones = torch.tensor([[0, 1, 0, 0], [0, 0, 0, 1]], dtype=torch.bool)
    clean = loss_and_gradients(dynamics, features, actions, dones)

    actions = actions.clone()
    actions[0, 1], actions[1, 3] = 4.0 - actions[0, 1], 4.0 - actions[1, 3]
    features[1, 4] = torch.nan  # position T of a rollout that ends with its phase
    garbage = loss_and_gradients(dynamics, features, actions, dones)
    for expected, value in zip(clean, garbage, strict=True):
        assert torch.equal(expected, value)
    assert not garbage[2][1, 4].any()  # and no gradient goes there

    features[0, 2] += 1.0  # the first state of the next phase does count, for the step from it
    moved = loss_and_gradients(dynamics, features, actions, dones)
    assert moved[0] != clean[0]


def test_pairs_across_a_phase_end_are_left_out_by_number(cfg: Any) -> None:
    """The loss equals that of the two phases as rollouts of their own."""
    torch.manual_seed(0)
    dynamics = make_dynamics(cfg, VECTOR, DISCRETE)
    features, actions = torch.randn(1, 7, dynamics.encoder.size), make_actions(DISCRETE, 1, 6)
    dones = torch.tensor([[0, 0, 1, 0, 0, 0]], dtype=torch.bool)
    joined = dynamics.guess(features, actions, dones)
    parts = [
        dynamics.guess(features[:, :3], actions[:, :2], torch.zeros(1, 2)),
        dynamics.guess(features[:, 3:], actions[:, 3:], torch.zeros(1, 3)),
    ]
    assert joined is not None
    weighted = [2 / 5 * parts[0].loss, 3 / 5 * parts[1].loss]  # type: ignore[union-attr]
    torch.testing.assert_close(joined.loss, weighted[0] + weighted[1])


def test_no_pair_at_all(cfg: Any) -> None:
    dynamics = make_dynamics(cfg, VECTOR, DISCRETE)
    features = torch.randn(2, 2, dynamics.encoder.size)
    assert dynamics.guess(features, torch.zeros(2, 1, 1), torch.ones(2, 1, dtype=torch.bool)) is None


def test_it_learns_to_guess(cfg: Any) -> None:
    """A world in which the action moves the state: after training the action can be read off."""
    torch.manual_seed(0)
    dynamics = make_dynamics(cfg, VECTOR, DISCRETE)
    optimizer = torch.optim.Adam(dynamics.parameters(), lr=3e-3)
    moves = torch.randn(5, 6)
    accuracies = []
    for _ in range(150):
        actions = make_actions(DISCRETE, 16, 8)
        walk = torch.cat([torch.randn(16, 1, 6), moves[actions[..., 0].long()]], dim=1).cumsum(1)
        guess = dynamics.guess(dynamics.features({"obs": walk}), actions, torch.zeros(16, 8))
        assert guess is not None
        assert guess.accuracy is not None
        optimizer.zero_grad()
        guess.loss.backward()
        optimizer.step()
        accuracies.append(guess.accuracy)
    assert np.mean(accuracies[:3]) < 0.4
    assert np.mean(accuracies[-10:]) > 0.9


def test_a_vector_is_guessed_with_the_squared_error(cfg: Any) -> None:
    """A model whose guess is known, (1, -1) for every pair: the loss is the mean square of what is missing."""
    dynamics = make_dynamics(cfg, VECTOR, VECTOR_ACTION)
    last: Any = dynamics.inverse_model.layers[2]
    with torch.no_grad():
        last.weight.zero_()
        last.bias.copy_(torch.tensor([1.0, -1.0]))
    actions = torch.tensor([[[1.0, 0.0], [3.0, -1.0], [9.0, 9.0]]])
    dones = torch.tensor([[False, False, True]])  # nothing follows the third
    guess = dynamics.guess(dynamics.features(make_obs(VECTOR, 1, 4)), actions, dones)
    assert guess is not None
    assert guess.loss.item() == pytest.approx((0 + 1 + 4 + 0) / 4)
    assert guess.accuracy is None
