"""`sf-explore-go evaluate`: play a trained agent without any explore phase, on training and on test contexts.

Episode i of a split is fixed by the evaluation seed: its context, its engine and the random numbers that turn the
policy's probabilities into actions. So the same checkpoint gives the same figures again. What is done stays done: every
row is written when it is ready, and a second call plays only what is missing.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.arguments import ArgumentParser, require_at_least
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.evaluation.player import Player, cores, play
from sf_explore_go.monitoring.board import show_evaluations
from sf_explore_go.processes.console import NORMAL, set_up_console
from sf_explore_go.runs.checkpoints import CheckpointError, read_checkpoint
from sf_explore_go.runs.pretrained import add_run_arguments, chosen_run
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
from sf_explore_go.worlds.registry import prepare_world, register_worlds, world_of

SPLITS = {"train": ("train",), "test": ("test",), "both": ("train", "test")}


def load_config(folder: Path) -> AttrDict:
    path = folder / "config.json"
    try:
        return AttrDict(json.loads(path.read_text()))
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist; --experiment must name a run in --train_dir") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error})") from error


def milestones(folder: Path) -> list[Path]:
    """The kept copies of a run's agent, oldest first."""
    return sorted((folder / "checkpoint_p0" / "milestones").glob("milestone_*.pth"))


def find_checkpoints(folder: Path, choice: str) -> list[Path]:
    """The agent's checkpoint files behind `--checkpoint`."""
    agent = folder / "checkpoint_p0"
    if choice == "all":
        found = milestones(folder)
    elif choice in ("latest", "best"):
        prefix = {"latest": "checkpoint", "best": "best"}[choice]
        found = sorted(agent.glob(f"{prefix}_*.pth"))[-1:]
    else:
        found = [Path(choice)]
        if not found[0].is_file():
            raise UsageError(f"--checkpoint={choice}: no such file; allowed are latest, best, all and a path")
    if not found and choice == "all":
        raise UsageError(f"{agent} holds no milestones; a training makes them with --milestone_step_freq above 0")
    if not found:
        raise UsageError(f"{agent} holds no {choice} checkpoint")
    return found


class Arena:
    """The environments of a run's splits, made when they are first needed."""

    def __init__(self, cfg: AttrDict, num_envs: int) -> None:
        self._cfg, self._num_envs = cfg, num_envs
        self._envs: dict[str, list[Any]] = {}
        self._open = ExitStack()

    def cfg(self, split: str) -> AttrDict:
        return AttrDict(self._cfg | {"env": world_of(self._cfg.env).splits[split]})

    def envs(self, split: str) -> list[Any]:
        if split not in self._envs:
            cfg = self.cfg(split)
            prepare_world(cfg.env)
            self._envs[split] = [self._make(cfg, index) for index in range(self._num_envs)]
        return self._envs[split]

    def _make(self, cfg: AttrDict, index: int) -> Any:
        env = make_env_func_non_batched(cfg, AttrDict(worker_index=0, vector_index=index, env_id=index))
        self._open.callback(env.close)
        return env

    @property
    def threads(self) -> int:
        """Engines compute in processes of their own; a world that is plain Python gains nothing from threads."""
        return min(cores(), self._num_envs) if world_of(self._cfg.env).kind == "doom" else 1

    def __enter__(self) -> "Arena":
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()


def make_player(path: Path, state: dict[str, Any], arena: Arena, split: str, *, greedy: bool) -> Player:
    try:
        return Player(arena.cfg(split), arena.envs(split)[0], state, greedy=greedy)
    except RuntimeError as error:
        raise CheckpointError(
            f"checkpoint {path} does not fit the run's network (another run's, or an explorer's?)"
        ) from error


