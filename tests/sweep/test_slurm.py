"""The Slurm back end: job scripts by hand, and a real Slurm that runs a sweep, preempts it and resumes it."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sf_explore_go.cli.sweep import main
from sf_explore_go.core.errors import UsageError
from sf_explore_go.runs.status import FINISHED, INTERRUPTED, RUNNING, Status, read_status
from sf_explore_go.sweep import slurm
from sf_explore_go.sweep.plan import Resources, Sweep
from tests.e2e.cli import sf_explore_go
from tests.shared_memory import SharedMemoryWatch
from tests.sweep import cluster
from tests.sweep.sweeps import small_sweep, write

EXPERIMENTS = ("k0_seed0", "k50_seed0", "k0_seed1", "k50_seed1")


def with_resources(sweep: Sweep, **values: object) -> Sweep:
    return replace(sweep, resources=replace(sweep.resources, **values))  # type: ignore[arg-type]


def test_job_script(tmp_path: Path) -> None:
    sweep = with_resources(
        small_sweep(tmp_path),
        cpus=16,
        gpus=1,
        memory_gb=1.5,
        hours=2.25,
        max_parallel=3,
        partition="gpu",
        account="lab",
        sbatch_options=("--qos=long",),
    )
    script = slurm.train_script(sweep, sweep.runs[1:])
    options = re.findall(r"^#SBATCH (.*)$", script, re.MULTILINE)
    for option in (
        "--cpus-per-task=16", "--mem=1536M", "--time=02:15:00", "--array=0-2%3", "--requeue", "--signal=USR1@120",
        "--gres=gpu:1", "--partition=gpu", "--account=lab", "--qos=long", "--open-mode=append",
    ):  # fmt: skip
        assert option in options
    assert script.startswith("#!/bin/bash\n#SBATCH")
    path = tmp_path / "script"
    path.write_text(script)
    subprocess.run(["bash", "-n", str(path)], check=True)
    assert slurm.save_seconds(Resources(cpus=1, gpus=0, memory_gb=1, hours=0.05)) == 45
    inside = slurm.train_script(with_resources(sweep, container="apptainer exec --nv 'my image.sif'"), sweep.runs)
    assert "command=(apptainer exec --nv 'my image.sif' sf-explore-go train --env=illustrative_train" in inside


@pytest.mark.parametrize(("status", "requeued"), [(75, True), (143, True), (138, True), (0, False), (1, False)])
@pytest.mark.parametrize("cancelled", [False, True])
def test_the_script_requeues_what_was_stopped(tmp_path: Path, status: int, requeued: bool, cancelled: bool) -> None:
    """The script itself, with functions in place of Slurm's two commands."""
    sweep = small_sweep(tmp_path)
    (sweep.own_folder / "exits").mkdir(parents=True)
    if cancelled:
        slurm.cancelled_mark(sweep).touch()
    fakes = f'srun() {{ echo "${{@: -1}}"; return {status}; }}; scontrol() {{ echo "$@"; }};'
    script = fakes + slurm.train_script(sweep, sweep.runs)
    environment = os.environ | {"SLURM_ARRAY_TASK_ID": "2", "SLURM_JOB_ID": "77"}
    result = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == status
    expected = ["--experiment=k0_seed1"] + ["requeue 77"] * (requeued and not cancelled)
    assert result.stdout.splitlines() == expected
    assert (sweep.own_folder / "exits" / "k0_seed1").read_text() == f"{status}\n"


def test_without_slurm_it_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").symlink_to(str(shutil.which("git")))  # Sample Factory wants it where there is a .git
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    file = write(tmp_path)
    with pytest.raises(UsageError, match=r"^--backend=slurm: this machine has no sinfo, so it has no Slurm$"):
        main([str(file), "--backend=slurm", f"--train_dir={tmp_path / 'runs'}"])
    assert not (tmp_path / "runs").exists()


# -- a real one ------------------------------------------------------------------------------------------------------


@pytest.fixture
def real_slurm(tmp_path: Path) -> Iterator[cluster.Cluster]:
    cluster.require_slurm()
    watch = SharedMemoryWatch(str(tmp_path / "slurm"))  # stands in SLURM_CONF, which all jobs see
    with watch.looking(), cluster.slurm(tmp_path / "slurm") as one:
        yield one
    watch.nothing_is_left(within=10)


def sweep_command(real_slurm: cluster.Cluster, *argv: str) -> subprocess.CompletedProcess[str]:
    return sf_explore_go("sweep", *argv, environment={"SLURM_CONF": real_slurm.environment["SLURM_CONF"]})


