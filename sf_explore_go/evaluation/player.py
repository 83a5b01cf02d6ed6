"""Playing a trained policy: many environments at once, one forward pass for all of them.

An episode is fixed by its plan: its context, its engine and the random numbers that turn probabilities into actions. It
comes out the same however many others are played beside it. For that a forward pass always has the same number of rows
(`ROWS`, filled up with zeros), since matrix products of different sizes differ in their last bits. An episode whose
engine died says nothing about the agent: it is played again, from its start.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
import torch
from sample_factory.algo.utils.rl_utils import prepare_and_normalize_obs
from sample_factory.model.actor_critic import create_actor_critic
from sample_factory.model.model_utils import get_rnn_size
from sample_factory.utils.attr_dict import AttrDict
from sample_factory.utils.utils import log

from sf_explore_go.core.errors import EnvironmentFailed
from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.evaluation.episodes import PlannedEpisode

STD_LIMITS = (1e-4, 1e4)  # Sample Factory's
ATTEMPTS = 3  # at an episode whose engine dies
ROWS = 4  # of one forward pass; convolutions gain nothing from more, and 8 environments make two tables


@dataclass(frozen=True)
class Episode:
    """The result of one episode."""

    context: Any
    ret: float
    success: bool
    length: int  # decisions

    @property
    def goal(self) -> str | None:
        """The context's goal; the context itself in worlds without goals, None in worlds without contexts."""
        goal = getattr(self.context, "goal", self.context)
        return None if goal is None else str(goal)


class ClassPart:
    """A part of an action that is one of `logits` classes."""

    draws = 1

    def __init__(self, space: gym.spaces.Discrete) -> None:
        self.logits = int(space.n)

    def choose(self, logits: torch.Tensor, draws: torch.Tensor, *, greedy: bool) -> list[Any]:
        """[n, classes], [n, 1] -> n numbers: the likeliest, or the one in whose share of probability the draw falls."""
        if greedy:
            return logits.argmax(dim=1).tolist()
        cumulative = torch.softmax(logits, dim=1).cumsum(dim=1)
        picked = torch.searchsorted(cumulative, draws)[:, 0]
        return picked.clamp(max=self.logits - 1).tolist()


class VectorPart:
    """A part of an action that is a vector, normally distributed: means and logarithms of standard deviations."""

    def __init__(self, space: gym.spaces.Box) -> None:
        self.shape = space.shape
        self.draws = math.prod(space.shape)
        self.logits = 2 * self.draws

    def choose(self, logits: torch.Tensor, draws: torch.Tensor, *, greedy: bool) -> list[Any]:
        """[n, 2 size], [n, size] -> n arrays: the means, or the quantiles that the draws name."""
        means, log_std = logits.chunk(2, dim=1)
        vectors = means if greedy else means + log_std.exp().clamp(*STD_LIMITS) * torch.special.ndtri(draws)
        return list(vectors.float().numpy().reshape(-1, *self.shape))


def make_part(space: gym.Space) -> "ClassPart | VectorPart":
    if isinstance(space, gym.spaces.Discrete):
        return ClassPart(space)
    assert isinstance(space, gym.spaces.Box), f"no policy can act in {space}"
    return VectorPart(space)


