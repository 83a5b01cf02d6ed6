"""Workers forked from a server that has loaded torch and Sample Factory once, instead of loading them in each worker.

Sample Factory starts every worker as a new interpreter: seconds of a core for each, before the first frame, and memory
that workers do not share. Python's fork server has done nothing but import, so its children inherit no thread, no lock
and no GPU, and each of them gets its work by message, just as a new interpreter does.
"""

import multiprocessing
import os
import tempfile
from collections.abc import Iterable
from multiprocessing import forkserver, resource_tracker, util
from multiprocessing.connection import Connection
from typing import Any

from sample_factory.algo.utils.context import set_global_context, sf_global_context
from sample_factory.algo.utils.env_info import EnvInfo, extract_env_info
from sample_factory.algo.utils.make_env import make_env_func_batched

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.versions import written_for
from sf_explore_go.processes.stopping import children_deaf_to_stop_signals

written_for("signal-slot-mp", "1.0.5")

CONTEXT = multiprocessing.get_context("forkserver")
IMPORTED = "sf_explore_go.training.imported"
SOCKET_FOLDER = "SF_EXPLORE_GO_SOCKET_FOLDER"  # variable that tells the server what to remove when it ends
LONGEST_TMPDIR = 70  # of 107 characters in all; Python adds /pymp-12345678/listener-12345678
MOST_WORKERS = 160  # Python hands a forked process at most 252 open files; ours have about 30, and one per worker


def check_sockets() -> None:
    """Processes, Python's server among them, meet at sockets in TMPDIR, whose paths the system limits."""
    folder = tempfile.gettempdir()
    if len(folder) > LONGEST_TMPDIR:
        raise UsageError(
            f"TMPDIR={folder}: it must have at most {LONGEST_TMPDIR} characters, or the paths of the workers' sockets"
            " in it become too long"
        )


def start_server() -> None:
    """Let it import while this process goes on; neither it nor its children see the stop signals."""
    CONTEXT.set_forkserver_preload([IMPORTED])
    resource_tracker.ensure_running()  # before, since Python unblocks signals when it starts this one
    os.environ[SOCKET_FOLDER] = util.get_temp_dir()
    with children_deaf_to_stop_signals():
        forkserver.ensure_running()


def fork_from_server(processes: Iterable[Any]) -> None:
    """Before these EventLoopProcesses start: let the server make them. Sample Factory names its own way inside."""
    for process in processes:
        process._process = CONTEXT.Process(target=process._target, name=process.name, daemon=process.daemon)


def env_info_here(cfg: Any) -> EnvInfo:
    """What Sample Factory wants to know of an environment, from one that is made for that and closed again."""
    env = make_env_func_batched(cfg, env_config=None)
    try:
        return extract_env_info(env, cfg)
    finally:
        env.close()


def env_info_from_server(cfg: Any) -> EnvInfo:
    """The same in a process of its own, since an environment may leave a GPU or an engine in whoever makes it."""
    ours, theirs = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_send_env_info, args=(theirs, sf_global_context(), cfg), name="env_info")
    process.start()
    theirs.close()
    try:
        info: EnvInfo = ours.recv()
    except EOFError:
        raise UsageError(f"--env={cfg.env} cannot be made here; the traceback above says why") from None
    finally:
        process.join()
    return info


def _send_env_info(receiver: Connection, context: Any, cfg: Any) -> None:
    set_global_context(context)
    receiver.send(env_info_here(cfg))
