"""Counts: a policy that is rewarded for what it has rarely done, with novelty known exactly.

What is counted are the states that actions lead to (`--counts_of=states`), or pairs of a state and the action taken
there (`actions`). At its n-th time in this explore phase (the state in which the phase starts counts as visited), and
its N-th in all phases so far, it earns

    r = coeff / n**power,  with --counts_global  r = coeff / (n N)**power,

and with --counts_first only the first time in a phase earns anything. The paper's bonus for Four Rooms,
[n = 1] / sqrt(N), has all three: actions, global, first. Its authors' code divides it by its running maximum, which an
epsilon of 1e-7 under the root makes 3162: then what was never done earns 1 and anything else next to nothing
(`--counts_epsilon=1e-7`).

States are told apart by the world's keys (`World.state_key`), which the policy does not see. So it shows what the same
learner reaches if the novelty of a state need not be learned: an upper bound for bonuses made from pictures, such as
E3B's.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from sf_explore_go.core.arguments import boolean
from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import LearnedExplorer
from sf_explore_go.explorers.intrinsic import ExploreBatch, IntrinsicReward, Setting

STATES, ACTIONS = "states", "actions"
ACTIONS_AT_MOST = 2**16  # of a Discrete space, so that a pair is one whole number


class Rule(NamedTuple):
    """What is counted, and what it earns."""

    of: str = STATES
    power: float = 0.5
    with_global: bool = False
    first: bool = False
    epsilon: float = 0.0

    def reward(self, in_phase: Tensor, ever: Tensor) -> Tensor:
        """Of the n-th time in its phase and the N-th of all."""
        visits = (in_phase * ever if self.with_global else in_phase).double()
        if self.epsilon:  # their count is of earlier times, and the largest bonus is that of none
            reward = ((visits - 1 + self.epsilon) / self.epsilon) ** -self.power
        else:
            reward = visits**-self.power
        return (reward * (in_phase == 1) if self.first else reward).float()


class CountsExplorer(LearnedExplorer):
    uses_states: ClassVar[bool] = True
    checkpoint_key: ClassVar[str] = "counts"
    identity: ClassVar[Sequence[str]] = (
        "counts_of", "counts_power", "counts_global", "counts_first", "counts_epsilon", "counts_coeff",
    )  # fmt: skip
    charts: ClassVar[Mapping[str, Sequence[str]]] = {
        "Counts: share of steps that were new to their phase": ["explore/counts_new"]
    }

    @classmethod
    def add_arguments(cls, group: argparse._ArgumentGroup) -> None:
        group.add_argument(
            "--counts_of",
            choices=(STATES, ACTIONS),
            default=STATES,
            help="what is counted: the states that actions lead to, or pairs of a state and its action",
        )
        group.add_argument("--counts_power", type=float, default=0.5, help="number: the n-th time earns 1 / n**power")
        group.add_argument(
            "--counts_global",
            type=boolean,
            default=False,
            help="bool: also divide by the number of times in all explore phases so far, to the same power",
        )
        group.add_argument(
            "--counts_first", type=boolean, default=False, help="bool: only the first time in a phase earns anything"
        )
        group.add_argument(
            "--counts_epsilon",
            type=float,
            default=0.0,
            help="number: above 0, the authors' form for Four Rooms: what was never done earns 1, and all else at most"
            " epsilon**power (theirs: 1e-7)",
        )
        group.add_argument("--counts_coeff", type=float, default=1.0, help="number: the reward is multiplied by it")

    @classmethod
    def check_cfg(cls, cfg: Any) -> None:
        for name in ("counts_power", "counts_coeff"):
            if not getattr(cfg, name) > 0:
                raise UsageError(f"--{name}={getattr(cfg, name)}: it must be above 0")
        if cfg.counts_epsilon < 0:
            raise UsageError(f"--counts_epsilon={cfg.counts_epsilon}: it must be at least 0")

    @classmethod
    def make_reward(cls, setting: Setting) -> IntrinsicReward:
        return CountsReward(rule_of(setting.options), setting.options.counts_coeff)


def rule_of(cfg: Any) -> Rule:
    """The one that the flags describe."""
    return Rule(cfg.counts_of, cfg.counts_power, cfg.counts_global, cfg.counts_first, cfg.counts_epsilon)


class CountsReward:
    """One policy's counts, over all its environments."""

    def __init__(self, rule: Rule, coeff: float = 1.0) -> None:
        self.rule, self.coeff = rule, coeff
        self.everywhere: Counter[int] = Counter()  # times of what is counted, in all phases
        self._open: dict[int, tuple[int, Counter[int]]] = {}  # environment -> its phase, times in it
        self._metrics: dict[str, float] = {}

    def rewards(self, batch: ExploreBatch) -> Tensor:
        assert batch.state is not None
        assert batch.next_state is not None
        whose = torch.stack([batch.env.long(), batch.phase.long(), batch.state, self._counted(batch)], dim=-1)
        counted = [self._count(*step) for step in whose.flatten(0, 1).tolist()]
        in_phase, ever = torch.tensor(counted, device=whose.device).view(*whose.shape[:2], 2).unbind(-1)  # [N, T] each
        self._metrics["counts_new"] = (in_phase == 1).float().mean().item()
        return self.coeff * self.rule.reward(in_phase, ever)

    def _counted(self, batch: ExploreBatch) -> Tensor:
        """[N, T]: the number of what is counted at each step."""
        assert batch.state is not None
        assert batch.next_state is not None
        if self.rule.of == STATES:
            return batch.next_state
        return batch.state * ACTIONS_AT_MOST + batch.actions.long().view_as(batch.state)

    def _count(self, env: int, phase: int, state: int, what: int) -> tuple[int, int]:
        """Count one step; returns how often its phase, and how often all phases, have now had it."""
        if self._open.get(env, (None,))[0] != phase:
            self._open[env] = phase, Counter([state] if self.rule.of == STATES else [])
        times = self._open[env][1]
        times[what] += 1
        self.everywhere[what] += 1
        return times[what], self.everywhere[what]

    def learn(self, batch: ExploreBatch) -> None:
        """Counting is all there is to learn."""

    def metrics(self) -> dict[str, float]:
        return self._metrics

    def state_dict(self) -> dict[str, Any]:
        """Phases that are open when a run stops are not continued, so only the counts of all phases are kept."""
        return {"states": list(self.everywhere), "visits": list(self.everywhere.values())}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.everywhere = Counter(dict(zip(state["states"], state["visits"], strict=True)))
