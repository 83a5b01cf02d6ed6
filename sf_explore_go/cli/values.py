"""`sf-explore-go values`: draw what agents think of every state of one context, beside the optimum."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sf_explore_go.core.arguments import ArgumentParser
from sf_explore_go.core.errors import UsageError
from sf_explore_go.evaluation.arena import Arena, make_player
from sf_explore_go.evaluation.arguments import load_config, splits
from sf_explore_go.evaluation.exact import optimal_actions, optimal_values, shortest_paths
from sf_explore_go.processes.console import NORMAL, set_up_console
from sf_explore_go.reporting.value_map import Opinion, ValueMap, cell_counts
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.names import find_checkpoints
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.training.states import STATES
from sf_explore_go.worlds.base import TRAIN
from sf_explore_go.worlds.registry import world_of
from sf_explore_go.worlds.states import StateTable


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go values", description=__doc__.splitlines()[0])
    parser.add_argument("--experiment", nargs="+", required=True, help="runs in --train_dir, side by side")
    parser.add_argument("--train_dir", type=Path, default=Path("train_dir"), help="folder of all runs")
    parser.add_argument("--split", default="test", help="whose contexts: train or test (test)")
    parser.add_argument("--context", type=int, default=0, help="which context of the set (0)")
    parser.add_argument("--checkpoint", default="latest", help="latest, best or a file")
    parser.add_argument("--out", type=Path, default=Path("values.png"), help="picture to write (values.png)")
    return parser


def table_of(cfg: Any, split: str) -> StateTable:
    table = None if cfg.use_rnn else world_of(cfg.env).state_table(cfg, split)
    if table is None:
        raise UsageError(f"--experiment: its world must be one whose states can be listed, not {cfg.env} ({split})")
    return table


def opinion_of(folder: Path, cfg: Any, args: Any, mine: np.ndarray, table: StateTable) -> Opinion:
    path = find_checkpoints(folder, args.checkpoint)[-1]
    state = read_checkpoint(path, "cpu")
    with Arena(cfg, 1) as arena:
        player = make_player(path, state, arena, args.split, greedy=True)
    values, actions = player.judge(table.observe(mine))
    steps = shortest_paths(table.next_state)
    right = optimal_actions(table.next_state, steps)[mine, actions]
    starts = None
    if STATES in state:  # a milestone does without
        starts = cell_counts(state[STATES]["starts"].numpy(), table_of(cfg, TRAIN))
    return Opinion(values, right, starts)


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    if args.out.suffix not in (".png", ".pdf", ".svg"):
        raise UsageError(f"--out={args.out}: it must end in .png, .pdf or .svg")
    set_up_console(NORMAL)
    torch.set_num_threads(1)
    folders = [args.train_dir / name for name in args.experiment]
    cfgs = [load_config(folder, None) for folder in folders]
    first = cfgs[0]
    splits(first, args.split, several=False)
    table = table_of(first, args.split)
    if any(not np.array_equal(table_of(cfg, args.split).next_state, table.next_state) for cfg in cfgs[1:]):
        raise UsageError("--experiment: the runs must have the same contexts; choose runs of one seed")
    contexts = int(table.places[-1, 0]) + 1
    if not 0 <= args.context < contexts:
        raise UsageError(f"--context={args.context}: it must be from 0 to {contexts - 1}")
    register_worlds(first.env)
    mine = np.flatnonzero(table.places[:, 0] == args.context)
    opinions = {
        name: opinion_of(folder, cfg, args, mine, table)
        for name, folder, cfg in zip(args.experiment, folders, cfgs, strict=True)
    }
    optimum = optimal_values(shortest_paths(table.next_state), first.gamma)[mine]
    title = f"{world_of(first.env).name}: {args.split} context {args.context}"
    args.out.parent.mkdir(parents=True, exist_ok=True)
    value_map = ValueMap(table.places[mine, 1:], table.goals[args.context], table.shape)
    value_map.figure(optimum, opinions, title).savefig(args.out, dpi=120)
    for name, one in opinions.items():
        error = float(np.abs(one.values - optimum).mean())
        print(f"{name}: |V - V*| = {error:.3f}, optimal in {one.right.mean():.0%} of {len(mine)} states")
    print(f"picture: {args.out}")
    return 0
