"""Workers that end when the main process is gone, however it went, and shared memory that ends with them."""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Mapping
from multiprocessing import util
from multiprocessing.synchronize import SemLock
from typing import Any

import torch

from sf_explore_go.core.versions import written_for
from sf_explore_go.processes.console import follow_console

written_for("signal-slot-mp", "1.0.5")


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
        share_without_names()


def share_without_names() -> None:
    """Share weights without names, so that nobody has to remove them: their memory ends with its last user.

    Sample Factory shares them under names in /dev/shm, which a helper of torch removes two seconds after their last
    user has gone. A scheduler that ends what is left of a job kills that helper first. Memory that is handed on as an
    open file has no name after its first moment.
    """
    torch.multiprocessing.set_sharing_strategy("file_descriptor")


def remove_names_of_semaphores() -> None:
    """Remove the names of this process's semaphores now, not at exit; call it once every worker has opened them."""
    for finalizer in list(util._finalizer_registry.values()):  # type: ignore[attr-defined]
        if finalizer._callback is SemLock._cleanup:  # type: ignore[attr-defined]
            finalizer()


def end_with_parent() -> None:
    """Wait until the process that asked for this one is gone, then end this one.

    The kernel could send a signal instead, but that comes from the parent of a process, which is the fork server, or
    when the thread ends that started it, which Sample Factory's do at once. Engines are removed by their guards
    (doom/janitor.py).
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


def tie_to_this_process(processes: Iterable[Any]) -> None:
    """Before these EventLoopProcesses start: let each of them end when this process does, and see its environment."""
    for process in processes:
        process._init_func = FollowsParent(process._init_func, os.environ)
