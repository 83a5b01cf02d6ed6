"""Workers that end when the main process is gone, however it went."""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

CHECK_SECONDS = 1.0


class FollowsParent:
    """Wraps the first function that a worker process calls; can be sent to that process."""

    def __init__(self, init_func: Callable[..., Any] | None, parent: int) -> None:
        self.init_func, self.parent = init_func, parent

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        logging.raiseExceptions = False  # a log that cannot be written is not worth a traceback for each line
        threading.Thread(target=end_without, args=(self.parent,), daemon=True, name="lifeline").start()
        if self.init_func is not None:
            self.init_func(*args, **kwargs)


def end_without(parent: int) -> None:
    """Wait until this process is no longer a child of `parent`, then end it.

    The kernel could send a signal instead, but when the thread ends that started the worker, and Sample Factory starts
    its workers from threads that end at once. Engines are removed by their guards (doom/janitor.py).
    """
    while os.getppid() == parent:
        time.sleep(CHECK_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def tie_to_this_process(processes: Iterable[Any]) -> None:
    """Before these EventLoopProcesses start: let each of them end when this process does."""
    for process in processes:
        process._init_func = FollowsParent(process._init_func, os.getpid())
