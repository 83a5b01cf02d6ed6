"""Counts: a policy that is rewarded for states it has rarely visited, with novelty known exactly.

The reward of an action that leads to state s, at its n-th visit in this explore phase (the state in which the phase
starts counts as visited):

    r = 1 / n**power,  and with --counts_global  r = 1 / n**power / N**power,

N being the visits of s in all phases so far. States are told apart by the world's keys (`World.state_key`), which the
policy does not see. So it shows what the same learner reaches if the novelty of a state need not be learned: an upper
bound for bonuses made from pictures, such as E3B's.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from sf_explore_go.core.arguments import boolean
from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import LearnedExplorer
from sf_explore_go.explorers.intrinsic import ExploreBatch, IntrinsicReward, Setting


class CountsExplorer(LearnedExplorer):
    uses_states: ClassVar[bool] = True
    checkpoint_key: ClassVar[str] = "counts"
    identity: ClassVar[Sequence[str]] = ("counts_power", "counts_global")
    charts: ClassVar[Mapping[str, Sequence[str]]] = {
        "Counts: share of steps to states new to their phase": ["explore/counts_new"]
    }

    @classmethod
    def add_arguments(cls, group: argparse._ArgumentGroup) -> None:
        group.add_argument(
            "--counts_power", type=float, default=0.5, help="number: the n-th visit of a state earns 1 / n**power"
        )
        group.add_argument(
            "--counts_global",
            type=boolean,
            default=False,
            help="bool: also divide by the visits of the state in all explore phases so far, to the same power",
        )

    @classmethod
    def check_cfg(cls, cfg: Any) -> None:
        if not cfg.counts_power > 0:
            raise UsageError(f"--counts_power={cfg.counts_power}: it must be above 0")

    @classmethod
    def make_reward(cls, setting: Setting) -> IntrinsicReward:
        return CountsReward(setting.options.counts_power, with_global=setting.options.counts_global)


class CountsReward:
    """One explorer's counts, over all its environments."""

    def __init__(self, power: float, *, with_global: bool) -> None:
        self.power, self.with_global = power, with_global
        self.everywhere: Counter[int] = Counter()  # visits by state, of all phases
        self._open: dict[int, tuple[int, Counter[int]]] = {}  # environment -> its phase, visits by state
        self._metrics: dict[str, float] = {}

    def rewards(self, batch: ExploreBatch) -> Tensor:
        assert batch.state is not None
        assert batch.next_state is not None
        steps = torch.stack([batch.env.long(), batch.phase.long(), batch.state, batch.next_state], dim=-1)  # [N, T, 4]
        counted = [self._visit(*step) for step in steps.flatten(0, 1).tolist()]
        in_phase, ever = torch.tensor(counted, device=steps.device).view(*steps.shape[:2], 2).unbind(-1)  # [N, T] each
        self._metrics["counts_new"] = (in_phase == 1).float().mean().item()
        return (in_phase * ever if self.with_global else in_phase).float() ** -self.power

    def _visit(self, env: int, phase: int, state: int, next_state: int) -> tuple[int, int]:
        """Count one step; returns how often its phase, and how often all phases, have now visited where it led."""
        if self._open.get(env, (None,))[0] != phase:
            self._open[env] = phase, Counter([state])
        visits = self._open[env][1]
        visits[next_state] += 1
        self.everywhere[next_state] += 1
        return visits[next_state], self.everywhere[next_state]

    def learn(self, batch: ExploreBatch) -> None:
        """Counting is all there is to learn."""

    def metrics(self) -> dict[str, float]:
        return self._metrics

    def state_dict(self) -> dict[str, Any]:
        """Phases that are open when a run stops are not continued, so only the visits of all phases are kept."""
        return {"states": list(self.everywhere), "visits": list(self.everywhere.values())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.everywhere = Counter(dict(zip(state["states"], state["visits"], strict=True)))
