"""Evaluated runs, read from their folders and grouped by arm.

An arm is what the runs of a report differ in besides their seed: the length of the explore phase and the explorer.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sf_explore_go.core.errors import UsageError
from sf_explore_go.runs.scores import BY_GOAL, EVALUATION, Score, read_scores

SPLITS = ("train", "test")
# flags in which the runs of one report may differ
PER_RUN = {
    "seed", "context_seed", "experiment", "train_dir", "max_pure_expl_steps", "explorer", "num_policies", "cli_args",
    "command_line", "git_hash", "git_repo_name", "restart_behavior", "device", "num_workers", "wandb_unique_id",
    "quiet", "verbose", "eval_in_background", "eval_episodes", "eval_finish_seconds",
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One training with its evaluation."""

    folder: Path
    config: dict[str, Any]
    scores: dict[str, dict[int, Score]]  # split -> frames -> row
    goals: tuple[Score, ...] = ()  # of the last evaluation on test contexts

    @property
    def arm(self) -> str:
        steps = self.config["max_pure_expl_steps"]
        return f"Explore-Go, K = {steps}, {self.config['explorer']}" if steps else "baseline (K = 0)"

    def final(self, split: str) -> Score:
        return self.scores[split][max(self.scores[split])]


def due_at(row: Score, interval: int) -> int:
    """The total of frames at which an evaluation stands in a curve: a milestone is made with the first batch after a
    multiple of the interval, which on a small machine is many frames; any other checkpoint at its own, or at a multiple
    that it has all but hit."""
    if row.checkpoint.startswith("milestone_"):
        return max(row.frames // interval, 1) * interval
    multiple = round(row.frames / interval) * interval
    return multiple if abs(row.frames - multiple) <= 0.1 * interval else row.frames


@dataclass
class Arm:
    """All runs that differ in their seed only."""

    name: str
    runs: list[Run] = field(default_factory=list)

    def curve(self, split: str, interval: int) -> dict[int, list[float]]:
        """frames -> success rate of each run; evaluations that were due at the same multiple of the interval meet"""
        points: dict[int, list[float]] = {}
        for run in self.runs:
            for row in run.scores[split].values():
                points.setdefault(due_at(row, interval), []).append(row.success_rate)
        return {frames: points[frames] for frames in sorted(points)}

    def final(self, split: str) -> list[float]:
        """Success rate of each run at its last evaluation."""
        return [run.final(split).success_rate for run in self.runs]

    def final_returns(self, split: str) -> list[float]:
        return [run.final(split).mean_return for run in self.runs]

    def episodes(self, split: str) -> tuple[int, int]:
        """Fewest and most episodes behind the final success of a seed."""
        counts = [run.final(split).episodes for run in self.runs]
        return min(counts), max(counts)

    def goal_rates(self) -> dict[int, tuple[float, int]]:
        """goal -> success over all episodes of all seeds at their last evaluation, and how many episodes those are"""
        episodes: dict[int, int] = {}
        successes: dict[int, float] = {}
        for row in (row for run in self.runs for row in run.goals):
            goal = int(row.goal)
            episodes[goal] = episodes.get(goal, 0) + row.episodes
            successes[goal] = successes.get(goal, 0.0) + row.success_rate * row.episodes
        return {goal: (successes[goal] / episodes[goal], episodes[goal]) for goal in sorted(episodes)}


def read_run(folder: Path, actions: str) -> Run:
    try:
        config = json.loads((folder / "config.json").read_text())
        missing = [key for key in ("env", "max_pure_expl_steps", "explorer", "seed") if key not in config]
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{folder} cannot be read as an evaluated run ({error})") from error
    if missing:
        raise UsageError(f"{folder / 'config.json'} cannot be read as a run's configuration (no {missing[0]})")
    scores: dict[str, dict[int, Score]] = {split: {} for split in SPLITS}
    for row in read_scores(folder / EVALUATION):
        if row.actions == actions and row.split in scores:
            scores[row.split][row.frames] = row
    if not all(scores.values()):
        raise UsageError(
            f"{folder / EVALUATION} has no rows with {actions} actions for both train and test;"
            " run sf-explore-go evaluate"
        )
    last = scores["test"][max(scores["test"])]
    goals = tuple(row for row in read_scores(folder / BY_GOAL) if row.key == last.key)
    return Run(folder, config, scores, goals)


def find_runs(folders: Iterable[Path], actions: str = "sampled") -> list[Run]:
    """Every evaluated run in the given folders (a run, or a folder of runs)."""
    folders = list(folders)
    found: list[Path] = []
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder")
        found += sorted(path.parent for path in [*folder.glob(EVALUATION), *folder.glob(f"*/{EVALUATION}")])
    if not found:
        raise UsageError(f"no {EVALUATION} in {', '.join(map(str, folders))}; run sf-explore-go evaluate first")
    return [read_run(folder, actions) for folder in dict.fromkeys(found)]


def group(runs: Sequence[Run], *, mixed: bool) -> list[Arm]:
    """Runs by arm, the baseline first; refuses runs that differ in more than arm and seed unless `mixed`."""
    if not mixed:
        refuse_differences(runs)
    arms: dict[str, Arm] = {}
    for run in sorted(runs, key=lambda r: (r.config["max_pure_expl_steps"], r.config["explorer"], r.config["seed"])):
        arms.setdefault(run.arm, Arm(run.arm)).runs.append(run)
    return list(arms.values())


def refuse_differences(runs: Sequence[Run]) -> None:
    first = runs[0]
    for run in runs[1:]:
        keys = (first.config.keys() | run.config.keys()) - PER_RUN
        different = sorted(key for key in keys if first.config.get(key) != run.config.get(key))
        different.sort(key=lambda key: key != "env")  # what matters most is named first
        if different:
            shown = ", ".join(f"{k} ({first.config.get(k)} and {run.config.get(k)})" for k in different[:5])
            raise UsageError(f"{first.folder} and {run.folder} differ in {shown}; pass --mixed to report them together")
