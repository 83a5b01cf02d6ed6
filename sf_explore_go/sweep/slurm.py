"""The Slurm back end: one job array, an array task per run, through `sbatch` itself.

Slurm tells a job step that its time runs out (--signal) or that it is preempted (SIGTERM); the training saves and ends
with status 75, and the job script puts its own job back into the queue. There the same command resumes.
"""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.files import write_json
from sf_explore_go.runs.status import RUNNING
from sf_explore_go.sweep.plan import Resources, Run, Sweep
from sf_explore_go.sweep.state import QUEUED, STOPPED_BY_SIGNAL, exit_file, is_finished, log_file

ANSWER_SECONDS = 60
SAVE_SECONDS = 120  # before the time limit; at most a quarter of it
WORD = re.compile(r"[\w.,:@/+-]*")


def call(*words: str) -> str:
    """A Slurm command's answer; trouble with it is one sentence."""
    try:
        result = subprocess.run(
            words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=ANSWER_SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise UsageError(f"--backend=slurm: this machine has no {words[0]}, so it has no Slurm") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"--backend=slurm: {words[0]} did not respond within {ANSWER_SECONDS} s") from error
    if result.returncode != 0:
        lines = [line.split("error:", 1)[-1].strip() for line in result.stderr.splitlines() if line.strip()]
        raise UsageError(f"--backend=slurm: {words[0]} says: {'; '.join(lines) or f'exit status {result.returncode}'}")
    return result.stdout


# -- submitting ------------------------------------------------------------------------------------------------------


def submit(sweep: Sweep, *, with_report: bool, seeds: str | None) -> list[str]:
    """Submit what has not finished; lines that tell what was done."""
    check_words(sweep.resources)
    check_partition(sweep.resources)
    if jobs_at_work(sweep):
        raise UsageError(f"{sweep.folder} has jobs in the queue; wait for them, or run `sf-explore-go sweep cancel`")
    runs = unfinished(sweep)
    if not runs:
        return [nothing_to_submit(sweep)]
    for folder in (sweep.own_folder / "logs", sweep.own_folder / "exits"):
        folder.mkdir(parents=True, exist_ok=True)
    cancelled_mark(sweep).unlink(missing_ok=True)
    texts = scripts(sweep, runs, with_report=with_report, seeds=seeds)
    for path, text in texts.items():
        path.write_text(text)
    script, *later = texts
    job = call("sbatch", "--parsable", str(script)).strip().split(";")[0]
    record: dict[str, Any] = {"train": job, "runs": [run.experiment for run in runs]}
    write_record(sweep, record)
    lines = [f"job {job}: {len(runs)} runs, script {script}"]
    for script in later:
        record["report"] = call("sbatch", "--parsable", f"--dependency=afterany:{job}", str(script)).strip()
        write_record(sweep, record)
        lines.append(f"job {record['report']}: evaluation and report after it, script {script}")
    return lines


def dry_run(sweep: Sweep, *, with_report: bool, seeds: str | None) -> list[str]:
    """The job scripts that `submit` would submit; asks nothing of Slurm and writes nothing."""
    check_words(sweep.resources)
    runs = unfinished(sweep)
    return list(scripts(sweep, runs, with_report=with_report, seeds=seeds).values()) if runs else []


def unfinished(sweep: Sweep) -> list[Run]:
    return [run for run in sweep.runs if not is_finished(sweep, run)]


def nothing_to_submit(sweep: Sweep) -> str:
    return f"all {len(sweep.runs)} runs have finished; nothing to submit"


def scripts(sweep: Sweep, runs: Sequence[Run], *, with_report: bool, seeds: str | None) -> dict[Path, str]:
    """The job scripts by file, in the order in which they are submitted."""
    texts = {sweep.own_folder / "train.sh": train_script(sweep, runs)}
    if with_report:
        texts[sweep.own_folder / "report.sh"] = report_script(sweep, seeds)
    return texts


def check_words(resources: Resources) -> None:
    """Refuse names that would not be one word of a job script."""
    for name in ("partition", "account"):
        value = getattr(resources, name)
        if not WORD.fullmatch(value):
            raise UsageError(f"--{name}={value}: it must be made of letters, digits and .,:@/+-_")
    for option in resources.sbatch_options:
        if "\n" in option:
            raise UsageError(f"resources.sbatch_options: {option!r} must be one line")


def check_partition(resources: Resources) -> None:
    """Refuse a partition that Slurm does not have."""
    partitions = sorted(set(call("sinfo", "--noheader", "--format=%R").split()))
    for partition in filter(None, resources.partition.split(",")):
        if partition not in partitions:
            raise UsageError(
                f"--partition={partition}: Slurm has no such partition; it must be one of {', '.join(partitions)}"
            )


def header(sweep: Sweep, name: str, output: Path) -> list[str]:
    """The #SBATCH lines that both jobs have."""
    resources = sweep.resources
    options = ["--nodes=1", "--ntasks=1", f"--cpus-per-task={resources.cpus}", f"--mem={memory_mb(resources)}M"]
    options += [f"--job-name={name}", f"--output={output}", "--open-mode=append", f"--time={time_limit(resources)}"]
    options += [f"--{key}={getattr(resources, key)}" for key in ("partition", "account") if getattr(resources, key)]
    return ["#!/bin/bash", *(f"#SBATCH {option}" for option in (*options, *resources.sbatch_options))]


