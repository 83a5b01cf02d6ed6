"""No engine process, shared-memory file or folder is left, however the process that used them ends.

Other processes on the machine may run engines, so each test looks only at those that its own process named.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from sf_explore_go.worlds.doom.env import MyWayHomeEnv
from sf_explore_go.worlds.doom.janitor import JANITOR, Janitor

ROOT = Path(__file__).parents[3]
SHARED_MEMORY = Path("/dev/shm")

USER = """
import json, os, signal, subprocess, sys, threading, time
from sf_explore_go.worlds.doom.env import MyWayHomeEnv
from sf_explore_go.worlds.doom.janitor import JANITOR

signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs inherit as ignored

def report(*envs):
    engines = [env._engine for env in envs]
    print(json.dumps({
        "pids": [engine.pid for engine in engines],
        "instances": [engine._game.get_instance_id() for engine in engines],
        "folders": [str(engine._folder) for engine in engines],
        "helper": JANITOR._helper.pid,
    }), flush=True)

def make():
    env = MyWayHomeEnv()
    env.reset(seed=0)
    env.step(3)
    return env
"""

ENDS = {
    "close": "env = make(); report(env); env.close(); time.sleep(600)",
    "garbage": "env = make(); report(env); del env; time.sleep(600)",
    "end of program": "env = make(); report(env)",
    "exception": "env = make(); report(env); raise RuntimeError('unforeseen')",
    "sys.exit in a function": "def f():\n    env = make(); report(env); sys.exit(3)\nf()",
    "os._exit": "env = make(); report(env); os._exit(1)",
    "several engines": "envs = [make(), make()]; report(*envs); os._exit(1)",
    "engines in threads": """
