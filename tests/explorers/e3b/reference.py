"""The bonus by its definition, and streams of phases that are cut into rollouts and batches."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sf_explore_go.explorers.e3b.elliptical import PhaseSteps


def direct_bonuses(features: Tensor, ridge: float) -> Tensor:
    """By definition, in float64: C built from scratch for each row of [n, d], then a solve. Returns [n]."""
    rows = features.double()
    bonuses = []
    for t, phi in enumerate(rows):
        covariance = ridge * torch.eye(rows.shape[1], dtype=torch.float64) + rows[:t].T @ rows[:t]
        bonuses.append(phi @ torch.linalg.solve(covariance, phi))
    return torch.stack(bonuses)


@dataclass
class Batch:
    features: Tensor  # [N, T, d]
    steps: PhaseSteps

    def rollouts(self, chosen: list[int]) -> "Batch":
        steps = PhaseSteps(*(getattr(self.steps, name)[chosen] for name in ("env", "phase", "step", "done")))
        return Batch(self.features[chosen], steps)


class Stream:
    """The explore steps of one environment, phase after phase, handed out as rollouts."""

    def __init__(self, env: int, longest: int, kind: str, size: int, rng: np.random.Generator) -> None:
        self.env, self.longest, self.kind, self.size, self.rng = env, longest, kind, size, rng
        self.phase, self.step, self.length = -1, 0, 0
        self.state = np.zeros(size)

    def rollout(self, steps: int) -> tuple[np.ndarray, list[tuple[int, int, int, bool]]]:
        """Features [steps, size], and (environment, phase, step, done) of each."""
        rows, places = [], []
        for _ in range(steps):
            if self.step == self.length:
                self.phase, self.step, self.length = self.phase + 1, 0, int(self.rng.integers(1, self.longest + 1))
            rows.append(self._features())
            places.append((self.env, self.phase, self.step, self.step == self.length - 1))
            self.step += 1
        return np.array(rows, np.float32), places

    def _features(self) -> np.ndarray:
        if self.kind == "random":
            return self.rng.standard_normal(self.size)
        # "walk": states that follow each other are nearly alike; "normed": the same after a LayerNorm
        self.state = self.state + (1.0 if self.step == 0 else 0.1) * self.rng.standard_normal(self.size)
        if self.kind == "walk":
            return self.state
        return (self.state - self.state.mean()) / (self.state.std() + 1e-3)


def make_batches(
    envs: int, longest: int, kind: str, size: int, steps: int, rollouts: int, batches: int, seed: int
) -> list[Batch]:
    """Batches of `rollouts` rollouts, the environments in random order, several rollouts of one in a batch."""
    rng = np.random.default_rng(seed)
    streams = [Stream(env, longest, kind, size, rng) for env in range(envs)]
    result = []
    for _ in range(batches):
        rows, places = zip(*(streams[i].rollout(steps) for i in rng.integers(envs, size=rollouts)), strict=True)
        columns = np.array(places).transpose(2, 0, 1)
        result.append(Batch(torch.from_numpy(np.array(rows)), PhaseSteps(*columns)))
    return result


def expected_bonuses(batches: list[Batch], ridge: float) -> dict[tuple[int, int], Tensor]:
    """(environment, phase) -> bonuses of its steps by definition."""
    rows = by_phase(batches, [batch.features for batch in batches])
    return {key: direct_bonuses(values, ridge) for key, values in rows.items()}


def by_phase(batches: list[Batch], values: list[Tensor]) -> dict[tuple[int, int], Tensor]:
    """Values [N, T, ...] of each batch, sorted by (environment, phase), in order of arrival."""
    result: dict[tuple[int, int], list[Tensor]] = {}
    for batch, batch_values in zip(batches, values, strict=True):
        keys = zip(batch.steps.env.flat, batch.steps.phase.flat, strict=True)
        for key, value in zip(keys, batch_values.flatten(0, 1), strict=True):
            result.setdefault((int(key[0]), int(key[1])), []).append(value)
    return {key: torch.stack(parts) for key, parts in result.items()}