def evaluate_checkpoint(
    folder: Path, path: Path, splits: Iterable[str], settings: Settings, arena: Arena
) -> list[Score]:
    """Play what is missing of one checkpoint, write it, and return its rows, those that were there included."""
    known = {one.key: one for one in read_scores(folder / EVALUATION) if one.was_made_with(settings)}
    missing = [split for split in splits if (path.name, split, settings.actions) not in known]
    rows = [known[path.name, split, settings.actions] for split in splits if split not in missing]
    if not missing:
        return rows
    state = read_checkpoint(path, "cpu")
    frames = sum(state.get("frames", [state["env_steps"]]))
    for split in missing:
        player = make_player(path, state, arena, split, greedy=settings.greedy)
        seed = derive_seed(settings.eval_seed, split)
        episodes = play(player, arena.envs(split), settings.episodes, seed, threads=arena.threads)
        row = score(episodes, frames, split, path.name, settings)
        # The detail first: a row of evaluation.csv says that the checkpoint is done.
        merge_scores(folder / BY_GOAL, score_by_goal(episodes, frames, split, path.name, settings))
        merge_scores(folder / EVALUATION, [row])
        rows.append(row)
    return rows


def evaluate_all(
    folder: Path, paths: Iterable[Path], splits: Sequence[str], settings: Settings, arena: Arena
) -> tuple[list[Score], list[CheckpointError]]:
    """Every checkpoint; one that cannot be read is passed over and told of."""
    scores: list[Score] = []
    damaged = []
    for path in paths:
        try:
            scores += evaluate_checkpoint(folder, path, splits, settings, arena)
        except CheckpointError as error:
            damaged.append(error)
    return scores, damaged


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go evaluate", description=__doc__.splitlines()[0])
    add_run_arguments(parser)
    parser.add_argument("--split", choices=sorted(SPLITS), default="both", help="which contexts to play")
    parser.add_argument("--episodes", type=int, default=100, help="episodes per checkpoint and split (100)")
    parser.add_argument("--final_episodes", type=int, help="of the last checkpoint, if more or fewer (--episodes)")
    parser.add_argument("--checkpoint", default="latest", help="latest, best, all (the milestones) or a file")
    parser.add_argument("--every", type=int, default=1, help="with all: every n-th milestone, back from the last (1)")
    parser.add_argument("--greedy", action="store_true", help="take the likeliest action instead of sampling")
    parser.add_argument("--num_envs", type=int, default=8, help="environments played at once (8)")
    parser.add_argument("--eval_seed", type=int, default=0, help="fixes the episodes that are played (0)")
    return parser


def print_table(scores: Sequence[Score], say: Callable[[str], None] = print) -> None:
    say(f"{'frames':>12}  {'split':<5}  {'success':>7}  {'95 % interval':>15}  {'return':>7}  {'length':>6}")
    for one in sorted(scores, key=lambda s: (s.frames, s.split)):
        interval = f"{one.success_low:.3f} to {one.success_high:.3f}"
        say(
            f"{one.frames:>12,}  {one.split:<5}  {one.success_rate:>7.3f}  {interval:>15}"
            f"  {one.mean_return:>7.3f}  {one.mean_length:>6.1f}"
        )


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    if args.final_episodes is None:
        args.final_episodes = args.episodes
    require_at_least(args, episodes=1, final_episodes=1, every=1, num_envs=1)
    set_up_console(NORMAL)
    folder = chosen_run(args)
    cfg = load_config(folder)
    paths = find_checkpoints(folder, args.checkpoint)[:: -args.every][::-1]
    read_scores(folder / EVALUATION)  # a file that cannot be added to is refused before anything is played
    register_worlds()
    torch.set_num_threads(1)
    settings = Settings(args.episodes, args.eval_seed, args.greedy)
    with Arena(cfg, min(args.num_envs, max(args.episodes, args.final_episodes))) as arena:
        parts = [(paths[:-1], settings), (paths[-1:], replace(settings, episodes=args.final_episodes))]
        done = [evaluate_all(folder, some, SPLITS[args.split], how, arena) for some, how in parts]
    scores, damaged = (list(chain(*results)) for results in zip(*done, strict=True))
    if not scores:
        raise damaged[0]
    print_table(scores)
    show_evaluations(folder, cfg)
    for error in damaged:
        print(f"sf-explore-go: {error}; the others were evaluated", file=sys.stderr)
    return 2 if damaged else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
