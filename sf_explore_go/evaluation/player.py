"""Playing a trained policy: many environments at once, one forward pass for all of them.

Episode i is fixed by its seed: its context, its engine and the random numbers that turn probabilities into actions. It
comes out the same however many others are played beside it. For that a forward pass always has the same number of rows
(`ROWS`, filled up with zeros), since matrix products of different sizes differ in their last bits.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sample_factory.algo.utils.rl_utils import prepare_and_normalize_obs
from sample_factory.model.actor_critic import create_actor_critic
from sample_factory.model.model_utils import get_rnn_size
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.seeding import derive_seed

ROWS = 4  # of one forward pass; convolutions gain nothing from more, and 8 environments make two tables


@dataclass(frozen=True)
class Episode:
    """What one episode came to."""

    context: Any
    ret: float
    success: bool
    length: int  # decisions

    @property
    def goal(self) -> int:
        """The context's goal; worlds with a single goal give the number of the context instead."""
        return int(getattr(self.context, "goal", self.context))


class Player:
    """A policy with its weights, ready to answer for several environments at once."""

    def __init__(self, cfg: AttrDict, env: Any, state: dict[str, Any], *, greedy: bool) -> None:
        self.model = create_actor_critic(cfg, env.observation_space, env.action_space)
        self.model.load_state_dict(state["model"])
        self.model.eval()
        self.greedy = greedy
        self.rnn_size = get_rnn_size(cfg)

    def act(self, obs: list[dict], rnn_states: torch.Tensor, draws: Sequence[float]) -> tuple[list[int], torch.Tensor]:
        """Actions for a list of observations; `draws` are the uniform numbers that decide between actions."""
        actions: list[int] = []
        states = []
        for begin in range(0, len(obs), ROWS):
            part = slice(begin, begin + ROWS)
            some, state = self._act_rows(obs[part], rnn_states[part], draws[part])
            actions += some
            states.append(state)
        return actions, torch.cat(states)

    @torch.no_grad()
    def _act_rows(
        self, obs: list[dict], rnn_states: torch.Tensor, draws: Sequence[float]
    ) -> tuple[list[int], torch.Tensor]:
        used = len(obs)
        batch = {key: torch.from_numpy(filled_up(np.stack([o[key] for o in obs]))) for key in obs[0]}
        states = torch.zeros((ROWS, rnn_states.shape[1]))
        states[:used] = rnn_states
        result = self.model(prepare_and_normalize_obs(self.model, batch), states)
        logits = result["action_logits"].reshape(ROWS, -1)[:used].double()
        new_states = result["new_rnn_states"].reshape(ROWS, -1)[:used]
        if self.greedy:
            return logits.argmax(dim=1).tolist(), new_states
        cumulative = torch.softmax(logits, dim=1).cumsum(dim=1)
        picked = torch.searchsorted(cumulative, torch.tensor(draws, dtype=torch.float64)[:, None])[:, 0]
        return picked.clamp(max=logits.shape[1] - 1).tolist(), new_states


def filled_up(rows: np.ndarray) -> np.ndarray:
    """[n, ...] -> [ROWS, ...], zeros below."""
    full = np.zeros((ROWS, *rows.shape[1:]), rows.dtype)
    full[: len(rows)] = rows
    return full


class Seat:
    """One environment slot: plays one episode after another."""

    def __init__(self, env: Any, rnn_size: int) -> None:
        self.env = env
        self.rnn_state = torch.zeros(rnn_size)
        self.index: int | None = None

    def sit(self, index: int, seed: int) -> None:
        """Begin episode `index`."""
        observations, infos = self.env.reset(seed=seed)
        self.index, self.obs, self.info = index, observations[0], infos[0]
        self.rng = np.random.default_rng(derive_seed(seed, "actions"))
        self.rnn_state = torch.zeros_like(self.rnn_state)
        self.ret, self.length = 0.0, 0

    def step(self, action: int, rnn_state: torch.Tensor) -> Episode | None:
        context = self.info.get("context")
        observations, rewards, terminated, truncated, infos = self.env.step([action])
        self.obs, self.info, self.rnn_state = observations[0], infos[0], rnn_state
        self.ret += float(rewards[0])
        self.length += 1
        if terminated[0] or truncated[0]:
            return Episode(context, self.ret, bool(self.info.get("success", False)), self.length)
        return None


class Table:
    """Some seats that are asked together; several tables may play at once, each in a thread of its own."""

    def __init__(self, seats: list[Seat], player: Any, waiting: "Waiting", results: dict[int, Episode]) -> None:
        self._seats, self._player, self._waiting, self._results = seats, player, waiting, results

    def play(self) -> None:
        """Until no episode is waiting any more."""
        busy = [seat for seat in self._seats if self._waiting.seat(seat)]
        while busy:
            rnn_states = torch.stack([seat.rnn_state for seat in busy])
            draws = [seat.rng.random() for seat in busy]
            actions, new_states = self._player.act([seat.obs for seat in busy], rnn_states, draws)
            for seat, action, state in zip(list(busy), actions, new_states, strict=True):
                if (episode := seat.step(action, state)) is not None:
                    assert seat.index is not None
                    self._results[seat.index] = episode
                    if not self._waiting.seat(seat):
                        busy.remove(seat)


class Waiting:
    """The episodes that nobody has begun yet."""

    def __init__(self, episodes: int, seed: int) -> None:
        self._indices: Iterator[int] = iter(range(episodes))
        self._seed, self._lock = seed, threading.Lock()

    def seat(self, seat: Seat) -> bool:
        """Begin the next episode there; False if there is none."""
        with self._lock:
            index = next(self._indices, None)
        if index is None:
            return False
        seat.sit(index, derive_seed(self._seed, "episode", index))
        return True


def play(player: Any, envs: list[Any], episodes: int, seed: int, *, threads: int = 1) -> list[Episode]:
    """Play `episodes` episodes, as many at a time as there are environments; in the order of their index.

    `player` is a `Player` or anything with its `act` and `rnn_size`. With more than one thread, environments sit at
    tables of `ROWS`: while one table's network computes, the engines of another one do.
    """
    results: dict[int, Episode] = {}
    waiting = Waiting(episodes, seed)
    seats = [Seat(env, player.rnn_size) for env in envs]
    size = len(seats) if threads == 1 else ROWS
    tables = [Table(seats[i : i + size], player, waiting, results) for i in range(0, len(seats), size)]
    if len(tables) == 1:
        tables[0].play()
    else:
        with ThreadPoolExecutor(len(tables)) as pool:
            for job in [pool.submit(table.play) for table in tables]:
                job.result()
    return [results[index] for index in range(episodes)]


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
