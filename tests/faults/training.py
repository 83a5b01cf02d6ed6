"""A real training in processes of its own, to do bad things to."""

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil

from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.names import checkpoints_in
from sf_explore_go.runs.status import read_status
from tests.shared_memory import SharedMemoryWatch

GRID = (
    "--env=illustrative_train", "--preset=illustrative", "--serial_mode=False", "--num_workers=2",
    "--num_envs_per_worker=2", "--worker_num_splits=1", "--explorer=e3b", "--max_pure_expl_steps=8",
    "--train_for_env_steps=1000000000", "--save_every_sec=2", "--seed=3",
)  # fmt: skip
DOOM = (
    "--env=my_way_home_train", "--preset=smoke", "--num_workers=1", "--num_envs_per_worker=2", "--batch_size=64",
    "--train_for_env_steps=1000000000", "--seed=3",
)  # fmt: skip
PATIENCE = 240.0  # seconds until a training must have come somewhere, on a machine that has other work

# what a worker writes about itself into the run's log -> its kind
ROLES = {
    "learner 0": r"\[(\d+)\] LearnerWorker_p0 finished initialization",
    "learner 1": r"\[(\d+)\] LearnerWorker_p1 finished initialization",
    "rollout 0": r"\[(\d+)\] Worker 0 uses CPU cores",
    "inference": r"\[(\d+)\] InferenceWorker_p0-w0: stopping experience collection",
}


class Training:
    """`sf-explore-go train` in a folder; nothing of it outlives the `with` block."""

    def __init__(self, folder: Path, *flags: str, wrapper: tuple[str, ...] = (), console: Path | None = None) -> None:
        """What it prints goes into `console`, a folder; if that is not given, into the folder of the run's folder."""
        console = console or folder
        self.folder = folder / "run"
        self.err = console / "stderr.txt"
        self._shared_memory = SharedMemoryWatch(mark := f"{folder}:{secrets.token_hex(8)}")
        base = DOOM if any("my_way_home" in flag for flag in flags) else GRID
        command = [*wrapper, sys.executable, "-m", "sf_explore_go", "train", *base, *flags]
        command += [f"--train_dir={folder}", "--experiment=run"]
        self.begun = time.monotonic()
        with self.err.open("w") as err, (console / "stdout.txt").open("w") as out:
            self.process = subprocess.Popen(
                command,
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ | {"TRAINING_OF_A_TEST": mark},
            )
        self.seen: dict[int, psutil.Process] = {}
        self._open = ExitStack()

    def __enter__(self) -> "Training":
        self._open.enter_context(self._shared_memory.looking())
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self.note_processes()
        for process in [psutil.Process(self.process.pid)] if self.process.poll() is None else []:
            process.kill()
        self.process.wait()
        _gone, alive = psutil.wait_procs(self.alive(), timeout=15)  # they follow their main process
        for process in alive:
            process.kill()

    # -- looking ---------------------------------------------------------------------------------------------------

    @property
    def stderr(self) -> str:
        return self.err.read_text()

    @property
    def frames(self) -> int:
        """Total of frames as this command has told it; 0 before it has any."""
        status = read_status(self.folder)
        return status.frames if status is not None and status.pid == self.process.pid else 0

    def note_processes(self) -> None:
        try:
            for child in psutil.Process(self.process.pid).children(recursive=True):
                self.seen[child.pid] = child
        except psutil.Error:
            pass

    def alive(self) -> list[psutil.Process]:
        """Processes of this training that still run; zombies do not."""
        return [p for p in self.seen.values() if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.stderr[-3000:]}"
            assert time.monotonic() < deadline, f"waited in vain:\n{self.stderr[-3000:]}"
            self.note_processes()
            time.sleep(0.05)

    def wait_until_it_trains(self) -> None:
        """Until there are frames, and a checkpoint of both policies that holds some."""
        self.wait_for(lambda: self.frames > 0 and all(self.has_trained(policy) for policy in (0, 1)))

    def has_trained(self, policy: int) -> bool:
        """It has a checkpoint that is not the one of its first moment."""
        return any(not path.stem.endswith("_0") for path in self.checkpoints(policy))

    def checkpoints(self, policy: int) -> list[Path]:
        return checkpoints_in(self.folder / f"checkpoint_p{policy}")

    def worker(self, role: str) -> int:
        """Process id of a worker, from the run's log."""
        found: list[str] = []

        def logged() -> bool:
            found[:] = re.findall(ROLES[role], (self.folder / "sf_log.txt").read_text())
            return bool(found)

        self.wait_for(logged)
        return int(found[-1])

    # -- ending ----------------------------------------------------------------------------------------------------

    def kill(self, pid: int, number: signal.Signals = signal.SIGKILL) -> None:
        self.note_processes()
        os.kill(pid, number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.note_processes()
        self.process.send_signal(number)

    def end(self, within: float) -> int:
        """Exit status; fails if the end takes longer, or leaves processes behind."""
        begin = time.monotonic()
        status = self.process.wait(PATIENCE)
        assert time.monotonic() - begin < within
        self.nothing_is_left(within=10)
        return status

    def nothing_is_left(self, within: float) -> None:
        deadline = time.monotonic() + within
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert self.alive() == []
        self._shared_memory.nothing_is_left(max(1.0, deadline - time.monotonic()))


def total_frames(path: Path) -> int:
    return sum(read_checkpoint(path, "cpu")["frames"])