def memory_mb(resources: Resources) -> int:
    return max(1, round(resources.memory_gb * 1024))


def time_limit(resources: Resources) -> str:
    """Slurm counts whole minutes."""
    hours, minutes = divmod(max(1, round(resources.hours * 60)), 60)
    return f"{hours:02d}:{minutes:02d}:00"


def save_seconds(resources: Resources) -> int:
    return int(min(SAVE_SECONDS, resources.hours * 3600 / 4))


def train_script(sweep: Sweep, runs: Sequence[Run]) -> str:
    """The job script of the array: task i trains the i-th of `runs`."""
    resources = sweep.resources
    cap = f"%{resources.max_parallel}" if resources.max_parallel else ""
    lines = header(sweep, sweep.name, sweep.own_folder / "logs" / "slurm-%a.log")
    lines += [f"#SBATCH --array=0-{len(runs) - 1}{cap}", "#SBATCH --requeue"]
    lines += [f"#SBATCH --signal=USR1@{save_seconds(resources)}"]
    if resources.gpus:
        lines.append(f"#SBATCH --gres=gpu:{resources.gpus}")
    lines += ["# written by `sf-explore-go sweep`: task i of the array trains the i-th run", *exports(sweep)]
    lines.append("case $SLURM_ARRAY_TASK_ID in")
    for index, run in enumerate(runs):
        files = f"log={shlex.quote(str(log_file(sweep, run)))} ended={shlex.quote(str(exit_file(sweep, run)))}"
        lines.append(f"  {index}) {files} command=({shlex.join([*program(resources), *sweep.train_command(run)])}) ;;")
    again = "|".join(str(int(status)) for status in STOPPED_BY_SIGNAL if status > 0)
    return "\n".join(
        [
            *lines,
            "esac",
            'rm -f "$ended"',
            # As a job step: Slurm sends its signals to steps, not to the job script.
            f'srun --ntasks=1 --cpus-per-task={resources.cpus} --output="$log" --open-mode=append "${{command[@]}}"',
            "status=$?",
            'echo "$status" > "$ended"',
            f"case $status in {again})",
            f'  [ -e {shlex.quote(str(cancelled_mark(sweep)))} ] || scontrol requeue "$SLURM_JOB_ID" ;;',
            "esac",
            "exit $status",
            "",
        ]
    )


def report_script(sweep: Sweep, seeds: str | None) -> str:
    """Evaluation and report of the sweep, on one node."""
    lines = header(sweep, f"{sweep.name}-report", sweep.own_folder / "logs" / "report.log")
    chosen = [] if seeds is None else [f"--seeds={seeds}"]
    where = [str(sweep.file), f"--train_dir={sweep.folder.parent}", *chosen]
    words = {
        "evaluate": [*program(sweep.resources), "sweep", "evaluate", *where, f"--max_parallel={sweep.resources.cpus}"],
        "report": [*program(sweep.resources), "sweep", "report", *where],
    }
    lines += [*exports(sweep), shlex.join(words["evaluate"]), "evaluated=$?", shlex.join(words["report"])]
    return "\n".join([*lines, "reported=$?", "exit $((evaluated > reported ? evaluated : reported))", ""])


def exports(sweep: Sweep) -> list[str]:
    return [f"export {name}={shlex.quote(value)}" for name, value in sweep.environment.items()]


def program(resources: Resources) -> list[str]:
    """The program on the node; in a container it is the one of the image."""
    if resources.container:
        return [*shlex.split(resources.container), "sf-explore-go"]
    return [sys.executable, "-m", "sf_explore_go"]


# -- what became of it -----------------------------------------------------------------------------------------------


def record_file(sweep: Sweep) -> Path:
    return sweep.own_folder / "slurm.json"


def cancelled_mark(sweep: Sweep) -> Path:
    """While this file is there, a job that is stopped does not requeue itself."""
    return sweep.own_folder / "cancelled"


def write_record(sweep: Sweep, record: dict[str, Any]) -> None:
    write_json(record_file(sweep), record)


def read_record(sweep: Sweep) -> dict[str, Any]:
    try:
        return dict(json.loads(record_file(sweep).read_text()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{record_file(sweep)} cannot be read ({error}); remove it if no job of it is left in the queue"
        ) from error


def jobs_at_work(sweep: Sweep) -> dict[str, str]:
    """experiment -> running or queued, for every array task that Slurm still has"""
    record = read_record(sweep)
    if not record:
        return {}
    states = {}
    for line in squeue(record["train"]):
        job, state = line.split()
        states[record["runs"][int(job.rsplit("_", 1)[1])]] = RUNNING if state in ("RUNNING", "COMPLETING") else QUEUED
    return states


def squeue(job: str) -> list[str]:
    """`JOB_INDEX STATE` of every array task that has not ended."""
    try:
        return call("squeue", "--noheader", "--array", f"--jobs={job}", "--format=%F_%K %T").splitlines()
    except UsageError as error:
        if "Invalid job id" in str(error):  # Slurm forgets jobs some minutes after their end
            return []
        raise


def cancel(sweep: Sweep) -> list[str]:
    """Cancel the jobs of the sweep; their numbers."""
    record = read_record(sweep)
    jobs = [record[kind] for kind in ("train", "report") if kind in record and squeue(record[kind])]
    if jobs:
        cancelled_mark(sweep).touch()
        call("scancel", *jobs)
    return jobs
