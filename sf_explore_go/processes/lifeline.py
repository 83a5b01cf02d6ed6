"""Workers that end when the main process is gone, however it went."""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sf_explore_go.processes.console import follow_console


class FollowsParent:
    """Wraps the first function that a worker process calls; can be sent to that process."""

    def __init__(self, init_func: Callable[..., Any] | None, environment: Mapping[str, str]) -> None:
        self.init_func, self.environment = init_func, dict(environment)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        logging.raiseExceptions = False  # a log that cannot be written is not worth a traceback for each line
        threading.Thread(target=end_with_parent, daemon=True, name="lifeline").start()
        os.environ.update(self.environment)  # a fork server may have begun before some of it was set
        follow_console()
        if self.init_func is not None:
            self.init_func(*args, **kwargs)


def end_with_parent() -> None:
    """Wait until the process that asked for this one is gone, then end this one.

    The kernel could send a signal instead, but that comes from the parent of a process, which is the fork server, or
    when the thread ends that started it, which Sample Factory's do at once. Engines are removed by their guards
    (worlds/doom/janitor.py).
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


def tie_to_this_process(processes: Iterable[Any]) -> None:
    """Before these EventLoopProcesses start: let each of them end when this process does, and see its environment."""
    for process in processes:
        process._init_func = FollowsParent(process._init_func, os.environ)
