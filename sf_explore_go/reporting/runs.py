"""Evaluated runs, made from what is recorded of them, and what one reads off the runs of an arm."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sf_explore_go.core.errors import UsageError
from sf_explore_go.reporting.records import Record, Row, find_records
from sf_explore_go.runs.names import is_best, is_milestone
from sf_explore_go.runs.scores import BY_GOAL, EVALUATION, PER_SEED, Score, actions_word

SPLITS = ("train", "test")
CLOSE = 0.1  # of an interval: an evaluation this near to a multiple counts as made there

Say = Callable[[str], None]  # takes a sentence that the reader of a report must know


def nobody(sentence: str) -> None:
    """For callers that do without."""


@dataclass(frozen=True)
class Run:
    """One training with its evaluation."""

    folder: Path
    config: dict[str, Any]
    scores: dict[str, dict[int, Score]]  # split -> total frames at which it was due -> row
    goals: tuple[Score, ...] = ()  # evaluations on test contexts, goal by goal
    end: int | None = None  # the frames at which it is compared with others, if that is not its last evaluation
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)  # all that is recorded of it, by file name

    @property
    def points(self) -> set[int]:
        """Frames at which it was evaluated on both splits."""
        return set(self.scores["train"]) & set(self.scores["test"])

    @property
    def last_frames(self) -> int:
        return max(self.points)

    @property
    def final_frames(self) -> int:
        """Where it is compared with others."""
        return self.last_frames if self.end is None else self.end

    def final(self, split: str) -> Score:
        return self.scores[split][self.final_frames]


def due_at(row: Score, config: dict[str, Any]) -> int:
    """The total of frames at which an evaluation stands in a curve: a milestone is made with the first batch after a
    multiple of the interval, which on a small machine is many frames; any other checkpoint at its own, or at a multiple
    that it has all but hit. What a run has above its budget is the rest of its last batches."""
    interval, budget = config.get("milestone_step_freq") or 0, config.get("train_for_env_steps") or row.frames
    frames = min(row.frames, budget)
    if interval and is_milestone(row.checkpoint):
        return int(max(frames // interval, 1) * interval)
    interval = interval or budget
    multiple = round(frames / interval) * interval
    return int(multiple if multiple and abs(frames - multiple) <= CLOSE * interval else frames)


def one_row_per_point(rows: Iterable[Score], config: dict[str, Any]) -> dict[int, Score]:
    """Frames -> row. A run that was killed and resumed, or that keeps milestones by the clock too, can have several
    evaluations that were due at the same frames: a milestone counts before any other checkpoint, then the nearest.
    The best checkpoint has no place here: it is chosen for its success, not for its frames."""
    points: dict[int, list[Score]] = {}
    for row in rows:
        if not is_best(row.checkpoint):
            points.setdefault(due_at(row, config), []).append(row)
    return {
        frames: min(points[frames], key=lambda row: (not is_milestone(row.checkpoint), abs(row.frames - frames)))
        for frames in sorted(points)
    }


@dataclass
class Arm:
    """Runs that differ in their seed only."""

    name: str
    runs: list[Run] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)  # what they have in common and other arms may not

    @property
    def config(self) -> dict[str, Any]:
        return self.runs[0].config

    @property
    def explores(self) -> bool:
        return any(run.config.get("max_pure_expl_steps") for run in self.runs)

    @property
    def splits(self) -> list[str]:
        """On which all its runs were evaluated."""
        return [split for split in self.runs[0].scores if all(run.scores.get(split) for run in self.runs)]

    def curve(self, split: str, what: str = "success_rate") -> dict[int, list[float]]:
        """frames -> a number of each run that was evaluated there and has it"""
        points: dict[int, list[float]] = {}
        for run in self.runs:
            for frames, row in run.scores.get(split, {}).items():
                if (value := getattr(row, what)) is not None:
                    points.setdefault(frames, []).append(value)
        return {frames: points[frames] for frames in sorted(points)}

    def final(self, split: str, what: str = "success_rate") -> list[float]:
        """A number of each run where it is compared, of those that have it."""
        rows = [run.scores.get(split, {}).get(run.final_frames) for run in self.runs]
        values = [getattr(row, what) for row in rows if row is not None]
        return [value for value in values if value is not None]

    def final_returns(self, split: str) -> list[float]:
        return [run.final(split).mean_return for run in self.runs]

    def goal_rates(self) -> dict[int, tuple[float, int]]:
        """goal -> success over all episodes of all seeds where they are compared, and how many episodes those are"""
        episodes: dict[int, int] = {}
        successes: dict[int, float] = {}
        for row in (
            row for run in self.runs for row in run.goals if row.key == run.final("test").key and row.goal.isdigit()
        ):
            goal = int(row.goal)
            episodes[goal] = episodes.get(goal, 0) + row.episodes
            successes[goal] = successes.get(goal, 0.0) + row.success_rate * row.episodes
        return {goal: (successes[goal] / episodes[goal], episodes[goal]) for goal in sorted(episodes)}


def make_run(record: Record, actions: str | None) -> Run | None:
    """None if it has not been evaluated. Without `actions`, as the run itself is evaluated."""
    rows = made_one_way([Score(**row) for row in record.tables[EVALUATION]])
    actions = actions or actions_word(greedy=bool(record.config.get("eval_greedy")))
    scores = {
        split: one_row_per_point((row for row in rows if (row.actions, row.split) == (actions, split)), record.config)
        for split in (*SPLITS, *sorted({row.split for row in rows} - set(SPLITS)))
    }
    goals = tuple(Score(**row) for row in record.tables[BY_GOAL] if row["split"] == "test")
    run = Run(record.folder, record.config, scores, goals, tables=record.tables)
    return run if run.points else None


def find_runs(folders: Iterable[Path], actions: str | None = None, say: Say = nobody) -> list[Run]:
    """Every evaluated run in the given folders (a run, an experiment, or a folder of them); tells which runs are left
    out."""
    folders = list(folders)
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder")
    try:
        records = {record.folder.resolve(): record for folder in folders for record in find_records(folder)}.values()
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read ({error.strerror})") from error
    found = {record.folder: make_run(record, actions) for record in records}
    if not found:
        raise UsageError(f"{', '.join(map(str, folders))} holds no run")
    without = [path for path, run in found.items() if run is None]
    sentence = (
        f"{listed(without)}: no checkpoint but best was evaluated on both train and test"
        f"{f' with {actions} actions' if actions else ''}; run sf-explore-go evaluate"
    )
    if len(without) == len(found):
        raise UsageError(sentence)
    if without:
        say(f"not in this report: {sentence}")
    runs = [run for run in found.values() if run is not None]
    refuse_two_ways(runs)
    return runs


def made_one_way(rows: Sequence[Score]) -> Sequence[Score]:
    """Episodes that earlier versions chose otherwise do not count beside those that are chosen as now."""
    return [row for row in rows if row.contexts == PER_SEED] or rows


def refuse_two_ways(runs: Iterable[Run]) -> None:
    """Runs that were tested on one set of contexts for all seeds, beside runs that were tested on their own."""
    ways = {run.final("test").contexts: run.folder for run in runs}
    if len(ways) > 1:
        new = ways.pop(PER_SEED)
        raise UsageError(
            f"{ways.popitem()[1]} was evaluated by an earlier version, on other contexts than {new};"
            " run sf-explore-go evaluate on it again"
        )


def listed(folders: list[Path], most: int = 10) -> str:
    more = f" and {len(folders) - most} more" if len(folders) > most else ""
    return ", ".join(map(str, folders[:most])) + more