class Player:
    """A policy with its weights, ready to answer for several environments at once."""

    def __init__(self, cfg: AttrDict, env: Any, state: dict[str, Any], *, greedy: bool) -> None:
        self.model = create_actor_critic(cfg, env.observation_space, env.action_space)
        self.model.load_state_dict(state["model"])
        self.model.eval()
        self.greedy = greedy
        self.action_space = env.action_space
        is_tuple = isinstance(env.action_space, gym.spaces.Tuple)
        self.parts = [make_part(space) for space in (env.action_space.spaces if is_tuple else (env.action_space,))]
        self.rnn_size = get_rnn_size(cfg)

    @property
    def draws(self) -> int:
        """How many uniform numbers decide on an action."""
        return sum(part.draws for part in self.parts)

    @torch.no_grad()
    def judge(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What observations [n, ...] are worth (returns as the environment gives them) and the likeliest actions.

        For agents without memory whose action is one of several.
        """
        states = torch.zeros((len(observations), self.rnn_size))
        batch = {"obs": torch.from_numpy(observations)}
        result = self.model(prepare_and_normalize_obs(self.model, batch), states)
        values = result["values"].reshape(-1).clone()
        if self.model.returns_normalizer is not None:
            self.model.returns_normalizer(values, denormalize=True)  # in place
        return values.double().numpy(), result["action_logits"].argmax(dim=1).numpy()

    def act(
        self, obs: list[dict], rnn_states: torch.Tensor, draws: np.ndarray, *, greedy: bool | None = None
    ) -> tuple[list[Any], torch.Tensor]:
        """Actions for a list of observations; `draws` [n, self.draws] are the uniform numbers that decide on them.

        Without `greedy`, as the player was made.
        """
        greedy = self.greedy if greedy is None else greedy
        actions: list[Any] = []
        states = []
        for begin in range(0, len(obs), ROWS):
            part = slice(begin, begin + ROWS)
            some, state = self._act_rows(obs[part], rnn_states[part], draws[part], greedy=greedy)
            actions += some
            states.append(state)
        return actions, torch.cat(states)

    @torch.no_grad()
    def _act_rows(
        self, obs: list[dict], rnn_states: torch.Tensor, draws: np.ndarray, *, greedy: bool
    ) -> tuple[list[Any], torch.Tensor]:
        used = len(obs)
        batch = {key: torch.from_numpy(filled_up(np.stack([o[key] for o in obs]))) for key in obs[0]}
        states = torch.zeros((ROWS, rnn_states.shape[1]))
        states[:used] = rnn_states
        result = self.model(prepare_and_normalize_obs(self.model, batch), states)
        logits = result["action_logits"].reshape(ROWS, -1)[:used].double()
        new_states = result["new_rnn_states"].reshape(ROWS, -1)[:used]
        numbers = torch.as_tensor(draws, dtype=torch.float64).split([part.draws for part in self.parts], dim=1)
        columns = logits.split([part.logits for part in self.parts], dim=1)
        chosen = [part.choose(a, b, greedy=greedy) for part, a, b in zip(self.parts, columns, numbers, strict=True)]
        if isinstance(self.action_space, gym.spaces.Tuple):
            return list(zip(*chosen, strict=True)), new_states
        return chosen[0], new_states


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

    def sit(self, index: int, planned: PlannedEpisode) -> None:
        """Begin episode `index`."""
        self.index, self.planned, self.attempts = index, planned, 0
        self._begin()

    def _begin(self) -> None:
        self.attempts += 1
        observations, infos = self.env.reset(seed=self.planned.seed, options=self.planned.options)
        self.obs, self.info = observations[0], infos[0]
        self.rng = np.random.default_rng(derive_seed(self.planned.seed, "actions"))
        self.rnn_state = torch.zeros_like(self.rnn_state)
        self.ret, self.length = 0.0, 0

    def step(self, action: int, rnn_state: torch.Tensor) -> Episode | None:
        context = self.info.get("context")
        observations, rewards, terminated, truncated, infos = self.env.step([action])
        self.obs, self.info, self.rnn_state = observations[0], infos[0], rnn_state
        self.ret += float(rewards[0])
        self.length += 1
        if self.info.get("engine_failed"):
            self._begin_again()
        elif terminated[0] or truncated[0]:
            return Episode(context, self.ret, bool(self.info.get("success", False)), self.length)
        return None

    def _begin_again(self) -> None:
        what = f"episode {self.index} ({self.planned.context})"
        if self.attempts == ATTEMPTS:
            raise EnvironmentFailed(
                f"the environment's engine died in each of {ATTEMPTS} attempts at {what}; nothing was counted"
            )
        log.warning("The engine died in %s; playing it again in a new engine", what)
        self._begin()


class Table:
    """Some seats that are asked together; several tables may play at once, each in a thread of its own."""

    def __init__(
        self, seats: list[Seat], player: Any, waiting: "Waiting", keep: Callable[[int, Episode], None]
    ) -> None:
        self._seats, self._player, self._waiting, self._keep = seats, player, waiting, keep

    def play(self) -> None:
        """Play until no episode is waiting."""
        try:
            self._play()
        except BaseException:
            self._waiting.give_up()  # the other tables need not begin what will not be counted
            raise

    def _play(self) -> None:
        busy = [seat for seat in self._seats if self._waiting.seat(seat)]
        while busy:
            rnn_states = torch.stack([seat.rnn_state for seat in busy])
            draws = np.stack([seat.rng.random(self._player.draws) for seat in busy])
            actions, new_states = self._player.act([seat.obs for seat in busy], rnn_states, draws)
            for seat, action, state in zip(list(busy), actions, new_states, strict=True):
                if (episode := seat.step(action, state)) is not None:
                    assert seat.index is not None
                    self._keep(seat.index, episode)
                    if not self._waiting.seat(seat):
                        busy.remove(seat)


class Sits(Protocol):
    def sit(self, index: int, planned: Any, /) -> None: ...


class Waiting:
    """The episodes (of any kind) that nobody has begun yet."""

    def __init__(self, plan: Sequence[Any]) -> None:
        self._episodes: Iterator[tuple[int, Any]] = iter(enumerate(plan))
        self._lock = threading.Lock()

    def seat(self, seat: Sits) -> bool:
        """Begin the next episode there; False if there is none."""
        with self._lock:
            chosen = next(self._episodes, None)
        if chosen is None:
            return False
        seat.sit(*chosen)
        return True

    def give_up(self) -> None:
        with self._lock:
            self._episodes = iter(())


def play(
    player: Any,
    envs: list[Any],
    plan: Sequence[PlannedEpisode],
    *,
    threads: int = 1,
    on_episode: Callable[[], None] = lambda: None,
) -> list[Episode]:
    """Play all planned episodes, as many at a time as there are environments; in the order of the plan.

    `player` is a `Player` or anything with its `act` and `rnn_size`. With more than one thread, environments sit at
    tables of `ROWS`: while one table's network computes, the engines of another one do. `on_episode` is called after
    every episode, by one thread at a time.
    """
    results: dict[int, Episode] = {}
    lock = threading.Lock()

    def keep(index: int, episode: Episode) -> None:
        with lock:
            results[index] = episode
            on_episode()

    waiting = Waiting(plan)
    seats = [Seat(env, player.rnn_size) for env in envs]
    size = len(seats) if threads == 1 else ROWS
    tables = [Table(seats[i : i + size], player, waiting, keep) for i in range(0, len(seats), size)]
    if len(tables) == 1:
        tables[0].play()
    else:
        with ThreadPoolExecutor(len(tables)) as pool:
            for job in [pool.submit(table.play) for table in tables]:
                job.result()
    return [results[index] for index in range(len(plan))]
