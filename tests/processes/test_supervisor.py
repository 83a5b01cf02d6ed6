"""The supervisor of a run, apart from a run."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.processes import supervisor, watchdog
from sf_explore_go.processes.supervisor import Supervisor
from sf_explore_go.runs.checkpoints import FORMAT, save_atomically
from sf_explore_go.runs.resume import can_go_on

BLOCKED_MAIN_THREAD = """
import os, signal, subprocess, threading
from pathlib import Path
from types import SimpleNamespace
from sf_explore_go.processes import supervisor

def component(name, number):
    process = subprocess.Popen(["sleep", "100"])
    if number:
        process.send_signal(number)
    alive = lambda: process.poll() is None
    its = SimpleNamespace(pid=process.pid, name=name, is_alive=alive, exitcode=-9, kill=process.kill)
    return SimpleNamespace(object_id=name, event_loop=SimpleNamespace(process=its))

supervisor.LOCK_SECONDS = 1.0
runner = SimpleNamespace(
    components_to_stop=[component(*one) for one in {workers}],
    stop_request=SimpleNamespace(signal={signal}, has_come=bool({signal})),
    cfg=SimpleNamespace(num_policies=1, load_checkpoint_kind="latest"),
    folder=Path({folder!r}),
    tell_of_loss=lambda state: print(state, flush=True),
)
supervisor.Supervisor(runner, hang_timeout={hang_timeout}).begin()
if {limited}:
    threading.Timer(4, lambda: (print("still here", flush=True), os._exit(0))).start()
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""
ALIVE, KILLED, STOPPED = '("one", None)', '("two", signal.SIGKILL)', '("three", signal.SIGSTOP)'


class Component:
    """A worker with a process that is, or is not, alive."""

    def __init__(self, name: str, exitcode: int | None) -> None:
        self.object_id = name
        process = SimpleNamespace(is_alive=lambda: exitcode is None, exitcode=exitcode, name=name)
        self.event_loop = SimpleNamespace(process=process)