envs = []
threads = [threading.Thread(target=lambda: envs.append(make())) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
report(*envs); os._exit(1)
""",
    "dead engine": "env = make(); report(env); os.kill(env._engine.pid, 9); os._exit(1)",
    "stopped engine": "env = make(); report(env); os.kill(env._engine.pid, signal.SIGSTOP); env.close(); os._exit(1)",
}


def start(program: str, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", USER + program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    output = subprocess.PIPE
    return subprocess.Popen(command, cwd=cwd, env=environment, stdout=output, stderr=output, text=True, **options)


def read_report(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline()
    assert line, process.stderr.read()
    return json.loads(line)


def left_behind(report: dict[str, Any]) -> list[str]:
    left = [f"engine {pid}" for pid in report["pids"] if is_running(pid)]
    left += [folder for folder in report["folders"] if Path(folder).exists()]
    for instance in report["instances"]:
        left += [str(path) for path in SHARED_MEMORY.glob(f"ViZDoom*{instance}")]
    return left


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def assert_nothing_left(report: dict[str, Any]) -> None:
    assert wait_until(lambda: not left_behind(report)), left_behind(report)


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left(end: str, tmp_path: Path) -> None:
    process = start(ENDS[end], tmp_path)
    try:
        report = read_report(process)
        assert_nothing_left(report)
    finally:
        process.kill()
        process.communicate(timeout=20)
    assert wait_until(lambda: not is_running(report["helper"])), "the helper ends with its parent"
    assert list(tmp_path.iterdir()) == [], "nothing is written into the working directory"


def test_a_working_directory_that_cannot_be_written() -> None:
    process = start("env = make(); report(env); env.close()", Path("/proc"))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP, signal.SIGSEGV])
def test_nothing_is_left_after_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    process = start("env = make(); report(env); time.sleep(600)", tmp_path)
    report = read_report(process)
    assert len(left_behind(report)) == 1 + 1 + 3, "an engine, its folder and three shared-memory files"
    process.send_signal(number)
    process.communicate(timeout=20)
    assert_nothing_left(report)
    assert wait_until(lambda: not is_running(report["helper"]))


def test_nothing_is_left_after_the_whole_process_group_is_killed(tmp_path: Path) -> None:
    process = start("env = make(); report(env); time.sleep(600)", tmp_path, start_new_session=True)
    report = read_report(process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=20)
    assert_nothing_left(report)


def test_nothing_is_left_when_a_forked_child_lives_on(tmp_path: Path) -> None:
    """The child holds the helper's pipe open, so only the parent's end can tell the helper."""
    program = """
env = make(); report(env)
child = os.fork()
if child == 0: time.sleep(600)
print(child, flush=True)
time.sleep(600)
"""
    process = start(program, tmp_path)
    report = read_report(process)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    try:
        process.kill()
        process.wait(timeout=20)
        assert_nothing_left(report)
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1])
def test_nothing_is_left_when_the_process_dies_while_its_engine_starts(
    delay: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = start("make(); time.sleep(600)", tmp_path)
    assert wait_until(lambda: any(tmp_path.glob("sf_explore_go_doom_*")))
    time.sleep(delay)
    process.kill()
    process.communicate(timeout=20)
    assert wait_until(lambda: not any(tmp_path.glob("sf_explore_go_doom_*")))
    assert wait_until(lambda: not engines_in(tmp_path)), engines_in(tmp_path)


def test_a_helper_that_cannot_run_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    janitor = Janitor()
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.warns(UserWarning, match="a crash would leave engines running"):
        janitor.guard(Path("/no/such/folder"))
    janitor.release(Path("/no/such/folder"))


def engines_in(folder: Path) -> list[int]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "+viz_instance_id" in words and any(word.startswith(str(folder)) for word in words):
            found.append(process.pid)
    return found


def test_pipes_of_the_user_are_not_held_open(tmp_path: Path) -> None:
    """`command | tail` must end with the command, even if it leaves without a word."""
    process = start("env = make(); report(env); os._exit(1)", tmp_path)
    begin = time.monotonic()
    process.communicate(timeout=30)
    assert time.monotonic() - begin < 30


def test_ctrl_c_does_not_reach_the_engine(tmp_path: Path) -> None:
    """Workers of Sample Factory ignore it and stop in their own time; their engines must still be there then."""
    program = """
signal.signal(signal.SIGINT, signal.SIG_IGN)
env = make(); report(env)
sys.stdin.readline()
for _ in range(20): assert not env.step(3)[3]
print("still playing", flush=True)
"""
    process = start(program, tmp_path, start_new_session=True, stdin=subprocess.PIPE)
    report = read_report(process)
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.2)
    output, errors = process.communicate("go\n", timeout=30)
    assert output == "still playing\n", errors
    assert_nothing_left(report)


def test_a_forked_child_leaves_its_parents_engine_alone(tmp_path: Path) -> None:
    program = """
import warnings
env = make(); report(env)
sys.stdout.flush()
child = os.fork()
if child == 0:
    warnings.simplefilter("ignore")
    assert env.step(3)[3], "in the child the engine counts as dead"
    env.reset(seed=1)
    assert env._engine.pid is not None
    assert not env.step(3)[3], "and the child has one of its own"
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
for _ in range(10): assert not env.step(3)[3]
print("still playing", flush=True)
"""
    process = start(program, tmp_path)
    report = read_report(process)
    output, errors = process.communicate(timeout=60)
    assert output == "still playing\n", errors
    assert process.returncode == 0, errors
    assert_nothing_left(report)


def test_a_killed_helper_is_replaced() -> None:
    env = MyWayHomeEnv()
    try:
        env.reset(seed=0)
        assert JANITOR._helper is not None
        first = JANITOR._helper
        os.kill(first.pid, signal.SIGKILL)
        first.wait(timeout=10)
        other = MyWayHomeEnv()
        other.reset(seed=0)
        assert JANITOR._helper is not None
        assert JANITOR._helper.pid != first.pid
        assert is_running(JANITOR._helper.pid)
        other.close()
    finally:
        env.close()


def test_sixteen_processes_at_once_on_an_empty_cache(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SF_EXPLORE_GO_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", USER + "env = make(); report(env)"]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe, text=True) for _ in range(16)
    ]
    outputs = [process.communicate(timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0] * 16, outputs
    for output, _ in outputs:
        assert_nothing_left(json.loads(output))
