"""`sf-explore-go sweep`: print the trainings of a sweep file, run them on this machine, or give them to a scheduler.

sweep FILE --backend=print|local|slurm      the trainings
sweep count FILE                            how many there are
sweep run FILE --index=N                    train number N of them (from 0), for any scheduler: docs/schedulers.md
sweep status FILE                           a table of all runs
sweep cancel FILE                           save and stop; a later sweep resumes the runs
sweep evaluate FILE                         evaluate every finished run
sweep report FILE                           figure and tables of the evaluated runs, in TRAIN_DIR/NAME/report
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from sf_explore_go.core.arguments import ArgumentParser, require_at_least
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.machine import cores
from sf_explore_go.processes.stopping import EARLY
from sf_explore_go.sweep import slurm
from sf_explore_go.sweep.evaluation import evaluate_sweep, report_sweep
from sf_explore_go.sweep.local import LocalSweep, cancel_local, default_parallel
from sf_explore_go.sweep.plan import Resources, Sweep, read_sweep
from sf_explore_go.sweep.single import run_one
from sf_explore_go.sweep.state import RunState, holder, is_locked, lock_file, run_state
from sf_explore_go.sweep.table import table

BACKENDS = ("print", "local", "slurm")
ACTIONS = ("count", "run", "status", "cancel", "evaluate", "report")
ALL = "all"  # no word for it on the command line: print, run or submit the whole sweep


def split_action(argv: Sequence[str]) -> tuple[str, list[str]]:
    """What is asked for, and the words that follow."""
    return (argv[0], list(argv[1:])) if argv and argv[0] in ACTIONS else (ALL, list(argv))


def make_parser(action: str) -> ArgumentParser:
    """The flags of one action."""
    name = "sweep" if action == ALL else f"sweep {action}"
    parser = ArgumentParser(
        prog=f"sf-explore-go {name}", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the sweep, as TOML (launch/*.toml)")
    parser.add_argument("--train_dir", type=Path, default=Path("train_dir"), help="the runs are in TRAIN_DIR/NAME")
    parser.add_argument("--seeds", help="seeds instead of the file's, e.g. 0..4 or 3,7")
    if action == "run":
        parser.add_argument("--index", type=int, required=True, help="which run, from 0, as `sweep FILE` prints them")
    if action == ALL:
        parser.add_argument(
            "--backend", choices=BACKENDS, default="print", help="print only shows the commands (print)"
        )
        parser.add_argument(
            "--gpus", type=int, help="local: GPUs to share among the runs (default: all that torch sees)"
        )
        parser.add_argument(
            "--with_report", action="store_true", help="afterwards evaluate and report (Slurm: in a later job)"
        )
        parser.add_argument(
            "--dry_run", action="store_true", help="Slurm: print the job scripts and submit nothing; needs no Slurm"
        )
        parser.add_argument("--partition", help="Slurm: partition instead of the file's")
        parser.add_argument("--account", help="Slurm: account instead of the file's")
        parser.add_argument("--container", help='Slurm: words before the command, e.g. "apptainer exec --nv image.sif"')
    if action in (ALL, "evaluate"):
        parser.add_argument("--max_parallel", type=int, help="runs at once (default: as many as there are cores for)")
    return parser


def main(argv: Sequence[str]) -> int:
    action, words = split_action(argv)
    args = make_parser(action).parse_args(words)
    if getattr(args, "max_parallel", None) is not None:
        require_at_least(args, max_parallel=1)
    if action == "run":
        EARLY.install()  # reading takes seconds, in which a scheduler may already ask for the end
    try:
        return act(action, args)
    finally:
        if action == "run":
            EARLY.restore()


def act(action: str, args: argparse.Namespace) -> int:
    sweep = read_sweep(args.file, args.train_dir, args.seeds)
    verbs: dict[str, Callable[[Sweep, argparse.Namespace], int]] = {
        ALL: run_all,
        "count": count,
        "run": lambda sweep, args: run_one(sweep, args.index),
        "status": status,
        "cancel": cancel,
        "evaluate": evaluate,
        "report": lambda sweep, args: report_sweep(sweep),
    }
    return verbs[action](sweep, args)


def count(sweep: Sweep, args: argparse.Namespace) -> int:
    print(len(sweep.runs))
    return 0


def run_all(sweep: Sweep, args: argparse.Namespace) -> int:
    if args.dry_run and args.backend != "slurm":
        raise UsageError(f"--dry_run: it needs --backend=slurm, not {args.backend}; the default only prints anyway")
    return {"print": print_commands, "local": run_local, "slurm": submit}[args.backend](sweep, args)


def print_commands(sweep: Sweep, args: argparse.Namespace) -> int:
    """One command per line, ready for a shell."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in sweep.environment.items()]
    for one in sweep.runs:
        print(" ".join([*variables, "sf-explore-go", shlex.join(sweep.train_command(one))]))
    return 0


