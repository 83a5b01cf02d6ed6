"""The run in TensorBoard: how its charts are laid out, what its hyperparameters are, and what evaluation found.

A run has one folder of event files, `.summary/0` (a learned explorer has `.summary/1`), and two small ones,
`.summary/train` and `.summary/test`: TensorBoard gives each folder a colour, so success on training and on test
contexts have two colours in one chart only if they come from two folders. It wants one writer per folder at a time.
While a training runs that is the training, which shows rows of evaluation.csv as they come; otherwise it is whoever
evaluates. A lock tells which. What was shown is remembered beside the event files, so nothing is shown twice or
forgotten, however processes end.
"""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from numpy.typing import NDArray
from tensorboardX import SummaryWriter
from tensorboardX.summary import hparams

from sf_explore_go.core.files import write_json
from sf_explore_go.explorers.registry import resolve_explorer
from sf_explore_go.runs.scores import BY_GOAL, EVALUATION, EXACT, SHARED, Score, actions_word, read_scores
from sf_explore_go.worlds.base import World
from sf_explore_go.worlds.registry import world_of

Layout = dict[str, dict[str, list[Any]]]

# Category -> chart -> its tags. The tab "Custom Scalars" keeps this order; elsewhere TensorBoard sorts by name.
LAYOUT: Layout = {
    "Does it generalise?": {
        "success: training and test contexts": ["Multiline", ["eval/success"]],
        "generalisation gap (training - test)": ["Multiline", ["eval/generalisation_gap"]],
        "return: training and test contexts": ["Multiline", ["eval/return"]],
    },
    "Training episodes": {
        "return of the go phase": ["Multiline", ["go/return"]],
        "success of the go phase": ["Multiline", ["go/success"]],
    },
    "Phases": {
        "share of frames explored": ["Multiline", ["phases/explore_share"]],
        "decisions explored per episode": ["Multiline", ["phases/explore_steps", "phases/max_explore_steps"]],
    },
    "Explorer": {
        "share of the map per explore phase": ["Multiline", ["explore/coverage_per_phase"]],
        "cells where go phases start": ["Multiline", ["explore/go_start_cells"]],
    },
    "Agent": {
        "entropy": ["Multiline", ["train/entropy"]],
        "value loss": ["Multiline", ["train/value_loss"]],
    },
    "Throughput": {
        "frames per second": ["Multiline", ["perf/frames_per_second"]],
        "policy lag": ["Multiline", ["perf/policy_lag"]],
    },
}

# Name of a column -> flag. TensorBoard sorts columns by name, capitals first, and shows five of them: those that tell
# the runs of an experiment apart.
HYPERPARAMETERS = {
    "Environment": "env", "Explorer": "explorer", "K": "max_pure_expl_steps", "Seed": "seed",
    "Training contexts": "num_contexts",
} | {
    name: name
    for name in (
        "context_seed", "preset", "learning_rate", "gamma", "gae_lambda", "rollout", "batch_size", "num_epochs",
        "exploration_loss", "exploration_loss_coeff", "ppo_clip_ratio", "max_grad_norm", "rnn_size",
        "encoder_conv_architecture", "num_workers", "num_envs_per_worker", "train_for_env_steps", "explore_schedule",
    )
}  # fmt: skip
METRICS = ("eval/train_success", "eval/test_success", "eval/generalisation_gap", "go/return")


def layout_for(cfg: Mapping[str, Any]) -> Layout:
    """The charts of every run, and those that its explorer brings."""
    if not cfg.get("max_pure_expl_steps"):
        return LAYOUT
    own = {title: ["Multiline", list(tags)] for title, tags in resolve_explorer(cfg["explorer"]).charts.items()}
    return LAYOUT | {"Explorer": LAYOUT["Explorer"] | own}


def describe_run(writer: SummaryWriter, cfg: Mapping[str, Any]) -> None:
    """Layout and hyperparameters, at the head of the event file."""
    writer.add_custom_scalars(layout_for(cfg))
    chosen = {name: cfg[flag] for name, flag in HYPERPARAMETERS.items() if flag in cfg}
    for summary in hparams(chosen, dict.fromkeys(METRICS, 0.0)):
        writer.file_writer.add_summary(summary)


def board_folder(run: Path) -> Path:
    return run / ".summary" / "0"


def split_folder(run: Path, split: str) -> Path:
    return run / ".summary" / split


def new_writer(folder: Path) -> SummaryWriter:
    """Files are named by the second; without a suffix, two of one second would be one, and the first lost."""
    return SummaryWriter(str(folder), filename_suffix=f".{time.time_ns()}")


def board_lock(run: Path) -> FileLock:
    """Held by the one who writes into the run's event files; the system frees it when its holder dies."""
    return FileLock(run / ".summary" / ".writer.lock")


