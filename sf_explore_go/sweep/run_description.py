"""A sweep file for Sample Factory's own launcher.

    SF_EXPLORE_GO_SWEEP=launch/my_way_home.toml \\
        python -m sample_factory.launcher.run --run=sf_explore_go.sweep.run_description --backend=processes

Its names and folders are Sample Factory's: TRAIN_DIR/NAME/ARM_/00_ARM_see_0 and so on.
"""

import os
from pathlib import Path
from typing import Any

from sample_factory.launcher.run_description import Experiment, ParamGrid, RunDescription

from sf_explore_go.core.errors import UsageError
from sf_explore_go.sweep.plan import Sweep, read_sweep

VARIABLE = "SF_EXPLORE_GO_SWEEP"


def run_description(file: Path) -> RunDescription:
    """One experiment per arm, its seeds as Sample Factory's parameter grid."""
    sweep = read_sweep(file, Path("train_dir"))
    arms = dict.fromkeys(run.arm for run in sweep.runs)
    return RunDescription(sweep.name, experiments=[_experiment(sweep, arm) for arm in arms])


def _experiment(sweep: Sweep, arm: str) -> Experiment:
    runs = [run for run in sweep.runs if run.arm == arm]
    flags = [word for word in runs[0].flags if not word.startswith("--seed=")]
    if spaced := [word for word in flags if " " in word]:
        raise UsageError(
            f"{sweep.file}: {spaced[0]!r} must have no space; Sample Factory's launcher splits commands there"
        )
    command = " ".join(["python", "-m", "sf_explore_go", "train", *flags])
    seeds = ParamGrid([("seed", [run.seed for run in runs])]).generate_params(randomize=False)
    return Experiment(arm, command, seeds, env_vars=dict(sweep.environment))


def __getattr__(name: str) -> Any:
    """`RUN_DESCRIPTION`, which the launcher looks for, made of the file that the environment names."""
    if name != "RUN_DESCRIPTION":
        raise AttributeError(name)
    if VARIABLE not in os.environ:
        raise UsageError(f"{VARIABLE} is not set; it must name a sweep file, such as launch/my_way_home.toml")
    return run_description(Path(os.environ[VARIABLE]))
