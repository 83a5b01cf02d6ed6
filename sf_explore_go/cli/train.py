"""`sf-explore-go train`: parse, register, make the runner, run."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sample_factory.algo.utils.misc import ExperimentStatus
from sample_factory.utils.utils import log

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.monitoring.coverage import CoverageObserver
from sf_explore_go.monitoring.monitor import TrainingMonitor
from sf_explore_go.monitoring.status import StatusWriter
from sf_explore_go.monitoring.summaries import Summaries
from sf_explore_go.monitoring.weights_and_biases import WandbMirror, check_wandb, name_run
from sf_explore_go.offpolicy.arguments import is_dqn
from sf_explore_go.offpolicy.runner import DqnRunner
from sf_explore_go.processes.console import NORMAL, QUIET, VERBOSE, LiveLine, set_up_console
from sf_explore_go.processes.stopping import EARLY
from sf_explore_go.runs.folder import claimed
from sf_explore_go.runs.resume import check_checkpoints
from sf_explore_go.runs.status import (
    EXIT_INTERRUPTED,
    FAILED,
    FINISHED,
    INTERRUPTED,
    read_status,
    write_status,
)
from sf_explore_go.training.environments import prepare_world, register_worlds
from sf_explore_go.training.runner import ExploreGoParallelRunner, ExploreGoSerialRunner
from sf_explore_go.worlds.registry import world_of

AnyRunner = ExploreGoParallelRunner | ExploreGoSerialRunner | DqnRunner
EXIT_STATUS = {ExperimentStatus.SUCCESS: 0, ExperimentStatus.FAILURE: 1, ExperimentStatus.INTERRUPTED: EXIT_INTERRUPTED}
END_STATE = {0: FINISHED, 1: FAILED, EXIT_INTERRUPTED: INTERRUPTED}


def make_runner(cfg: Any) -> AnyRunner:
    if is_dqn(cfg):
        return DqnRunner(cfg)
    runner_class = ExploreGoSerialRunner if cfg.serial_mode else ExploreGoParallelRunner
    return runner_class(cfg)


def run(cfg: Any, line: LiveLine | None = None) -> tuple[int, AnyRunner | None]:
    """Train; returns the exit status and the runner, which knows the final counts. Progress is shown on `line`.

    There is no runner if the run already had all its frames.
    """
    if cfg.with_wandb:
        check_wandb()
        name_run(cfg)
    prepare_world(cfg.env)
    register_worlds(cfg.env)
    with claimed(cfg) as folder:
        if cfg.restart_behavior == "resume" and has_its_budget(cfg, folder):
            return 0, None
        runner = make_runner(cfg)
        status_writer = StatusWriter()
        runner.register_observer(status_writer)
        runner.register_observer(Summaries())
        runner.register_observer(CoverageObserver(world_of(cfg.env), cfg.train_for_env_steps))
        mirror = WandbMirror()
        if cfg.with_wandb:
            runner.register_observer(mirror)
        with TrainingMonitor(cfg, line) as monitor:
            runner.register_observer(monitor)
            status = runner.init()
            if status == ExperimentStatus.SUCCESS:
                status = ExperimentStatus.INTERRUPTED if EARLY.signal is not None else runner.run()
            status_writer.write(runner, END_STATE[EXIT_STATUS[status]])
            monitor.finish(runner, interrupted=status != ExperimentStatus.SUCCESS)
        mirror.finish(EXIT_STATUS[status])
        return EXIT_STATUS[status], runner


def has_its_budget(cfg: Any, folder: Path) -> bool:
    frames = check_checkpoints(cfg, folder, log.warning)
    if frames < cfg.train_for_env_steps:
        return False
    print(f"{folder} has {frames} frames of --train_for_env_steps={cfg.train_for_env_steps}; nothing to do")
    if (status := read_status(folder)) is not None and status.state != FINISHED:  # killed while it ended
        write_status(folder, replace(status, state=FINISHED, frames=frames))
    return True


def resume_command(argv: Sequence[str]) -> str:
    """The same command; if it started over, a last flag takes that back, since the last of two equal flags counts."""
    begins_anew = any(word.split("=")[0] == "--restart_behavior" for word in argv)
    return shlex.join(["sf-explore-go", "train", *argv, *(["--restart_behavior=resume"] if begins_anew else [])])


def main(argv: Sequence[str]) -> int:
    cfg = parse_train_args(argv)
    set_up_console(QUIET if cfg.quiet else VERBOSE if cfg.verbose else NORMAL)
    status, runner = run(cfg, None if cfg.quiet or cfg.verbose else LiveLine())
    if runner is None:
        return status
    frames = runner.final_frames
    if not cfg.quiet:
        print(f"{runner.folder}: {frames.total} frames ({frames.explore} explore, {frames.go} go)")
    if status == EXIT_INTERRUPTED and not cfg.quiet:
        print(f"Stopped and saved. To continue: {resume_command(argv)}")
    if runner.reason_to_end is not None:
        print(f"sf-explore-go: {runner.reason_to_end}", file=sys.stderr)
    return status