def statuses(folder: Path) -> dict[str, Status]:
    found = {name: read_status(folder / name) for name in EXPERIMENTS}
    return {name: status for name, status in found.items() if status is not None}


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_a_sweep_on_slurm_is_preempted_resumes_and_ends_exactly(real_slurm: cluster.Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "smoke"
    file = tmp_path / "smoke.toml"  # with more frames, so that no run ends before it is preempted
    file.write_text(Path("launch/smoke.toml").read_text() + "\n[flags]\ntrain_for_env_steps = 150_000\n")
    where = (str(file), f"--train_dir={tmp_path}")

    refused = sweep_command(real_slurm, *where, "--backend=slurm", "--partition=moon")
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].startswith("sf-explore-go: --partition=moon: Slurm has no such partition")
    assert "Traceback" not in refused.stderr
    assert not folder.exists()
    assert not real_slurm.queue()

    submitted = sweep_command(real_slurm, *where, "--backend=slurm", "--partition=low", "--with_report")
    assert submitted.returncode == 0, submitted.stderr
    assert len(real_slurm.queue()) == 5  # an array of four, and the job that depends on it
    again = sweep_command(real_slurm, *where, "--backend=slurm", "--partition=low")
    assert again.returncode == 2
    assert "has jobs in the queue" in again.stderr

    # preemption for real: a job of a higher tier wants the whole node in the middle of the first runs
    def in_the_middle() -> list[str]:
        return [name for name, s in statuses(folder).items() if s.state == RUNNING and 8_000 < s.frames < 35_000]

    cluster.wait_for(in_the_middle, "run in the middle", 600)
    victims = in_the_middle()
    urgent = real_slurm.run(
        "sbatch", "--parsable", "--partition=high", "--exclusive", "--output=/dev/null", "--wrap=sleep 1"
    ).strip()
    cluster.wait_for(
        lambda: (
            f"{urgent}_N/A RUNNING" not in real_slurm.queue()
            and INTERRUPTED in {statuses(folder)[name].state for name in victims}
        ),
        "interrupted run",
        300,
    )
    stopped = {name: statuses(folder)[name] for name in victims if statuses(folder)[name].state == INTERRUPTED}
    assert stopped

    def all_go_on() -> bool:
        table = sweep_command(real_slurm, "status", *where).stdout
        return all(re.search(rf"^{name} +(queued|running) ", table, re.MULTILINE) for name in EXPERIMENTS)

    cluster.wait_for(all_go_on, "stopped run in the queue again", 60)

    cluster.wait_for(lambda: not real_slurm.queue(), "end of all jobs", 1500)
    final = statuses(folder)
    assert {status.state for status in final.values()} == {FINISHED}
    assert len(final) == 4
    for name, status in final.items():
        newest = max((folder / name / "checkpoint_p0").glob("checkpoint_*.pth"), key=lambda path: path.stat().st_mtime)
        frames = torch.load(newest, weights_only=True)["frames"]
        assert frames == [status.explore_frames, status.go_frames]
        assert sum(frames) == status.frames >= 150_000
        begun, ended = [p.begun_at for p in status.parts], [p.ended_at for p in status.parts]
        assert begun == [0, *ended[:-1]]
        assert ended[-1] == status.frames
    for name, status in stopped.items():
        assert len(final[name].parts) >= 2
        assert final[name].parts[: len(status.parts)] == status.parts
        assert status.frames > 8_000
    rows = sweep_command(real_slurm, "status", *where).stdout.splitlines()
    assert [row.split()[:2] for row in rows[1:5]] == [[name, "finished"] for name in EXPERIMENTS]
    assert all(re.search(r"\d\.\d{3} +\d\.\d{3}$", row) for row in rows[1:5])
    assert (folder / "report/figure.png").read_bytes().startswith(b"\x89PNG")
    assert sweep_command(real_slurm, "report", *where).returncode == 0
    nothing_left = sweep_command(real_slurm, *where, "--backend=slurm", "--partition=low")
    assert nothing_left.stdout.strip() == "all 4 runs have finished; nothing to submit"
    assert not real_slurm.queue()


@pytest.mark.slow
def test_cancelled_jobs_save_and_do_not_come_back(real_slurm: cluster.Cluster, tmp_path: Path) -> None:
    file = write(tmp_path, train_for_env_steps="train_for_env_steps = 1_000_000_000", seeds="seeds = [0]")
    where = (str(file), f"--train_dir={tmp_path}")
    submitted = sweep_command(real_slurm, *where, "--backend=slurm")
    assert submitted.returncode == 0, submitted.stderr
    folders = [tmp_path / "small" / name for name in ("k0_seed0", "k8_seed0")]

    def both_work() -> bool:
        return all((status := read_status(folder)) is not None and status.frames for folder in folders)

    cluster.wait_for(both_work, "frames of both runs", 300)
    cancelled = sweep_command(real_slurm, "cancel", *where)
    assert cancelled.stdout.startswith("cancelled: 0 running here, 1 jobs in Slurm"), cancelled.stderr
    cluster.wait_for(lambda: not real_slurm.queue(), "empty queue", 120)
    assert [status.state for status in map(read_status, folders) if status is not None] == [INTERRUPTED] * 2
    assert "2 runs: 2 interrupted" in sweep_command(real_slurm, "status", *where).stdout
