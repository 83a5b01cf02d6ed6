"""What evaluation writes: evaluation.csv, one row per checkpoint and split, and the same by goal beside it."""

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from filelock import FileLock

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.files import write_csv
from sf_explore_go.core.statistics import mean_interval, wilson_interval

EVALUATION, BY_GOAL = "evaluation.csv", "evaluation_goals.csv"
ALL_GOALS = "all"
# How episodes are chosen: from the run's seeds, with goals in equal numbers; or, as earlier versions did and as files
# without the column say, one set of contexts for all runs, drawn at random.
PER_SEED, SHARED = "per_seed", "shared"
EXACT = ("value_error", "optimal", "explored", "recent")  # columns of worlds whose states can be listed
T = TypeVar("T")


class PlayedEpisode(Protocol):
    """What a score is made of."""

    @property
    def ret(self) -> float: ...

    @property
    def success(self) -> bool: ...

    @property
    def length(self) -> int: ...

    @property
    def goal(self) -> str | None: ...


def actions_word(*, greedy: bool) -> str:
    return "greedy" if greedy else "sampled"


@dataclass(frozen=True)
class Settings:
    """How episodes are played; rows made with other settings are made anew."""

    episodes: int = 100
    eval_seed: int = 0
    greedy: bool = False

    @property
    def actions(self) -> str:
        return actions_word(greedy=self.greedy)


@dataclass(frozen=True)
class Score:
    """One row of evaluation.csv (goal = all) or of evaluation_goals.csv; intervals are 95 %, over episodes."""

    frames: int
    split: str
    goal: str
    episodes: int
    success_rate: float
    success_low: float
    success_high: float
    mean_return: float
    return_low: float
    return_high: float
    mean_length: float  # decisions
    actions: str
    eval_seed: int
    checkpoint: str
    contexts: str = PER_SEED
    # Of worlds whose states can be listed (Four Rooms), empty for others: over all states of the split's contexts
    value_error: float | None = None  # mean |V - V*|
    optimal: float | None = None  # share of states whose likeliest action is optimal
    # and of the training so far, on rows of the training split
    explored: float | None = None  # share of pairs of state and action that it had met
    recent: float | None = None  # share of states among its last samples

    @property
    def key(self) -> tuple[str, str, str]:
        return self.checkpoint, self.split, self.actions

    def was_made_with(self, settings: Settings) -> bool:
        return (self.episodes, self.eval_seed, self.actions, self.contexts) == (
            settings.episodes,
            settings.eval_seed,
            settings.actions,
            PER_SEED,
        )


def score(
    episodes: Sequence[PlayedEpisode],
    frames: int,
    split: str,
    checkpoint: str,
    settings: Settings,
    goal: str = ALL_GOALS,
) -> Score:
    successes = sum(episode.success for episode in episodes)
    low, high = wilson_interval(successes, len(episodes))
    mean, return_low, return_high = mean_interval([episode.ret for episode in episodes])
    length = float(np.mean([episode.length for episode in episodes]))
    rate = successes / len(episodes)
    return Score(
        frames, split, goal, len(episodes), rate, low, high, mean, return_low, return_high, length,
        settings.actions, settings.eval_seed, checkpoint,
    )  # fmt: skip


def score_by_goal(
    episodes: Sequence[PlayedEpisode], frames: int, split: str, checkpoint: str, settings: Settings
) -> list[Score]:
    """The same episodes, goal by goal."""
    goals = sorted({episode.goal for episode in episodes if episode.goal is not None}, key=goal_order)
    return [
        score([one for one in episodes if one.goal == goal], frames, split, checkpoint, settings, goal)
        for goal in goals
    ]


def read_scores(path: Path) -> list[Score]:
    return read_table(path, parse_row)


def read_table(path: Path, parse: Callable[[dict[str, str]], T]) -> list[T]:
    """The rows of a CSV file; none if there is no file. A file that cannot be understood is a UsageError."""
    if not path.is_file():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames is None:
                raise ValueError("it is empty")
            return [parse_line(row, reader.line_num, parse) for row in reader]
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"{path} cannot be read ({error}); repair it or move it away") from error


def parse_line(row: dict[str, str], line: int, parse: Callable[[dict[str, str]], T]) -> T:
    if None in row or None in row.values():  # that is how csv marks cells that are too many or too few
        raise ValueError(f"line {line} has not as many cells as the header")
    try:
        return parse(row)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"line {line}: {explain(error)}") from error


def parse_row(row: dict[str, str]) -> Score:
    kinds: dict[Any, Callable[[str], Any]] = {int: int, float: float, str: str, float | None: number_or_none}
    # columns that files of earlier versions did not have
    defaults = {"goal": ALL_GOALS, "actions": "sampled", "eval_seed": "0", "checkpoint": "", "contexts": SHARED}
    defaults |= dict.fromkeys(EXACT, "")
    one = Score(**{f.name: kinds[f.type]((defaults | row)[f.name]) for f in fields(Score)})
    if one.contexts not in (PER_SEED, SHARED):
        raise ValueError(f"contexts={one.contexts} must be {PER_SEED} or {SHARED}")
    return one


def number_or_none(cell: str) -> float | None:
    return float(cell) if cell else None


def explain(error: BaseException) -> str:
    return f"it has no column {error}" if isinstance(error, KeyError) else str(error)


def merge_scores(path: Path, scores: Iterable[Score]) -> None:
    """Add rows to a CSV file in place of all of the same checkpoint, split and actions; others may do so meanwhile."""
    fresh = list(scores)
    replaced = {one.key for one in fresh}
    with FileLock(path.with_name(f".{path.name}.lock")):
        rows = [one for one in read_scores(path) if one.key not in replaced] + fresh
        columns = columns_of(rows)
        write_csv(path, columns, [{name: getattr(one, name) for name in columns} for one in sorted(rows, key=order)])


def columns_of(rows: Iterable[Score]) -> list[str]:
    """Those of every file, and the exact ones where a row has one."""
    known = {name for one in rows for name in EXACT if getattr(one, name) is not None}
    return [field.name for field in fields(Score) if field.name not in EXACT or field.name in known]


def goal_order(goal: str) -> tuple[int, str]:
    """Numbers by their size, others by name, before them."""
    return int(goal) if goal.isdigit() else -1, goal


def order(one: Score) -> tuple[Any, ...]:
    return one.frames, one.split, one.checkpoint, *goal_order(one.goal)
