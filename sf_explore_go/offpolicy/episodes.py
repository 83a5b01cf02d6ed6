"""What the episodes of a DQN training report, in full rounds, under the tags that APPO's have."""

from collections import deque
from collections.abc import Iterator

import numpy as np

from sf_explore_go.offpolicy.environments import Steps
from sf_explore_go.training.rounds import Rounds


class Episodes:
    """The running episode of every environment, and the means of those that are over."""

    def __init__(self, num_envs: int, stats_avg: int, *, explores: bool) -> None:
        self._rounds: Rounds[dict[str, float]] = Rounds(num_envs)
        self._kept: dict[str, deque[float]] = {}
        self._length, self._explores = self._rounds.episodes_kept(stats_avg), explores

    def add(self, steps: Steps, explore_steps: np.ndarray) -> None:
        """`explore_steps` [n]: the k of each environment's episode."""
        for index in np.flatnonzero(steps.ended).tolist():
            made = int(steps.number[index]) + 1
            explored = min(made, int(explore_steps[index]))
            for episode in self._rounds.add(index, self._report(made, explored, float(steps.reward[index]))):
                for tag, value in episode.items():
                    self._kept.setdefault(tag, deque(maxlen=self._length)).append(value)

    def _report(self, made: int, explored: int, reward: float) -> dict[str, float]:
        stats: dict[str, float] = {}
        if self._explores:
            stats |= {"phases/explore_steps": float(explored), "phases/ended_exploring": float(made == explored)}
        if made > explored:
            stats |= {"go/return": reward, "go/success": reward, "go/length": float(made - explored)}
        return stats

    def scalars(self) -> Iterator[tuple[str, float]]:
        for tag, values in self._kept.items():
            yield tag, float(np.mean(values))
