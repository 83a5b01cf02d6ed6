"""Signals that ask for the end."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sf_explore_go.processes.stopping import StopRequest

# The main thread holds a lock of the C library that it cannot get: no handler of Python's runs there any more.
HANGING = """
import ctypes, os, signal, threading, time
from sf_explore_go.processes.stopping import StopRequest

stop = StopRequest()
stop.install()

def look():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.5)
    print(stop.signal, stop.has_come, flush=True)
    os._exit(0)

threading.Thread(target=look, daemon=True).start()
mutex = ctypes.create_string_buffer(64)
lock = ctypes.CDLL(None).pthread_mutex_lock
lock(mutex)
lock(mutex)
"""


@pytest.fixture
def stop() -> Iterator[StopRequest]:
    request = StopRequest()
    request.install()
    yield request
    request.restore()


def test_a_signal_is_known_though_the_main_thread_hangs() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "None True\n"


def test_without_a_signal_none_has_come(stop: StopRequest) -> None:
    assert not stop.has_come


def test_one_that_has_come_stays(stop: StopRequest) -> None:
    signal.raise_signal(signal.SIGUSR1)
    assert stop.has_come
    assert stop.has_come
    assert stop.signal is signal.SIGUSR1
    stop.restore()
    assert stop.has_come
