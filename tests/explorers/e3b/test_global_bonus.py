"""The bonus over all phases, against its definition."""

from pathlib import Path

import numpy as np
import torch

from sf_explore_go.explorers.e3b.global_bonus import FORGET, GlobalBonus

RIDGE, SIZE = 0.5, 6


def batches() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(3, 4, SIZE) * torch.arange(1.0, SIZE + 1) for _ in range(4)]


def by_definition(earlier: list[torch.Tensor], features: torch.Tensor) -> np.ndarray:
    weights = [(1 - FORGET) ** (len(earlier) - 1 - i) for i in range(len(earlier))]
    rows = [batch.flatten(0, 1).double().numpy() for batch in earlier]
    total = sum(w * r.T @ r for w, r in zip(weights, rows, strict=True))
    count = sum(w * len(r) for w, r in zip(weights, rows, strict=True))
    inverse = np.linalg.inv(RIDGE * np.eye(SIZE) + total / count)
    phi = features.double().numpy()
    return np.sqrt(np.einsum("nti,ij,ntj->nt", phi, inverse, phi) / SIZE)


def test_equals_its_definition() -> None:
    bonus, given = GlobalBonus(RIDGE), batches()
    assert torch.equal(bonus(given[0]), torch.ones(3, 4))
    for i in range(1, 4):
        np.testing.assert_allclose(bonus(given[i]), by_definition(given[:i], given[i]), rtol=1e-5)


def test_what_is_rare_earns_more() -> None:
    bonus = GlobalBonus(RIDGE)
    usual = torch.zeros(2, 5, SIZE)
    usual[..., 0] = 1.0
    for _ in range(10):
        bonus(usual)
    rare = torch.zeros(1, 1, SIZE)
    rare[..., 1] = 1.0
    assert bonus(rare).item() > 1.5 * bonus(usual)[0, 0].item()


def test_a_checkpoint_brings_it_back(tmp_path: Path) -> None:
    before, after, given = GlobalBonus(RIDGE), GlobalBonus(RIDGE), batches()
    before(given[0])
    torch.save(before.state_dict(), tmp_path / "state.pth")
    after.load_state_dict(torch.load(tmp_path / "state.pth", weights_only=True))
    assert torch.equal(before(given[1]), after(given[1]))
