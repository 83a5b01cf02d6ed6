"""`sf-explore-go coverage`: measure how much of the map an explorer sees in full phases, and where the agent starts.

Phase i starts in the same context whatever the explorer, so explorers compare: the one that a run has trained, any
explorer that acts by itself, by name, and none, with which the agent starts where the episode does. As in training, the
agent takes over after k ~ Uniform{0..K} decisions of a phase.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.arguments import ArgumentParser, require_at_least
from sf_explore_go.core.errors import UsageError
from sf_explore_go.evaluation.arguments import load_config
from sf_explore_go.evaluation.coverage import Measured, measure
from sf_explore_go.evaluation.explore import TRAINED, explorer_checkpoints, make_explorer
from sf_explore_go.explorers.registry import NONE
from sf_explore_go.processes.console import NORMAL, set_up_console
from sf_explore_go.reporting.records import COVERAGE, GO_STARTS
from sf_explore_go.reporting.tables import write_table
from sf_explore_go.runs.pretrained import add_run_arguments, chosen_run
from sf_explore_go.training.environments import prepare_world, register_worlds
from sf_explore_go.worlds.base import World
from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.registry import world_of

STEPS = 200  # of a phase, where the run has no explore phase that says how long


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go coverage", description=__doc__.splitlines()[0])
    add_run_arguments(parser)
    parser.add_argument(
        "--explorers",
        nargs="+",
        help="trained (the run's own), random, none, module:Class (trained if the run has one, random and none)",
    )
    parser.add_argument("--phases", type=int, default=200, help="explore phases per explorer (200)")
    parser.add_argument("--steps", type=int, help="decisions per phase (the run's K; 200 for a baseline)")
    parser.add_argument("--eval_seed", type=int, default=0, help="seed of contexts and random actions (0)")
    parser.add_argument("--out", type=Path, help="folder for the CSVs and the heat maps (default: the run's)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per explorer instead of a table")
    return parser


def table_head() -> str:
    return (
        f"{'explorer':<12}  {'phases':>6}  {'decisions':>9}  {'map per phase':>13}  {'95 % interval':>16}"
        f"  {'map together':>12}  {'start cells':>11}"
    )


def table_row(row: dict[str, Any]) -> str:
    """One explorer; columns as in docs/training.md."""
    interval = f"{row['low']:.1%} to {row['high']:.1%}"
    return (
        f"{row['explorer']:<12}  {row['phases']:>6}  {row['steps']:>9}  {row['per_phase']:>13.1%}  {interval:>16}"
        f"  {row['together']:>12.1%}  {row['start_cells']:>11.1f}"
    )


def draw(measured: Measured, world: World, path: Path) -> None:
    row = measured.row()
    title = f"{measured.name}: {row['per_phase']:.0%} of the map per phase of {measured.steps} decisions"
    figure = world.map_figure(heat=measured.coverage.visits(), title=title, dpi=160.0)
    if figure is not None:
        figure.savefig(path)


def cells_of(cfg: AttrDict) -> CellGrid:
    cells = world_of(cfg.env).cells()
    if cells is None:
        raise UsageError(f"--env={cfg.env}: this world reports no positions, so its coverage cannot be measured")
    return cells


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    require_at_least(args, phases=1)
    if args.steps is not None:
        require_at_least(args, steps=1)
    set_up_console(NORMAL)
    folder = chosen_run(args)
    cfg = load_config(folder, args.env)
    register_worlds(cfg.env)
    cells = cells_of(cfg)
    torch.set_num_threads(1)
    out = args.out or folder
    out.mkdir(parents=True, exist_ok=True)
    full = args.steps or cfg.max_pure_expl_steps or STEPS
    prepare_world(cfg.env)
    env = make_env_func_non_batched(cfg, AttrDict(worker_index=0, vector_index=0, env_id=0))
    rows, starts = [], []
    names = args.explorers or [*([TRAINED] if explorer_checkpoints(folder) else []), "random", NONE]
    try:
        explorers = {name: make_explorer(name, folder, cfg, env, "--explorers") for name in names}
        if not args.json:
            print(table_head())
        for name, explorer in explorers.items():
            label, steps = (str(cfg.explorer) if name == TRAINED else name), (0 if name == NONE else full)
            measured = measure(label, explorer, env, cells, phases=args.phases, steps=steps, seed=args.eval_seed)
            rows.append(measured.row())
            starts += measured.start_rows()
            print(json.dumps(rows[-1]) if args.json else table_row(rows[-1]), flush=True)
            if name != NONE:
                draw(measured, world_of(cfg.env), out / f"coverage_{re.sub(r'[^-.A-Za-z0-9]', '_', label)}.png")
    finally:
        env.close()
    write_table(out / COVERAGE, rows)
    write_table(out / GO_STARTS, starts)
    return 0
