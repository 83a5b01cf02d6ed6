"""Small sweep files for tests."""

from pathlib import Path

from sf_explore_go.sweep.plan import Run, Sweep, read_sweep

GRID = """
name = "small"
env = "illustrative_train"
preset = "illustrative"
seeds = [0, 1]

[flags]
train_for_env_steps = 600
milestone_step_freq = 300

[arms.k0]
max_pure_expl_steps = 0

[arms.k8]
max_pure_expl_steps = 8

[evaluate]
checkpoint = "latest"
episodes = 4

[resources]
cpus = 1
gpus = 0
memory_gb = 2
hours = 1
"""


def write(folder: Path, text: str = GRID, **replacements: str) -> Path:
    """The sweep as a file, with some of its lines replaced (key=new line)."""
    lines = [replacements.get(line.split(" = ")[0], line) for line in text.splitlines()]
    path = folder / "sweep.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def small_sweep(folder: Path) -> Sweep:
    return read_sweep(write(folder), folder / "runs")


def run_named(sweep: Sweep, experiment: str) -> Run:
    return next(run for run in sweep.runs if run.experiment == experiment)
