"""How unlike everything seen so far a state is: a bonus over all phases, beside the episodic one.

Henaff, Jiang, Raileanu: A Study of Global and Episodic Bonuses for Exploration in Contextual MDPs (2023), find that the
product of both helps where contexts share their structure, as the contexts of one labyrinth do. The global one here is
elliptical too, from the same features phi of size d:

    g = sqrt(phi' C^-1 phi / d),    C = ridge I + S / n,

S being the sum of phi phi' over the n steps so far. So g is about 1 for what is seen all the time, and more for what is
rare. Features change while they are learned, so old steps count less and less: each batch takes `FORGET` of S and n
away.
"""

import math
from typing import Any

import torch
from torch import Tensor

FORGET = 0.002  # share of what is remembered, per batch


class GlobalBonus:
    """Over all phases of a run."""

    def __init__(self, ridge: float) -> None:
        self.ridge = ridge
        self.total: Tensor | None = None  # S, [d, d]
        self.count = 0.0  # n

    @torch.no_grad()
    def __call__(self, features: Tensor) -> Tensor:
        """The bonuses [N, T] of features [N, T, d], which are remembered afterwards; 1 for the first batch."""
        rows = features.flatten(0, 1).double()
        bonuses = torch.ones(len(rows), dtype=torch.float64, device=rows.device)
        if self.total is not None:
            covariance = self.total / self.count
            covariance.diagonal().add_(self.ridge)
            factor = torch.linalg.cholesky(covariance)
            solved = torch.linalg.solve_triangular(factor, rows.T, upper=False)  # [d, NT]
            bonuses = solved.square().sum(0).sqrt() / math.sqrt(rows.shape[1])
        self._remember(rows)
        return bonuses.float().view(features.shape[:2])

    def _remember(self, rows: Tensor) -> None:
        old = torch.zeros(rows.shape[1], rows.shape[1], dtype=rows.dtype, device=rows.device)
        if self.total is not None:
            old = self.total
        self.total = (1.0 - FORGET) * old + rows.T @ rows
        self.count = (1.0 - FORGET) * self.count + len(rows)

    def state_dict(self) -> dict[str, Any]:
        return {"total": self.total, "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.total, self.count = state["total"], float(state["count"])
