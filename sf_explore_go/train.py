"""`sf-explore-go train`: parse, register, make the runner, run."""

import sys
from collections.abc import Sequence
from typing import Any

from sample_factory.algo.utils.misc import ExperimentStatus

from sf_explore_go.config import parse_train_args
from sf_explore_go.runtime.runner import ExploreGoParallelRunner, ExploreGoRunner, ExploreGoSerialRunner
from sf_explore_go.worlds import prepare_world, register_worlds

EXIT_INTERRUPTED = 75  # stopped by a signal, saved, can go on: what sysexits.h calls a temporary failure
EXIT_STATUS = {ExperimentStatus.SUCCESS: 0, ExperimentStatus.FAILURE: 1, ExperimentStatus.INTERRUPTED: EXIT_INTERRUPTED}


def make_runner(cfg: Any) -> ExploreGoRunner:
    runner_class = ExploreGoSerialRunner if cfg.serial_mode else ExploreGoParallelRunner
    return runner_class(cfg)


def run(cfg: Any) -> tuple[int, ExploreGoRunner]:
    """Train; returns the exit status and the runner, which knows the final counts."""
    prepare_world(cfg.env)
    register_worlds()
    runner = make_runner(cfg)
    status = runner.init()
    if status == ExperimentStatus.SUCCESS:
        status = runner.run()
    return EXIT_STATUS[status], runner


def main(argv: Sequence[str]) -> int:
    status, runner = run(parse_train_args(argv))
    frames = runner.final_frames
    print(f"{runner.folder}: {frames.total} frames ({frames.explore} explore, {frames.go} go)")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
