"""The parts of DQN by hand: targets, soft updates, betas, coins."""

import numpy as np
import pytest
import torch
from torch import nn

from sf_explore_go.offpolicy.dqn import ActionValues, Chooser, ValueLearner, betas, epsilon_at, soft_update, td_target
from sf_explore_go.worlds.grid.four_rooms import FourRoomsEnv
from tests.offpolicy.small import small_cfg


def test_the_target_by_hand() -> None:
    reward = torch.tensor([0.0, 1.0, 0.25])
    terminal = torch.tensor([False, True, False])
    next_values = torch.tensor([[0.1, 0.7, 0.3], [9.0, 9.0, 9.0], [-1.0, -2.0, -3.0]])
    expected = [0.9 * 0.7, 1.0, 0.25 - 0.9]  # what stands behind a terminal state does not matter
    torch.testing.assert_close(td_target(reward, terminal, next_values, 0.9), torch.tensor(expected))


def test_a_soft_update_moves_by_tau() -> None:
    slow, fast = nn.Linear(2, 1), nn.Linear(2, 1)
    nn.init.constant_(slow.weight, 1.0)
    nn.init.constant_(fast.weight, 5.0)
    soft_update(slow, fast, 0.25)
    assert slow.weight.tolist() == [[2.0, 2.0]]
    assert fast.weight.tolist() == [[5.0, 5.0]]


def test_one_gradient_step_against_plain_torch() -> None:
    """Huber, clipped, Adam; then the soft update. The target network does not learn."""
    cfg = small_cfg("--max_grad_norm=0.01")
    space = FourRoomsEnv("train", 9, 3, 1).observation_space
    torch.manual_seed(0)
    ours = ValueLearner(ActionValues(cfg, space, 3), cfg, 1e-2, 0.1)
    theirs = ActionValues(cfg, space, 3)
    theirs.load_state_dict(ours.network.state_dict())
    seen, next_seen = (torch.randint(0, 10, (8, 3, 9, 9), dtype=torch.uint8) for _ in range(2))
    action, reward, terminal = torch.randint(0, 3, (8,)), torch.rand(8) * 5, torch.arange(8) % 2 == 0
    first = [p.clone() for p in theirs.parameters()]
    with torch.no_grad():
        target = reward + cfg.gamma * theirs(next_seen).max(1)[0] * torch.tensor([0.0, 1.0] * 4)
    optimiser = torch.optim.Adam(theirs.parameters(), 1e-2, eps=cfg.adam_eps)
    error = (theirs(seen)[torch.arange(8), action] - target).abs()
    loss = torch.where(error < 1, 0.5 * error**2, error - 0.5).mean()
    loss.backward()
    norm = torch.cat([p.grad.flatten() for p in theirs.parameters() if p.grad is not None]).norm()
    for parameter in theirs.parameters():
        assert parameter.grad is not None
        parameter.grad.mul_(0.01 / (norm + 1e-6))
    optimiser.step()

    reported = ours.learn(seen, action, reward, next_seen, terminal)
    torch.testing.assert_close(reported[:2], [loss.detach(), norm])
    for mine, others, slow, before in zip(
        ours.network.parameters(), theirs.parameters(), ours.target.parameters(), first, strict=True
    ):
        torch.testing.assert_close(mine, others)
        torch.testing.assert_close(slow.data, 0.9 * before + 0.1 * others.data)


def test_betas_of_tee_are_the_papers() -> None:
    found = betas("tee", 50)
    assert found[0] == pytest.approx(0.5 * 0.9)
    assert found[-1] == pytest.approx(0.5 * 0.9**26)
    assert found[7] == pytest.approx(0.5 * 0.9 ** (1 + 25 * 7 / 49))
    assert (np.diff(found) < 0).all()
    assert betas("tee", 1).tolist() == pytest.approx([0.45])
    assert betas("0.5", 3).tolist() == [0.5, 0.5, 0.5]


def test_epsilon_falls_in_a_straight_line() -> None:
    assert [epsilon_at(frames, 1000, 0.01) for frames in (0, 500, 1000, 5000)] == pytest.approx([1, 0.505, 0.01, 0.01])
    assert epsilon_at(0, 0, 0.1) == 0.1


def test_every_environment_has_a_coin_of_its_own() -> None:
    """With one coin for all, a step would have either no random action or random actions everywhere."""
    count, rounds, epsilon = 50, 2000, 0.3
    chooser = Chooser(np.zeros(count), np.random.default_rng(0))
    q, u = np.tile([0.0, 1.0, 0.0], (count, 1)), np.zeros((count, 3))
    going = np.zeros(count, bool)
    other = np.array([(chooser.choose(q, u, going, epsilon) != 1).sum() for _ in range(rounds)])
    share = epsilon * 2 / 3  # one of three random actions is the best one
    assert other.mean() == pytest.approx(count * share, rel=0.03)
    assert other.var() == pytest.approx(count * share * (1 - share), rel=0.15)  # binomial; one coin: 25 times that


def test_who_explores_takes_the_best_u_and_who_goes_adds_beta_u() -> None:
    chooser = Chooser(np.array([0.0, 0.0, 1.0, 1.0]), np.random.default_rng(0))
    q, u = np.tile([0.5, 0.0, 0.4], (4, 1)), np.tile([0.0, 1.0, 0.2], (4, 1))
    exploring = np.array([False, True, False, True])
    assert chooser.choose(q, u, exploring, 0.0).tolist() == [0, 1, 1, 1]
    assert (chooser.choose(q, u, exploring, 1.0)[exploring] == 1).all()  # the coin is the agent's
