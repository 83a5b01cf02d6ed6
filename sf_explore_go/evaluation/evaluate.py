"""Plays checkpoints and writes the scores: the library behind `evaluate` and background evaluation."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.evaluation.arena import Arena, make_player
from sf_explore_go.evaluation.episodes import plan_episodes
from sf_explore_go.evaluation.exact import Judge, judge
from sf_explore_go.evaluation.player import Episode, play
from sf_explore_go.runs.checkpoints import MET, CheckpointError, read_checkpoint
from sf_explore_go.runs.scores import (
    BY_GOAL,
    EVALUATION,
    Score,
    Settings,
    merge_scores,
    read_scores,
    score,
    score_by_goal,
)
from sf_explore_go.worlds.base import TRAIN
from sf_explore_go.worlds.registry import world_of


def known_rows(folder: Path, path: Path, splits: Iterable[str], settings: Settings) -> dict[str, Score]:
    """split -> row, of what has been played of a checkpoint with these settings."""
    known = {one.key: one for one in read_scores(folder / EVALUATION) if one.was_made_with(settings)}
    keys = {split: (path.name, split, settings.actions) for split in splits}
    return {split: known[key] for split, key in keys.items() if key in known}


def evaluate_checkpoint(
    folder: Path,
    path: Path,
    splits: Sequence[str],
    settings: Settings,
    arena: Arena,
    on_episode: Callable[[], None] = lambda: None,
) -> list[Score]:
    """Play what is missing of one checkpoint, write it, and return all its rows, old ones too."""
    known = known_rows(folder, path, splits, settings)
    rows, missing = list(known.values()), [split for split in splits if split not in known]
    if not missing:
        return rows
    state = read_checkpoint(path, "cpu")
    for split in missing:
        row, episodes = play_split(path, state, split, settings, arena, on_episode)
        # The detail first: a row of evaluation.csv says that the checkpoint is done.
        if world_of(arena.cfg(split).env).scored_by_goal:
            merge_scores(folder / BY_GOAL, score_by_goal(episodes, row.frames, split, path.name, settings))
        merge_scores(folder / EVALUATION, [row])
        rows.append(row)
    return rows


def play_split(
    path: Path,
    state: dict[str, Any],
    split: str,
    settings: Settings,
    arena: Arena,
    on_episode: Callable[[], None] = lambda: None,
) -> tuple[Score, list[Episode]]:
    """Play the checkpoint `state`, read from `path`, on one split: its row, and the episodes behind it."""
    frames = sum(state.get("frames", [state["env_steps"]]))
    player = make_player(path, state, arena, split, greedy=settings.greedy)
    plan = plan_episodes(arena.cfg(split), split, settings.episodes, settings.eval_seed)
    episodes = play(player, arena.envs(split), plan, threads=arena.threads, on_episode=on_episode)
    row = score(episodes, frames, split, path.name, settings)
    return replace(row, **exact_numbers(player, state, arena.cfg(split), split)), episodes


def exact_numbers(player: Judge, state: dict[str, Any], cfg: AttrDict, split: str) -> dict[str, Any]:
    """What a row says beside its episodes, in a world whose states can be listed; nothing elsewhere."""
    met = dict(state.get(MET, {})) if split == TRAIN else {}
    table = None if cfg.use_rnn else world_of(cfg.env).state_table(cfg, split)  # a memory is no part of a state
    return met if table is None else {**asdict(judge(player, table, cfg.gamma)), **met}


def evaluate_all(
    folder: Path,
    paths: Iterable[Path],
    splits: Sequence[str],
    settings: Settings,
    arena: Arena,
    on_episode: Callable[[], None],
) -> tuple[list[Score], list[CheckpointError]]:
    """Every checkpoint; one that cannot be read is skipped and reported."""
    scores: list[Score] = []
    damaged = []
    for path in paths:
        try:
            scores += evaluate_checkpoint(folder, path, splits, settings, arena, on_episode)
        except CheckpointError as error:
            damaged.append(error)
    return scores, damaged


def episodes_to_play(folder: Path, parts: Iterable[tuple[Sequence[Path], Settings]], splits: Sequence[str]) -> int:
    """Of all checkpoints and splits that have no row yet."""
    return sum(
        how.episodes * (len(splits) - len(known_rows(folder, path, splits, how)))
        for paths, how in parts
        for path in paths
    )
