"""Evaluation and report of a whole sweep, through the verbs that do it for one run."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from sf_explore_go.core.errors import UsageError
from sf_explore_go.sweep.local import PROGRAM
from sf_explore_go.sweep.plan import Run, Sweep
from sf_explore_go.sweep.state import is_finished, last_error, run_folder


def evaluate_sweep(sweep: Sweep, at_once: int) -> int:
    """Evaluate every finished run; 0 if all runs of the sweep have been evaluated."""
    finished = [run for run in sweep.runs if is_finished(sweep, run)]
    if not finished:
        raise UsageError(f"{sweep.folder} has no finished run of this sweep; train first")
    (sweep.own_folder / "logs").mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(at_once) as pool:
        errors = dict(zip(finished, pool.map(lambda run: _evaluate(sweep, run), finished), strict=True))
    for run in sweep.runs:
        word = f"not evaluated ({errors[run]})" if errors.get(run) else "evaluated" if run in errors else "not finished"
        print(f"{run.experiment}: {word}")
    return 0 if len(finished) == len(sweep.runs) and not any(errors.values()) else 1


def _evaluate(sweep: Sweep, run: Run) -> str:
    """The error, or nothing."""
    log = sweep.own_folder / "logs" / f"{run.experiment}.evaluate.log"
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | dict(sweep.environment)  # many at once: one thread each
    with log.open("wb") as file:
        words = [*PROGRAM, *sweep.evaluate_command(run)]
        status = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment, check=False
        ).returncode
    return "" if status == 0 else last_error(log) or f"exit status {status}, see {log}"


def report_sweep(sweep: Sweep) -> int:
    """Figure and tables of the finished and evaluated runs; 0 if those are all."""
    from sf_explore_go.reporting.report import report

    ready = [run for run in sweep.runs if is_finished(sweep, run)]
    folders = [run_folder(sweep, run) for run in ready if (run_folder(sweep, run) / "evaluation.csv").is_file()]
    if not folders:
        raise UsageError(f"{sweep.folder} has no evaluated run of this sweep; run `sf-explore-go sweep evaluate`")
    status = report([*map(str, folders), f"--out={sweep.folder / 'report'}", *sweep.report_flags])
    missing = len(sweep.runs) - len(folders)
    if missing:
        print(
            f"{missing} of {len(sweep.runs)} runs are not in the report: not finished, or not evaluated",
            file=sys.stderr,
        )
    return status or int(missing > 0)
