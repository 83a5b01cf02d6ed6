"""Episodes of a training in full rounds, one of every environment.

The first episodes to end are the short ones, and where the goal ends an episode those are the lucky ones. With all
environments started at once, a mean over the last hundred that have ended is that of the lucky for as long as it takes
the others to run out of time, and an untrained agent looks like a good one. A round takes one episode of every
environment, whatever its length: the first that begins after the round before was complete.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Rounds(Generic[T]):
    """The round that is being played."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self._in_round = set(range(num_envs))  # environments whose running episode began in this round
        self._ended: dict[int, T] = {}

    def add(self, env_index: int, episode: T) -> Sequence[T]:
        """An episode has ended: all episodes of the round in the order of environments if that completes it, else none.

        The order matters to whoever keeps a part of them: the last to end are the long ones.
        """
        if env_index in self._in_round:
            self._ended.setdefault(env_index, episode)
        self._in_round.add(env_index)  # its next episode begins now
        if len(self._ended) < self.num_envs:
            return ()
        complete = [self._ended[env] for env in range(self.num_envs)]
        self._in_round, self._ended = {env_index}, {}
        return complete

    def episodes_kept(self, at_least: int) -> int:
        """How many episodes to average over: full rounds, of at least so many episodes."""
        return -(-at_least // self.num_envs) * self.num_envs