class Clock:
    """Turned by hand; stands where the watchdogs look at the time."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


def runner_of(*components: Component) -> Any:
    names = {component.object_id for component in components}
    counted = SimpleNamespace(made=0)
    frames = SimpleNamespace(total=lambda: counted.made, restored=lambda: SimpleNamespace(total=0))
    return SimpleNamespace(
        components_to_stop=list(components),
        sampling_components=set(),
        send_signals_to={"stop": set(names), "save": names},
        counted=counted,
        buffer_mgr=SimpleNamespace(frames=frames, policy_versions=torch.zeros(2)),
    )


def write_checkpoint(folder: Path) -> Path:
    path = folder / "checkpoint_p0" / "checkpoint_000000001_64.pth"
    path.parent.mkdir()
    save_atomically({"model": {}, "frames": [0, 64], "format": FORMAT}, path)
    return path


def blocked(folder: Path, *workers: str, signal: int | None = None, hang_timeout: float = 1.0) -> Any:
    """A main thread that waits for a lock; a run without a limit is left to itself for four seconds."""
    code = BLOCKED_MAIN_THREAD.format(
        signal=signal,
        workers=f"[{', '.join(workers)}]",
        folder=str(folder),
        hang_timeout=hang_timeout,
        limited=hang_timeout == 0,
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize(
    ("signal", "workers", "saved", "status"),
    [
        (None, (), False, 1),
        (None, (ALIVE, STOPPED), True, 75),  # it hangs, and can go on
        (None, (ALIVE, KILLED), True, 1),  # it has lost a worker, which is no hang
        (15, (), False, 75),
    ],
)
def test_a_blocked_main_thread_ends_the_run(
    tmp_path: Path, signal: int | None, workers: tuple[str, ...], saved: bool, status: int
) -> None:
    if saved:
        write_checkpoint(tmp_path)
    result = blocked(tmp_path, *workers, signal=signal)
    assert result.returncode == status
    assert result.stderr.splitlines()[0].count("the main process has not responded for 1 s") == 1
    assert result.stdout == {1: "failed\n", 75: "interrupted\n"}[status]  # what status.json is told


def test_a_blocked_main_thread_says_who_died_or_was_stopped(tmp_path: Path) -> None:
    result = blocked(tmp_path, ALIVE, KILLED, STOPPED)
    sentence = "two died (SIGKILL); three is stopped; the main process has not responded for 1 s"
    assert sentence in result.stderr.splitlines()[0]


def test_without_a_limit_a_blocked_main_thread_is_left_alone(tmp_path: Path) -> None:
    result = blocked(tmp_path, KILLED, hang_timeout=0)
    assert (result.stdout, result.stderr, result.returncode) == ("still here\n", "", 0)


def test_a_run_can_go_on_from_what_can_be_read(tmp_path: Path) -> None:
    cfg = AttrDict(num_policies=1, load_checkpoint_kind="latest")
    assert not can_go_on(cfg, tmp_path)
    path = write_checkpoint(tmp_path)
    assert can_go_on(cfg, tmp_path)
    path.write_bytes(path.read_bytes()[:100])
    assert not can_go_on(cfg, tmp_path)


# -- a run that stands still -----------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(watchdog.Watchdog.__init__, "__defaults__", (clock.monotonic,))
    return clock


def look_for(seconds: float, one: Supervisor, clock: Clock, step: Any = lambda second: None) -> str | None:
    """Looks four times per second, with a heartbeat of every worker each second; the first reason to end."""
    for quarter in range(int(seconds * 4)):
        clock.now += 0.25
        if quarter % 4 == 0:
            one.sign_of_life("a")
            step(quarter // 4)
        if reason := one.poll():
            return reason
    return None


def watched(hang_timeout: float) -> tuple[Supervisor, Any]:
    runner = runner_of(Component("a", None))
    one = Supervisor(runner, hang_timeout)
    one._components = runner.components_to_stop
    return one, runner


def test_a_run_that_stands_still_is_noticed_though_all_give_signs_of_life(clock: Clock) -> None:
    one, runner = watched(10)
    assert look_for(100, one, clock) is None  # before its first frame a run starts, for which there is another limit
    runner.counted.made = 64
    assert look_for(10, one, clock) is None
    assert look_for(5, one, clock) == (
        "the run made no frame and no update for 10 s, though every worker responds (--hang_timeout)"
    )
    assert one.hung


def test_slow_frames_and_slow_updates_are_progress(clock: Clock) -> None:
    one, runner = watched(10)
    runner.counted.made = 64

    def one_frame(second: int) -> None:
        runner.counted.made += second % 9 == 0

    def one_update(second: int) -> None:
        runner.buffer_mgr.policy_versions[1] += second % 9 == 0

    assert look_for(60, one, clock, one_frame) is None
    assert look_for(60, one, clock, one_update) is None
    clock.now += 8 * 3600  # the whole machine slept
    assert look_for(5, one, clock) is None
    assert not one.hung


def test_without_a_limit_nobody_counts_as_hung(clock: Clock) -> None:
    one, runner = watched(0)
    assert look_for(supervisor.START_SECONDS + 100, one, clock) is None
    runner.counted.made = 64
    for _ in range(4000):
        clock.now += 1.0  # in silence
        assert one.poll() is None


def test_a_silent_worker_is_named_rather_than_the_run(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    one, runner = watched(10)
    monkeypatch.setattr(one, "_kill", lambda components: None)
    runner.counted.made = 64
    one.poll()
    reasons = []
    for _ in range(50):
        clock.now += 0.25
        reasons.append(one.poll())
    assert next(filter(None, reasons)) == "a gave no sign of life for 10 s (--hang_timeout)"


# -- the dead --------------------------------------------------------------------------------------------------------


def test_the_dead_get_no_more_messages() -> None:
    """A killed worker may have held the lock of its queue: whoever writes to it would wait without end."""
    runner = runner_of(Component("alive", None), Component("dead", -9))
    supervisor = Supervisor(runner, hang_timeout=0)
    supervisor._components = runner.components_to_stop
    assert supervisor.poll() == "dead died (SIGKILL); its traceback, if it left one, is above"
    assert not supervisor.hung
    assert runner.send_signals_to == {"stop": {"alive"}, "save": {"alive"}}


def test_the_dead_are_not_waited_for_and_get_no_more_messages() -> None:
    runner = runner_of(Component("alive", None), Component("dead", -9))
    told: list[tuple[str, set[str]]] = []
    runner._component_stopped = lambda name, _: told.append((name, set(runner.send_signals_to["stop"])))
    Supervisor(runner, hang_timeout=0).see_to_the_end()
    assert [component.object_id for component in runner.components_to_stop] == ["alive"]
    assert told == [("dead", {"alive"})]
