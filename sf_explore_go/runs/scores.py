"""What evaluation writes: evaluation.csv, one row per checkpoint and split, and the same by goal beside it."""

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.statistics import mean_interval, wilson_interval

if TYPE_CHECKING:
    from sf_explore_go.evaluation.player import Episode  # which needs torch; reports do without it

EVALUATION, BY_GOAL = "evaluation.csv", "evaluation_goals.csv"
ALL_GOALS = "all"


@dataclass(frozen=True)
class Settings:
    """How episodes are played; rows made with other settings are made anew."""

    episodes: int = 100
    eval_seed: int = 0
    greedy: bool = False

    @property
    def actions(self) -> str:
        return "greedy" if self.greedy else "sampled"


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

    @property
    def key(self) -> tuple[str, str, str]:
        return self.checkpoint, self.split, self.actions

    def was_made_with(self, settings: Settings) -> bool:
        return (self.episodes, self.eval_seed, self.actions) == (
            settings.episodes,
            settings.eval_seed,
            settings.actions,
        )


def score(
    episodes: Sequence["Episode"], frames: int, split: str, checkpoint: str, settings: Settings, goal: str = ALL_GOALS
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
    episodes: Sequence["Episode"], frames: int, split: str, checkpoint: str, settings: Settings
) -> list[Score]:
    """The same episodes, goal by goal."""
    goals = sorted({episode.goal for episode in episodes})
    return [
        score([one for one in episodes if one.goal == goal], frames, split, checkpoint, settings, str(goal))
        for goal in goals
    ]


def read_scores(path: Path) -> list[Score]:
    """The rows of a CSV file; none if there is no file. A file that cannot be understood is a UsageError."""
    if not path.is_file():
        return []
    try:
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames is None:
                raise ValueError("it is empty")
            return [parse_row(row) for row in reader]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} cannot be read ({explain(error)}); repair it or move it away") from error


def parse_row(row: dict[str, str]) -> Score:
    kinds: dict[Any, Callable[[str], Any]] = {int: int, float: float, str: str}
    # columns that files of earlier versions did not have
    defaults = {"goal": ALL_GOALS, "actions": "sampled", "eval_seed": "0", "checkpoint": ""}
    return Score(**{f.name: kinds[f.type]((defaults | row)[f.name]) for f in fields(Score)})


def explain(error: BaseException) -> str:
    return f"it has no column {error}" if isinstance(error, KeyError) else str(error)


def merge_scores(path: Path, scores: Iterable[Score]) -> None:
    """Add rows to a CSV file in place of all of the same checkpoint, split and actions; others may do so meanwhile."""
    fresh = list(scores)
    replaced = {one.key for one in fresh}
    with FileLock(path.with_name(f".{path.name}.lock")):
        rows = [one for one in read_scores(path) if one.key not in replaced] + fresh
        temporary = path.with_name(f".{path.name}.tmp")
        with temporary.open("w", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(Score)])
            writer.writeheader()
            writer.writerows(asdict(one) for one in sorted(rows, key=order))
        temporary.replace(path)


def order(one: Score) -> tuple[Any, ...]:
    return one.frames, one.split, one.checkpoint, int(one.goal) if one.goal.isdigit() else -1
