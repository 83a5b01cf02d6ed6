"""How old the steps of a batch are that waited through the other policy's phase."""

import pytest
import torch

from sf_explore_go.training.learner import lag_of_waiting_rollouts


def test_only_rollouts_with_an_end_inside_count() -> None:
    versions = torch.tensor([[7, 7, 8], [3, 9, 9], [8, 8, 8]])
    dones = torch.tensor([[False, False, False], [True, False, False], [False, False, True]])
    assert lag_of_waiting_rollouts(versions, dones, 10) == pytest.approx((7 + 1 + 1) / 3)


def test_no_such_rollout() -> None:
    assert lag_of_waiting_rollouts(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool), 10) is None
