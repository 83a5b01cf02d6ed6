"""`sf-explore-go evaluate`: play a trained agent without any explore phase, on training and on test contexts.

Episode i of a split is fixed by the run's seeds and the evaluation seed (episodes.py): its context, its engine and the
random numbers that turn the policy's probabilities into actions. So the same checkpoint gives the same figures again.
What is done stays done: every row is written when it is ready, and a second call plays only what is missing.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import torch
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.arguments import require_at_least
from sf_explore_go.core.errors import EnvironmentFailed
from sf_explore_go.evaluation.arena import Arena
from sf_explore_go.evaluation.arguments import is_greedy, load_config, make_parser, splits
from sf_explore_go.evaluation.evaluate import episodes_to_play, evaluate_all
from sf_explore_go.monitoring.board import show_evaluations
from sf_explore_go.monitoring.progress import EpisodeCount
from sf_explore_go.processes.console import NORMAL, LiveLine, set_up_console
from sf_explore_go.runs.checkpoints import CheckpointError
from sf_explore_go.runs.names import find_checkpoints
from sf_explore_go.runs.pretrained import chosen_run
from sf_explore_go.runs.scores import Score, Settings
from sf_explore_go.training.environments import register_worlds


def print_table(scores: Sequence[Score], say: Callable[[str], None] = print) -> None:
    say(f"{'frames':>12}  {'split':<10}  {'success':>7}  {'95 % interval':>15}  {'return':>7}  {'length':>6}")
    for one in sorted(scores, key=lambda s: (s.frames, s.split)):
        interval = f"{one.success_low:.3f} to {one.success_high:.3f}"
        say(
            f"{one.frames:>12,}  {one.split:<10}  {one.success_rate:>7.3f}  {interval:>15}"
            f"  {one.mean_return:>7.3f}  {one.mean_length:>6.1f}"
        )


def fill_in(args: Namespace, cfg: AttrDict) -> None:
    """What the command line leaves to the run."""
    if args.episodes is None:
        args.episodes = cfg.get("eval_episodes", 100)
    if args.final_episodes is None:
        args.final_episodes = args.episodes
    if args.greedy is None:
        args.greedy = is_greedy(cfg)


def play_all(args: Namespace, folder: Path, cfg: AttrDict) -> tuple[list[Score], list[CheckpointError]]:
    """What the command line asks for; the rows, and what could not be read."""
    paths = find_checkpoints(folder, args.checkpoint)[:: -args.every][::-1]
    settings, chosen = Settings(args.episodes, args.eval_seed, args.greedy), splits(cfg, args.split)
    parts = [(paths[:-1], settings), (paths[-1:], replace(settings, episodes=args.final_episodes))]
    count = EpisodeCount(episodes_to_play(folder, parts, chosen), None if args.quiet else LiveLine())
    try:
        with Arena(cfg, min(args.num_envs, max(args.episodes, args.final_episodes))) as arena:
            done = [evaluate_all(folder, some, chosen, how, arena, count.add_one) for some, how in parts]
    finally:
        count.end()
    scores, damaged = zip(*done, strict=True)
    return list(chain(*scores)), list(chain(*damaged))


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    require_at_least(args, every=1, num_envs=1)
    set_up_console(NORMAL)
    folder = chosen_run(args)
    cfg = load_config(folder, args.env)
    fill_in(args, cfg)
    require_at_least(args, episodes=1, final_episodes=1)
    register_worlds(cfg.env)
    torch.set_num_threads(1)
    try:
        scores, damaged = play_all(args, folder, cfg)
    except EnvironmentFailed as death:
        print(f"sf-explore-go: {death}", file=sys.stderr)
        return 1
    if not scores:
        raise damaged[0]
    print_table(scores)
    show_evaluations(folder, cfg)
    for error in damaged:
        print(f"sf-explore-go: {error}; the others were evaluated", file=sys.stderr)
    return 2 if damaged else 0
