"""Reward pictures that this explore phase has seldom shown: 1 / visits ** power."""

import argparse
from collections import Counter
from typing import Any

import torch

from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import LearnedExplorer
from sf_explore_go.explorers.intrinsic import ExploreBatch, Setting


class PictureCounts(LearnedExplorer):
    charts = {"mean visits of a picture": ["explore/picture_visits"]}  # noqa: RUF012

    @classmethod
    def add_arguments(cls, group: argparse._ArgumentGroup) -> None:
        group.add_argument("--picture_power", type=float, default=0.5, help="number: reward is 1 / visits ** power")

    @classmethod
    def check_cfg(cls, cfg: Any) -> None:
        if not cfg.picture_power > 0:
            raise UsageError(f"--picture_power={cfg.picture_power} must be above 0")

    @classmethod
    def make_reward(cls, setting: Setting) -> "CountReward":
        return CountReward(setting.options.picture_power)


class CountReward:
    def __init__(self, power: float) -> None:
        self.power, self.mean_visits = power, 0.0
        self.open: dict[int, tuple[int, Counter[bytes]]] = {}  # environment -> its phase, visits by picture

    def rewards(self, batch: ExploreBatch) -> torch.Tensor:
        visits = torch.zeros(batch.dones.shape)  # [N, T]
        pictures = batch.raw_obs["obs"].cpu().numpy()  # [N, T + 1, ...]; action t is taken in picture t
        for n, t in torch.cartesian_prod(*map(torch.arange, visits.shape)).tolist():
            env, phase = int(batch.env[n, t]), int(batch.phase[n, t])
            if self.open.get(env, (None,))[0] != phase:
                self.open[env] = phase, Counter()
            seen = self.open[env][1]
            seen[pictures[n, t].tobytes()] += 1
            visits[n, t] = seen[pictures[n, t].tobytes()]
        self.mean_visits = visits.mean().item()
        return visits**-self.power

    def learn(self, batch: ExploreBatch) -> None:
        """Counting is all there is to learn."""

    def metrics(self) -> dict[str, float]:
        return {"picture_visits": self.mean_visits}

    def state_dict(self) -> dict[str, Any]:
        return {}  # phases that are open when a run stops are not continued

    def load_state_dict(self, state: dict[str, Any]) -> None: ...