class EvaluationBoard:
    """Writes the rows of evaluation.csv that TensorBoard does not have yet."""

    def __init__(self, run: Path, env: str, *, greedy: bool = False) -> None:
        self._run, self._world = run, world_of(env)
        self._own = actions_word(greedy=greedy)  # how this run is evaluated; others get a group of their own
        self._memory = board_folder(run) / "shown_evaluations.json"
        self._seen_change: float | None = None

    def show_new(self, writer: SummaryWriter) -> list[Score]:
        """Returns the rows that were shown now; nothing is read unless the file has changed."""
        table = self._run / EVALUATION
        change = table.stat().st_mtime_ns if table.is_file() else None
        if change == self._seen_change:
            return []
        self._seen_change = change
        rows = read_scores(table)
        shown = self._shown()
        new = [one for one in rows if _name(one) not in shown]
        for one in new:
            self._show(writer, one)
        for split in {one.split for one in new}:
            self._show_split(split, [one for one in new if one.split == split])
        for train, test in pairs(rows):
            if train in new or test in new:
                gap = train.success_rate - test.success_rate
                writer.add_scalar(f"{self._group_of(test)}/generalisation_gap", gap, test.frames)
        if new:
            writer.flush()
            self._remember([*shown, *map(_name, new)])
        return new

    def _show(self, writer: SummaryWriter, one: Score) -> None:
        group = self._group_of(one)
        writer.add_scalar(f"{group}/{one.split}_success", one.success_rate, one.frames)
        writer.add_scalar(f"{group}/{one.split}_return", one.mean_return, one.frames)
        writer.add_scalar(f"{group}/{one.split}_length", one.mean_length, one.frames)
        if one.split == "test":
            self._show_goals(writer, one, f"{group}/test_success_by_goal")

    def _show_split(self, split: str, rows: Sequence[Score]) -> None:
        """The same numbers once more, where they get a colour of their own."""
        with new_writer(split_folder(self._run, split)) as writer:
            for one in rows:
                for tag, value in {"success": one.success_rate, "return": one.mean_return, **exact_of(one)}.items():
                    writer.add_scalar(f"{self._group_of(one)}/{tag}", value, one.frames)

    def _show_goals(self, writer: SummaryWriter, one: Score, tag: str) -> None:
        goals = [row for row in read_scores(self._run / BY_GOAL) if row.key == one.key]
        if (picture := goal_picture(goals, self._world)) is not None:
            writer.add_image(tag, picture, one.frames, dataformats="HWC")

    def _group_of(self, one: Score) -> str:
        return "eval" if one.actions == self._own else f"eval_{one.actions}"

    def _shown(self) -> list[str]:
        try:
            return list(json.loads(self._memory.read_text()))
        except (OSError, ValueError):
            return []

    def _remember(self, names: Sequence[str]) -> None:
        write_json(self._memory, names)


def exact_of(one: Score) -> dict[str, float]:
    """The numbers that only worlds have whose states can be listed."""
    values = {name: getattr(one, name) for name in EXACT}
    return {name: value for name, value in values.items() if value is not None}


def pairs(rows: Sequence[Score]) -> list[tuple[Score, Score]]:
    """The training and the test row of each checkpoint that has both."""
    train = {(row.checkpoint, row.actions): row for row in rows if row.split == "train"}
    test = {(row.checkpoint, row.actions): row for row in rows if row.split == "test"}
    return [(train[key], test[key]) for key in test if key in train]


def _name(one: Score) -> str:
    name = f"{one.checkpoint} {one.split} {one.actions} {one.episodes} {one.eval_seed}"
    return name if one.contexts == SHARED else f"{name} {one.contexts}"  # as earlier versions remembered it


def goal_picture(goals: Sequence[Score], world: World) -> NDArray | None:
    """Success by goal on the map; None where there is nothing to draw, or no map to draw on."""
    if not goals:
        return None
    episodes = sum(row.episodes for row in goals)
    mean = sum(row.success_rate * row.episodes for row in goals) / episodes
    title = f"Test success {mean:.0%} at {goals[0].frames:,} frames, {episodes} episodes"
    rates = {int(row.goal): row.success_rate for row in goals if row.goal.isdigit()}
    return world.map_image(rates=rates, title=title)


def show_evaluations(run: Path, cfg: Mapping[str, Any]) -> None:
    """For whoever evaluates by hand: show what is new, unless a training is there to do it."""
    board_folder(run).mkdir(parents=True, exist_ok=True)
    try:
        with board_lock(run).acquire(timeout=0):
            board = EvaluationBoard(run, cfg["env"], greedy=bool(cfg.get("eval_greedy", False)))
            with new_writer(board_folder(run)) as writer:
                board.show_new(writer)
    except Timeout:
        return
