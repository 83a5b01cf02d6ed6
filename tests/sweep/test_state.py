"""The table of states, from hand-made runs."""

import io
import os
import subprocess
import sys
import time
from pathlib import Path

from sf_explore_go.runs.status import FAILED, FINISHED, INTERRUPTED, RUNNING, Part, Status, write_status
from sf_explore_go.sweep.local import default_parallel, gpus_of
from sf_explore_go.sweep.plan import Resources, Sweep
from sf_explore_go.sweep.state import (
    exit_file,
    holder,
    is_locked,
    last_error,
    lock_file,
    log_file,
    run_folder,
    run_state,
    try_lock,
    write_holder,
)
from sf_explore_go.sweep.table import LiveTable, table
from tests.sweep.sweeps import run_named, small_sweep


def make_run(sweep: Sweep, experiment: str, state: str, frames: int, budget: int = 600) -> None:
    folder = run_folder(sweep, run_named(sweep, experiment))
    folder.mkdir(parents=True)
    write_status(folder, Status(state, frames, 0, frames, budget, 12.5, 0.0, "here", 1, [Part(0, frames, state)]))


def write_log(sweep: Sweep, experiment: str, text: str) -> None:
    log = log_file(sweep, run_named(sweep, experiment))
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)


def test_states_on_disk(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    make_run(sweep, "k0_seed0", FINISHED, 605)
    make_run(sweep, "k8_seed0", RUNNING, 300)
    make_run(sweep, "k0_seed1", INTERRUPTED, 200)
    write_log(sweep, "k8_seed0", "some\nTraceback (most recent call last):\n  File x\nRuntimeError: no room\nmore\n")
    (run_folder(sweep, sweep.runs[0]) / "evaluation.csv").write_text(
        "frames,split,success_rate\n600,test,0.25\n300,test,0.75\n600,train,1.0\n"
    )
    states = [run_state(sweep, run, None).state for run in sweep.runs]
    assert states == ["finished", "broken", "interrupted", "waiting"]
    assert run_state(sweep, sweep.runs[1], "running").state == "running"
    rows = [run_state(sweep, run, None) for run in sweep.runs]
    lines = [line.split() for line in table(rows)]
    assert lines[1] == ["k0_seed0", "finished", "605", "600", "12", "1.000", "0.250"]
    assert lines[2] == ["k8_seed0", "broken", "300", "600", "12", "RuntimeError:", "no", "room"]
    assert lines[4] == ["k8_seed1", "waiting", "0", "600"]
    assert lines[5][:2] == ["4", "runs:"]


def test_a_larger_budget_makes_a_finished_run_wait_and_an_exit_status_makes_it_failed(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    make_run(sweep, "k0_seed0", FINISHED, 305, budget=300)
    make_run(sweep, "k8_seed0", INTERRUPTED, 305)
    assert [run_state(sweep, run, None).state for run in sweep.runs[:2]] == ["waiting", "interrupted"]
    for run, status in zip(sweep.runs, (2, 143, 75, -9), strict=True):
        exit_file(sweep, run).parent.mkdir(parents=True, exist_ok=True)
        exit_file(sweep, run).write_text(f"{status}\n")
    write_log(sweep, "k0_seed0", "sf-explore-go: --batch_size=7: it must be a multiple of --rollout=5\n")
    rows = [run_state(sweep, run, None) for run in sweep.runs]
    assert [row.state for row in rows] == [FAILED, INTERRUPTED, INTERRUPTED, FAILED]
    assert rows[0].error == "--batch_size=7: it must be a multiple of --rollout=5"
    assert rows[3].error == "it ended with status -9 and left no message"


def test_last_error_picks_the_telling_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for text, error in (
        ("", ""),
        ("all well\n", ""),
        ("[ERROR] learner died\nbye\n", "[ERROR] learner died"),
        ("Traceback (most recent call last):\n  a\nValueError: one\nsf-explore-go: two\n", "two"),
        ("sf-explore-go: one\nTraceback (most recent call last):\n  a.py\nos.FooError: two\n", "os.FooError: two"),
        ("Traceback (most recent call last):\n  File a\n", "an error whose traceback is cut off"),
    ):
        log.write_text(text)
        assert last_error(log) == error
    log.write_bytes(b"\xff" * 100_000 + b"\nsf-explore-go: at the end of much\n")
    assert last_error(log) == "at the end of much"
    assert last_error(tmp_path / "none") == ""


def test_a_lock_is_held_by_the_process_that_got_it_and_ends_with_it(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    path = lock_file(sweep, sweep.runs[0])
    assert not is_locked(path)
    lock = try_lock(path)
    assert lock is not None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock,))
    write_holder(lock, child.pid)
    os.close(lock)
    assert try_lock(path) is None
    assert holder(path) == child.pid
    child.kill()
    child.communicate()
    deadline = time.time() + 10
    while is_locked(path) and time.time() < deadline:
        time.sleep(0.05)
    assert holder(path) is None


def test_off_a_terminal_every_change_is_one_line(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    stream = io.StringIO()
    live = LiveTable(stream)
    for states in (("running", None), ("running", None), ("running", "running")):
        live.show([run_state(sweep, run, state) for run, state in zip(sweep.runs, states, strict=False)])
    assert stream.getvalue().splitlines() == [
        "k0_seed0: running at 0 frames",
        "k8_seed0: waiting at 0 frames",
        "k8_seed0: running at 0 frames",
    ]


def test_gpus_are_dealt_round_robin() -> None:
    assert [gpus_of(slot, 1, 3) for slot in range(5)] == [[0], [1], [2], [0], [1]]
    assert [gpus_of(slot, 2, 4) for slot in range(3)] == [[0, 1], [2, 3], [0, 1]]
    assert gpus_of(0, 2, 1) == [0]
    assert gpus_of(4, 1, 0) == []


def test_as_many_at_once_as_there_are_cores_for() -> None:
    def at_once(cpus: int, cap: int, cores: int) -> int:
        return default_parallel(Resources(cpus=cpus, gpus=0, memory_gb=1, hours=1, max_parallel=cap), cores)

    assert [at_once(4, 0, 16), at_once(4, 3, 16), at_once(16, 0, 2), at_once(1, 8, 2)] == [4, 3, 1, 2]
