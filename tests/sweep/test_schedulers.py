"""The recipes of docs/schedulers.md: what can be run without a cluster is run, the rest is checked."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from sf_explore_go.cli.sweep import make_parser, split_action
from sf_explore_go.runs.status import EXIT_INTERRUPTED, FINISHED, INTERRUPTED, RUNNING, Status, read_status
from sf_explore_go.sweep.plan import Sweep, read_sweep
from sf_explore_go.sweep.state import is_finished, is_locked, lock_file, run_folder
from tests.sweep.sweeps import write
from tests.system_packages import require

SMOKE = "launch/smoke.toml"
KUBERNETES_VERSIONS = ("1.29", "1.33", kubernetes_validate.latest_version())


def recipe(heading: str) -> str:
    """The shell block under a heading of the page."""
    page = Path("docs/schedulers.md").read_text()
    match = re.search(rf"^## {heading}\n```bash\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert match is not None
    return match[1]


def check_command(argv: list[str], index: int) -> None:
    """Words after `sf-explore-go sweep`."""
    action, words = split_action(argv)
    args = make_parser(action).parse_args(words)
    assert (action, str(args.file), args.index) == ("run", SMOKE, index)


def number_of_runs() -> int:
    return len(read_sweep(Path(SMOKE), Path("none")).runs)


# -- GNU parallel ----------------------------------------------------------------------------------------------------


def start_parallel(sweep: Sweep, log: Path) -> subprocess.Popen:
    """The recipe, in a session of its own like a terminal's; TRAIN_DIR is train_dir in the sweep's folder."""
    script = recipe("GNU parallel").replace(SMOKE, sweep.file.name)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(Path.cwd()), "PATH": path}
    with log.open("w") as file:
        return subprocess.Popen(
            ["bash", "-c", script], cwd=sweep.file.parent, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=file, stderr=file,
        )  # fmt: skip


def statuses(sweep: Sweep) -> dict[str, Status]:
    found = {run.experiment: read_status(run_folder(sweep, run)) for run in sweep.runs}
    return {name: status for name, status in found.items() if status is not None}


def going(sweep: Sweep) -> list[str]:
    return [run.experiment for run in sweep.runs if is_locked(lock_file(sweep, run))]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_parallel_is_killed_in_the_middle_and_every_run_finishes_once(tmp_path: Path) -> None:
    require(["parallel"], ["parallel"])
    file = write(tmp_path, train_for_env_steps="train_for_env_steps = 8000\nsave_every_sec = 1")
    sweep = read_sweep(file, tmp_path / "train_dir")
    first = start_parallel(sweep, tmp_path / "first.log")

    def midway() -> bool:
        """Two have finished, and two others train."""
        states = [status.state for status in statuses(sweep).values() if status.frames]
        return states.count(FINISHED) >= 2 and states.count(RUNNING) == 2

    deadline = time.time() + 400
    while not midway():
        assert first.poll() is None, (tmp_path / "first.log").read_text()
        assert time.time() < deadline
        assert len(going(sweep)) <= 2
        time.sleep(0.1)
    done = {run.experiment for run in sweep.runs if is_finished(sweep, run)}
    before = statuses(sweep)
    os.killpg(first.pid, signal.SIGINT)  # Ctrl+C
    first.wait(120)
    wait_until_nothing_runs(sweep)
    stopped = statuses(sweep)
    assert {name for name, status in stopped.items() if status.state == INTERRUPTED} == set(stopped) - done
    assert len(stopped) == 4

    second = start_parallel(sweep, tmp_path / "second.log")
    assert second.wait(400) == 0, (tmp_path / "second.log").read_text()
    for name, status in statuses(sweep).items():
        assert status.state == FINISHED
        assert status.frames >= 8000
        if name in done:
            assert status == before[name]
        else:
            assert [part.state for part in status.parts] == [INTERRUPTED, FINISHED]
            assert status.parts[1].begun_at == stopped[name].frames > 0


def wait_until_nothing_runs(sweep: Sweep) -> None:
    deadline = time.time() + 120
    while going(sweep):
        assert time.time() < deadline
        time.sleep(0.1)


# -- PBS -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 75])
def test_the_pbs_script_calls_one_run_and_ends_as_it_does(status: int, tmp_path: Path) -> None:
    script = recipe("PBS")
    assert f"#PBS -J 0-{number_of_runs() - 1}\n" in script
    program = tmp_path / "sf-explore-go"
    program.write_text(f'#!/bin/bash\npwd\nprintf "%s\\n" "$@"\nexit {status}\n')
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PBS_O_WORKDIR": str(tmp_path), "PBS_ARRAY_INDEX": "2"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    folder, verb, *argv = done.stdout.splitlines()
    assert (folder, verb, done.returncode) == (str(tmp_path), "sweep", status)
    check_command(argv, 2)


# -- Kubernetes ------------------------------------------------------------------------------------------------------


def manifest() -> dict[str, Any]:
    return dict(yaml.safe_load(Path("launch/kubernetes.yaml").read_text()))


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_the_kubernetes_manifest_is_valid(version: str) -> None:
    kubernetes_validate.validate(manifest(), version, strict=True)
    wrong = manifest()
    wrong["spec"]["backoffLimitPerIndexx"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_the_kubernetes_job_has_a_pod_per_run_and_starts_stopped_ones_again() -> None:
    spec = manifest()["spec"]
    assert (spec["completionMode"], spec["completions"]) == ("Indexed", number_of_runs())
    (container,) = spec["template"]["spec"]["containers"]
    verb, *argv = [word.replace("$(JOB_COMPLETION_INDEX)", "3") for word in container["args"]]
    assert verb == "sweep"
    check_command(argv, 3)
    again, *_ = spec["podFailurePolicy"]["rules"]
    assert (again["action"], again["onExitCodes"]["values"]) == ("Ignore", [EXIT_INTERRUPTED])
    assert again["onExitCodes"]["containerName"] == container["name"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"  # what a podFailurePolicy requires
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in spec["template"]["spec"]["volumes"]}


# -- SkyPilot --------------------------------------------------------------------------------------------------------


def test_the_skypilot_task_calls_one_run_and_starts_stopped_ones_again() -> None:
    task = yaml.safe_load(Path("launch/skypilot.yaml").read_text())
    assert task["resources"]["job_recovery"]["recover_on_exit_codes"] == [EXIT_INTERRUPTED]
    words = task["run"].replace("$SWEEP", task["envs"]["SWEEP"]).replace("$INDEX", "1").split()
    assert words[:2] == [".venv/bin/sf-explore-go", "sweep"]
    check_command(words[2:], 1)
    assert f"seq 0 {number_of_runs() - 1})" in recipe("SkyPilot")
