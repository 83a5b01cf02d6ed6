"""Playing explore phases: many environments at once, and yet each phase as if it were the only one.

Phase i is fixed by the seed: its context, its engine and what its explorer draws at random. It comes out the same
however many environments play and whoever sits beside it. A phase whose engine died is played again, from its start.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from sample_factory.utils.utils import log

from sf_explore_go.core.errors import EnvironmentFailed
from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.evaluation.explore import Explores
from sf_explore_go.evaluation.player import ATTEMPTS, ROWS, Waiting


@dataclass(frozen=True)
class Walk:
    """One explore phase: where the player was before each decision and at last, and whether the episode ended there."""

    positions: Sequence[tuple[float, float]]
    ended: bool


class Seat:
    """One environment, in which one phase after another is played."""

    def __init__(self, number: int, env: Any, explorer: Explores, steps: int) -> None:
        self.number, self._env, self._explorer, self._steps = number, env, explorer, steps

    def sit(self, phase: int, seed: int) -> None:
        """Begin phase `phase`; `seed` is that of all phases."""
        self.phase, self._seed, self._attempts = phase, seed, 0
        self._begin()

    def _begin(self) -> None:
        self._attempts += 1
        observations, infos = self._env.reset(seed=derive_seed(self._seed, "phase", self.phase))
        self.obs, self.info = observations[0], infos[0]
        self._positions, self._ended = [self.info["position"]], False
        self._explorer.begin(self.number, self.obs, self.info, derive_seed(self._seed, "explorer", self.phase))

    def step(self, action: Any) -> None:
        observations, _, terminated, truncated, infos = self._env.step([action])
        self.obs, self.info = observations[0], infos[0]
        if self.info.get("engine_failed"):
            self._begin_again()
            return
        self._positions.append(self.info["position"])
        self._ended = bool(terminated[0] or truncated[0])

    def _begin_again(self) -> None:
        if self._attempts == ATTEMPTS:
            raise EnvironmentFailed(
                f"the environment's engine died in each of {ATTEMPTS} attempts at phase {self.phase}; nothing was"
                " counted"
            )
        log.warning("The engine died in phase %d; playing it again in a new engine", self.phase)
        self._begin()

    @property
    def walk(self) -> Walk | None:
        """The phase, once it is over."""
        over = self._ended or len(self._positions) > self._steps
        return Walk(self._positions, self._ended) if over else None


def play_phases(
    explorer: Explores,
    envs: Sequence[Any],
    *,
    phases: int,
    steps: int,
    seed: int,
    threads: int = 1,
    on_phase: Callable[[], None] = lambda: None,
) -> list[Walk]:
    """Phases of `steps` decisions (fewer where the episode ends), in their order.

    With more than one thread, environments sit at tables of `ROWS`, as in player.py.
    """
    walks: dict[int, Walk] = {}
    lock = threading.Lock()

    def keep(phase: int, walk: Walk) -> None:
        with lock:
            walks[phase] = walk
            on_phase()

    waiting = Waiting([seed] * phases)
    seats = [Seat(number, env, explorer, steps) for number, env in enumerate(envs)]
    size = len(seats) if threads == 1 else ROWS
    tables = [seats[i : i + size] for i in range(0, len(seats), size)]
    with ThreadPoolExecutor(len(tables)) as pool:
        for job in [pool.submit(play_table, table, explorer, waiting, keep) for table in tables]:
            job.result()
    return [walks[phase] for phase in range(phases)]


def play_table(seats: Sequence[Seat], explorer: Explores, waiting: Waiting, keep: Callable[[int, Walk], None]) -> None:
    """Play until no phase is waiting."""
    try:
        busy = [seat for seat in seats if waiting.seat(seat) and goes_on(seat, waiting, keep)]
        while busy:
            actions = explorer.act([s.number for s in busy], [s.obs for s in busy], [s.info for s in busy])
            for seat, action in zip(busy, actions, strict=True):
                seat.step(action)
            busy = [seat for seat in busy if goes_on(seat, waiting, keep)]
    except BaseException:
        waiting.give_up()  # the other tables need not begin what will not be counted
        raise


def goes_on(seat: Seat, waiting: Waiting, keep: Callable[[int, Walk], None]) -> bool:
    """Whether someone has to act in this seat. A phase that is over makes room for the next; one without steps is over
    at once."""
    while (walk := seat.walk) is not None:
        keep(seat.phase, walk)
        if not waiting.seat(seat):
            return False
    return True
