"""The supervisor of a run, apart from a run."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sf_explore_go.processes.supervisor import Supervisor

BLOCKED_MAIN_THREAD = """
import signal, subprocess, threading
from types import SimpleNamespace
from sf_explore_go.processes import supervisor

def component(name, number):
    process = subprocess.Popen(["sleep", "100"])
    if number:
        process.send_signal(number)
    alive = lambda: process.poll() is None
    its = SimpleNamespace(pid=process.pid, name=name, is_alive=alive, exitcode=-9, kill=process.kill)
    return SimpleNamespace(object_id=name, event_loop=SimpleNamespace(process=its))

supervisor.MAIN_SECONDS = 1.0
workers = [component(*one) for one in {workers} * [("one", None), ("two", signal.SIGKILL), ("three", signal.SIGSTOP)]]
runner = SimpleNamespace(components_to_stop=workers, stop_request=SimpleNamespace(signal={signal}))
supervisor.Supervisor(runner, hang_timeout=0).begin()
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""


class Component:
    """A worker with a process that is, or is not, alive."""

    def __init__(self, name: str, exitcode: int | None) -> None:
        self.object_id = name
        process = SimpleNamespace(is_alive=lambda: exitcode is None, exitcode=exitcode, name=name)
        self.event_loop = SimpleNamespace(process=process)


def runner_of(*components: Component) -> Any:
    names = {component.object_id for component in components}
    return SimpleNamespace(
        components_to_stop=list(components),
        sampling_components=set(),
        send_signals_to={"stop": set(names), "save": names},
    )


def blocked(signal: str, workers: bool) -> subprocess.CompletedProcess[str]:
    code = BLOCKED_MAIN_THREAD.format(signal=signal, workers=workers)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize(("signal", "status"), [("None", 1), ("15", 75)])
def test_a_blocked_main_thread_ends_the_run(signal: str, status: int) -> None:
    result = blocked(signal, workers=False)
    assert result.returncode == status
    assert result.stderr.count("\n") == 1
    assert "the main process has not come on for 1 s" in result.stderr


def test_a_blocked_main_thread_says_who_died_or_was_stopped() -> None:
    result = blocked("None", workers=True)
    sentence = "two died (SIGKILL); three is stopped; the main process has not come on for 1 s"
    assert sentence in result.stderr.splitlines()[0]


def test_the_dead_get_no_more_messages() -> None:
    """A killed worker may have held the lock of its queue: whoever writes to it would wait without end."""
    runner = runner_of(Component("alive", None), Component("dead", -9))
    supervisor = Supervisor(runner, hang_timeout=0)
    supervisor._components = runner.components_to_stop
    assert supervisor.poll() == "dead died (SIGKILL); a traceback, if there was time for one, stands above"
    assert runner.send_signals_to == {"stop": {"alive"}, "save": {"alive"}}


def test_the_dead_are_not_waited_for_and_get_no_more_messages() -> None:
    runner = runner_of(Component("alive", None), Component("dead", -9))
    told: list[tuple[str, set[str]]] = []
    runner._component_stopped = lambda name, _: told.append((name, set(runner.send_signals_to["stop"])))
    Supervisor(runner, hang_timeout=0).see_to_the_end()
    assert [component.object_id for component in runner.components_to_stop] == ["alive"]
    assert told == [("dead", {"alive"})]
