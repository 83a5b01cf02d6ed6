"""The training's side of background evaluation: start the evaluator, notice its end, and never depend on it."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LOG = "evaluation.log"
STARTS = 3  # an evaluator that ended by itself is started again this often
PAUSE_SECONDS = 20.0  # before that
NUM_ENVS = 8


class BackgroundEvaluation:
    """One evaluator process for a run. `poll` now and then; `finish` or `stop` at the end."""

    def __init__(
        self, folder: Path, env: str, episodes: int, warn: Callable[[str], None], num_envs: int = NUM_ENVS
    ) -> None:
        self._folder, self._env, self._warn = folder, env, warn
        self._episodes, self._num_envs = episodes, num_envs
        self._process: subprocess.Popen[bytes] | None = None
        self._starts_left = STARTS
        self._start_at = 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        self._starts_left -= 1
        words = [sys.executable, "-m", "sf_explore_go.evaluation.evaluator", str(self._folder)]
        words += [f"--env={self._env}", f"--episodes={self._episodes}", f"--num_envs={self._num_envs}"]
        try:
            with (self._folder / LOG).open("ab") as log:
                self._process = subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
                )
        except OSError as error:
            self._warn(f"background evaluation cannot start ({error}); the training continues without it")
            self._starts_left = 0

    def poll(self) -> None:
        """Check that the evaluator still runs; if not, warn, and start another one after a while."""
        if self._process is not None and self._process.poll() is not None:
            again = f"another evaluation starts in {PAUSE_SECONDS:.0f} s" if self._starts_left else self._by_hand()
            self._warn(f"background evaluation ended ({self._how_it_ended()}); the training continues; {again}")
            self._forget()
            self._start_at = time.monotonic() + PAUSE_SECONDS
        if self._process is None and self._starts_left and time.monotonic() >= self._start_at:
            self.start()

    def finish(self, seconds: float, wanted: Callable[[], bool] = lambda: True) -> None:
        """The training is over: let the evaluator do what is left, for a limited time, while `wanted` says so."""
        if self._process is None or self._process.stdin is None:
            return
        with contextlib.suppress(OSError):  # it has just died
            self._process.stdin.write(b"finish\n")
            self._process.stdin.flush()
        deadline = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < deadline and wanted():
            time.sleep(0.2)
        if self._process.poll() is None:
            self._warn(f"the training stopped waiting for the background evaluation; {self._by_hand()}")
        elif self._process.returncode != 0:
            self._warn(f"background evaluation ended ({self._how_it_ended()}); {self._by_hand()}")
        self.stop()

    def stop(self) -> None:
        """End it at once; what it has written stays."""
        if self._process is not None:
            self._process.kill()  # its engines are removed by their guard
            self._process.wait()
            self._forget()

    def _forget(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process = None

    def _how_it_ended(self) -> str:
        assert self._process is not None
        code = self._process.returncode
        how = f"signal {-code}" if code < 0 else f"status {code}"
        return f"{how}, see {self._folder / LOG}"

    def _by_hand(self) -> str:
        where = f"--train_dir={self._folder.parent} --experiment={self._folder.name}"
        return f"to evaluate the rest, run sf-explore-go evaluate {where} --checkpoint=all"
