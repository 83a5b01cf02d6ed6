"""`sf-explore-go coverage`: measure how much of the map explorers see in full phases, and where the agent starts.

Phase i starts in the same context whatever the explorer, so explorers compare: those that runs have trained, any
explorer that acts by itself, by name, none, with which the agent starts where the episode does, and the oracle, which
knows the map. As in training, the agent takes over after k ~ Uniform{0..K} decisions of a phase.
"""

import json
import re
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.arguments import require_at_least
from sf_explore_go.core.errors import EnvironmentFailed, UsageError
from sf_explore_go.evaluation.arena import Arena
from sf_explore_go.evaluation.coverage import Measured, measure
from sf_explore_go.evaluation.explore import ORACLE, make_explorer
from sf_explore_go.evaluation.ladder import Rung, parse, rungs, settings
from sf_explore_go.explorers.registry import NONE
from sf_explore_go.monitoring.progress import EpisodeCount
from sf_explore_go.processes.console import NORMAL, LiveLine, set_up_console
from sf_explore_go.reporting.ladder import ladder_figure
from sf_explore_go.reporting.records import COVERAGE, GO_STARTS
from sf_explore_go.reporting.tables import write_table
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.worlds.base import World
from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.registry import split_of, world_of

STEPS = 200  # of a phase, where no explore phase says how long
LADDER = "coverage_ladder.png"
FOLDER = Path("coverage")  # for what belongs to no run, or to several


def table_head(width: int, *, oracle: bool) -> str:
    return (
        f"{'explorer':<{width}}  {'phases':>6}  {'decisions':>9}  {'map per phase':>13}  {'95 % interval':>16}"
        f"  {'map together':>12}  {'start cells':>11}{'  oracle starts' if oracle else ''}"
    )


def table_row(row: dict[str, Any], width: int) -> str:
    """One explorer; columns as in docs/training.md."""
    interval = f"{row['low']:.1%} to {row['high']:.1%}"
    return (
        f"{row['explorer']:<{width}}  {row['phases']:>6}  {row['steps']:>9}  {row['per_phase']:>13.1%}  {interval:>16}"
        f"  {row['together']:>12.1%}  {row['start_cells_corrected']:>11.1f}"
        + (f"  {row['oracle_starts']:>13.0%}" if row["oracle_starts"] is not None else "")
    )


def draw(measured: Measured, world: World, path: Path) -> None:
    share = measured.coverage.shares().mean()
    title = f"{measured.name}: {share:.0%} of the map per phase of {measured.steps} decisions"
    figure = world.map_figure(heat=measured.coverage.visits(), title=title, dpi=160.0)
    if figure is not None:
        figure.savefig(path)


def cells_of(cfg: AttrDict) -> CellGrid:
    cells = world_of(cfg.env).cells()
    if cells is None:
        raise UsageError(f"--env={cfg.env}: this world reports no positions, so its coverage cannot be measured")
    return cells


class Stage:
    """The environments in which explorers play, of one configuration at a time."""

    def __init__(self, args: Namespace, on_phase: Callable[[], None]) -> None:
        self._args, self._on_phase = args, on_phase
        self._cfg: AttrDict | None = None
        self._open = ExitStack()

    def measure(self, rung: Rung) -> Measured:
        if rung.cfg is not self._cfg:
            self.close()
            self._cfg = rung.cfg
            self._arena = self._open.enter_context(Arena(rung.cfg, min(self._args.num_envs, self._args.phases)))
        envs = self._arena.envs(split_of(rung.cfg.env))
        explorer = make_explorer(rung.name, rung.folder, rung.cfg, envs[0], "--explorers")
        return measure(
            rung.label,
            explorer,
            envs,
            cells_of(rung.cfg),
            phases=self._args.phases,
            steps=0 if rung.name == NONE else self._args.steps,
            seed=self._args.eval_seed,
            threads=self._arena.threads,
            on_phase=self._on_phase,
        )

    def close(self) -> None:
        self._open.close()


def play(args: Namespace, chosen: Sequence[Rung]) -> Iterator[tuple[Measured, dict[str, Any]]]:
    """What was measured of each explorer, in their order, with its figures. The oracle, if it is one of them, goes
    first, since the others are compared with it."""
    count = EpisodeCount(len(chosen) * args.phases, LiveLine(), "phases")
    stage = Stage(args, count.add_one)
    try:
        oracles = {rung.label: stage.measure(rung) for rung in chosen if rung.name == ORACLE}
        for rung in chosen:
            measured = oracles.get(rung.label) or stage.measure(rung)
            yield measured, measured.row(oracles.get(ORACLE))
    finally:
        count.end()
        stage.close()


def make_folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out={path}: it must be a folder that can be written to ({error.strerror})") from error
    return path


def write(out: Path, world: World, results: Sequence[tuple[Measured, dict[str, Any]]]) -> None:
    """Tables and pictures."""
    everything = [measured for measured, _ in results]
    write_table(out / COVERAGE, [row for _, row in results])
    write_table(out / GO_STARTS, [row for measured in everything for row in measured.start_rows()])
    for measured in everything:
        if measured.steps:
            draw(measured, world, out / f"coverage_{re.sub(r'[^-.A-Za-z0-9]', '_', measured.name)}.png")
    ladder_figure(results).savefig(out / LADDER)


def main(argv: Sequence[str]) -> int:
    args = parse(argv)
    require_at_least(args, phases=1, num_envs=1)
    if args.steps is not None:
        require_at_least(args, steps=1)
    set_up_console(NORMAL)
    folders, cfgs = settings(args)
    register_worlds(cfgs[0].env)
    cells_of(cfgs[0])
    args.steps = args.steps or max(cfg.max_pure_expl_steps for cfg in cfgs) or STEPS
    chosen = rungs(args.explorers, folders, cfgs)
    out = make_folder(args.out or (folders[0] if len(folders) == 1 else FOLDER))
    torch.set_num_threads(1)
    width = max(12, *(len(rung.label) for rung in chosen))
    if not args.json:
        print(table_head(width, oracle=any(rung.name == ORACLE for rung in chosen)), flush=True)
    results = []
    try:
        for measured, row in play(args, chosen):
            results.append((measured, row))
            print(json.dumps(row) if args.json else table_row(row, width), flush=True)
    except EnvironmentFailed as death:
        print(f"sf-explore-go: {death}", file=sys.stderr)
        return 1
    write(out, world_of(cfgs[0].env), results)
    return 0