def run_local(sweep: Sweep, args: argparse.Namespace) -> int:
    if slurm.jobs_at_work(sweep):
        raise UsageError(
            f"{sweep.folder} has jobs in Slurm's queue; wait for them, or run `sf-explore-go sweep cancel`"
        )
    at_once = args.max_parallel or default_parallel(sweep.resources, cores())
    status = LocalSweep(sweep, at_once, gpus_here(args.gpus, sweep.resources), sys.stdout).run()
    if status == 0 and args.with_report:
        status = evaluate_sweep(sweep, at_once) or report_sweep(sweep)
    return status


def gpus_here(asked: int | None, resources: Resources) -> int:
    """How many GPUs to deal out; 0 leaves the choice to each training."""
    if asked is not None:
        if asked < 0:
            raise UsageError(f"--gpus={asked}: it must be a whole number, at least 0")
        return asked if resources.gpus else 0
    import torch

    return torch.cuda.device_count() if resources.gpus else 0


def submit(sweep: Sweep, args: argparse.Namespace) -> int:
    given = {name: getattr(args, name) for name in ("partition", "account", "container", "max_parallel")}
    resources = replace(sweep.resources, **{name: value for name, value in given.items() if value is not None})
    sweep = replace(sweep, resources=resources, folder=sweep.folder.absolute(), file=sweep.file.absolute())
    going = [run.experiment for run in sweep.runs if is_locked(lock_file(sweep, run))]
    if going:
        raise UsageError(f"{sweep.folder}: this machine is training {', '.join(going)}; nothing was submitted")
    if args.dry_run:
        return show_scripts(sweep, args)
    for line in slurm.submit(sweep, with_report=args.with_report, seeds=args.seeds):
        print(line)
    return 0


def show_scripts(sweep: Sweep, args: argparse.Namespace) -> int:
    """What sbatch would get."""
    texts = slurm.dry_run(sweep, with_report=args.with_report, seeds=args.seeds)
    print("".join(texts), end="")
    if not texts:
        print(slurm.nothing_to_submit(sweep), file=sys.stderr)
    return 0


def states(sweep: Sweep) -> list[RunState]:
    """Every run, with what this machine and Slurm say of it."""
    queue = slurm.jobs_at_work(sweep)
    rows = []
    for one in sweep.runs:
        here = "running" if is_locked(lock_file(sweep, one)) else None
        rows.append(run_state(sweep, one, here or queue.get(one.experiment)))
    return rows


def status(sweep: Sweep, args: argparse.Namespace) -> int:
    print("\n".join(table(states(sweep))))
    return 0


def cancel(sweep: Sweep, args: argparse.Namespace) -> int:
    jobs = slurm.cancel(sweep)
    runs = cancel_local(sweep)
    print(f"cancelled: {runs} running here, {len(jobs)} jobs in Slurm; they save first, and a later sweep resumes them")
    elsewhere = [run.experiment for run in sweep.runs if is_locked(path := lock_file(sweep, run)) and not holder(path)]
    if elsewhere:
        print(f"not cancelled: {', '.join(elsewhere)}; another machine trains them, so tell its scheduler")
    return 0


def evaluate(sweep: Sweep, args: argparse.Namespace) -> int:
    return evaluate_sweep(sweep, args.max_parallel or cores())
