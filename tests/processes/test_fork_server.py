"""Workers that a server forks: what they know, what they share, and how many files they can be handed."""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
from multiprocessing import context, forkserver, reduction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from sample_factory.algo.utils.torch_utils import init_torch_runtime
from sample_factory.utils.attr_dict import AttrDict
from signal_slot.signal_slot import EventLoopProcess

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import UsageError
from sf_explore_go.processes.fork_server import (
    CONTEXT,
    MOST_WORKERS,
    env_info_from_server,
    env_info_here,
    fork_from_server,
    start_server,
)
from sf_explore_go.processes.lifeline import FollowsParent, tie_to_this_process
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.training.runner import ExploreGoParallelRunner
from sf_explore_go.training.shared_memory import SHARED_MEMORY
from tests.e2e.cli import sf_explore_go


def parse(folder: Path, *flags: str) -> Any:
    register_worlds()
    return parse_train_args([*flags, f"--train_dir={folder}", "--experiment=run", "--serial_mode=False"])


STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGUSR1}
LOADED = ["torch", "sample_factory", "sf_explore_go.explorers.e3b.reward"]


def tell_about_itself(pipe: Connection) -> None:
    modules = [name for name in LOADED if name in sys.modules]
    pipe.send((os.environ.get("SET_LATER"), modules, len(psutil.Process().threads())))
    os._exit(0)


def test_a_forked_worker_has_everything_loaded_and_sees_the_environment_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    start_server()
    monkeypatch.setenv("SET_LATER", "yes")  # the server has begun without it
    ours, theirs = CONTEXT.Pipe(duplex=False)
    process = EventLoopProcess("worker", CONTEXT, init_func=tell_about_itself, args=(theirs,))
    tie_to_this_process([process])
    fork_from_server([process])
    process.start()
    variable, modules, threads = ours.recv()
    process.join()
    assert variable == "yes"
    assert modules == LOADED
    assert threads == 2  # its own and the one that watches for its parent's end


def share_a_tensor(pipe: Connection) -> None:
    """As a learner does with its weights, after Sample Factory has set up its process."""
    FollowsParent(init_torch_runtime, {})(AttrDict(device="cpu"))
    weights = torch.zeros(3).share_memory_()
    pipe.send((weights, [path.name for path in SHARED_MEMORY.glob(f"torch_{os.getpid()}_*")]))
    pipe.recv()
    pipe.send(weights.tolist())


def test_weights_are_shared_without_a_name_that_somebody_must_remove() -> None:
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=share_a_tensor, args=(theirs,))
    process.start()
    weights, names = ours.recv()
    assert names == []
    weights[1] = 5.0
    ours.send("look")
    assert ours.recv() == [0.0, 5.0, 0.0]
    process.join()


@pytest.mark.parametrize("env", ["illustrative_train", "my_way_home_train"])
def test_both_ways_to_look_at_an_environment_see_the_same(tmp_path: Path, env: str) -> None:
    cfg = parse(tmp_path, f"--env={env}")
    assert env_info_from_server(cfg) == env_info_here(cfg)


def test_an_environment_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    """Sample Factory waits without end for the answer of the process that failed."""
    cfg = parse(tmp_path, "--env=my_way_home_train")
    cfg.env = "my_way_home_nowhere"
    with pytest.raises(UsageError, match=r"^--env=my_way_home_nowhere cannot be made here"):
        env_info_from_server(cfg)


class CountsFiles:
    """Stands where a process is pickled for its start, and counts the open files that it is handed."""

    def __init__(self) -> None:
        self.handed: list[int] = []

    def duplicate_for_child(self, file: int) -> int:
        self.handed.append(file)
        return len(self.handed) - 1

    class DupFd:
        def __init__(self, index: int) -> None:
            self.index = index


def files_handed_to(process: Any) -> int:
    counter = CountsFiles()
    context.set_spawning_popen(counter)  # type: ignore[arg-type]
    try:
        reduction.dump(process._process, io.BytesIO())
    finally:
        context.set_spawning_popen(None)
    return len(counter.handed)


def test_as_many_workers_as_are_allowed_can_be_handed_their_files(tmp_path: Path) -> None:
    flags = ("--env=illustrative_train", "--explorer=e3b", "--max_pure_expl_steps=8", "--num_envs_per_worker=2")
    handed = {}
    for workers in (4, 24):
        cfg = parse(tmp_path / str(workers), *flags, f"--num_workers={workers}")
        runner = ExploreGoParallelRunner(cfg)
        runner.init()
        handed[workers] = max(map(files_handed_to, [*runner.processes, *runner.sampler.processes]))
    per_worker = (handed[24] - handed[4]) / 20
    assert per_worker >= 1
    spare = 20  # for what a recurrent network has besides
    assert handed[4] + per_worker * (MOST_WORKERS - 4) + spare < forkserver.MAXFDS_TO_SEND - 4


def blocked_signals(pid: int) -> set[int]:
    (mask,) = re.findall(r"^SigBlk:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return {number for number in range(1, 65) if int(mask, 16) >> (number - 1) & 1}


def test_workers_hear_no_stop_signal_and_end_with_the_process_that_asked_for_them(tmp_path: Path) -> None:
    code = (
        "import time\n"
        "from signal_slot.signal_slot import EventLoopProcess\n"
        "from sf_explore_go.processes.fork_server import CONTEXT, fork_from_server, start_server\n"
        "from sf_explore_go.processes.lifeline import tie_to_this_process\n"
        "if __name__ == '__main__':\n"
        "    start_server()\n"
        "    process = EventLoopProcess('worker', CONTEXT, init_func=time.sleep, args=(1000,))\n"
        "    tie_to_this_process([process])\n"
        "    fork_from_server([process])\n"
        "    process.start()\n"
        "    print(process.pid, flush=True)\n"
        "    time.sleep(1000)\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    main = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert main.stdout is not None
    worker = psutil.Process(int(main.stdout.readline()))
    server = worker.parent()
    assert server is not None
    assert server.ppid() == main.pid
    assert [blocked_signals(process.pid) & STOP_SIGNALS for process in (server, worker)] == [STOP_SIGNALS] * 2
    assert list(tmp_path.iterdir())  # the server's socket
    main.kill()
    main.wait()
    main.stdout.close()
    _gone, alive = psutil.wait_procs([worker, server], timeout=30)
    assert alive == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("length", [70, 71])
def test_a_tmpdir_that_is_too_long_for_sockets_is_refused(tmp_path: Path, length: int) -> None:
    folder = Path("/tmp", "x" * (length - len("/tmp/")))
    folder.mkdir()
    try:
        flags = ("--env=illustrative_train", "--serial_mode=False", "--num_workers=1", "--num_envs_per_worker=2")
        where = (f"--train_dir={tmp_path}", "--experiment=run", "--train_for_env_steps=500")
        result = sf_explore_go("train", *flags, *where, environment={"TMPDIR": str(folder)})
    finally:
        shutil.rmtree(folder)
    if length == 70:
        assert result.returncode == 0, result.stderr
    else:
        assert result.returncode == 2
        assert f"TMPDIR={folder}: it must have at most" in result.stderr
        assert result.stderr.count("\n") == 1
