"""What a training shows in TensorBoard and on the terminal, and its evaluation in the background.

This is an observer, which Sample Factory calls at certain moments, so the runner knows nothing of it. Nothing here may
harm the training: an evaluation that cannot be read or shown is a warning.
"""

import math
from pathlib import Path
from typing import Any

from filelock import Timeout
from sample_factory.utils.utils import experiment_dir, log

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.observers import Observer
from sf_explore_go.evaluation.background import BackgroundEvaluation
from sf_explore_go.monitoring.board import EvaluationBoard, board_lock, describe_run
from sf_explore_go.monitoring.estimate import MEASURE_SECONDS, long_by_preset, long_by_speed
from sf_explore_go.monitoring.full_disk import forgive_full_disks
from sf_explore_go.monitoring.progress import Progress, seconds_left
from sf_explore_go.processes.console import LiveLine
from sf_explore_go.processes.stopping import StopRequest
from sf_explore_go.runs.scores import actions_word
from sf_explore_go.runs.status import read_status

LOCK_SECONDS = 30.0
LINE_SECONDS = 1.0


class TrainingMonitor(Observer):
    """Observes one training; `line` is where progress is shown, None for nowhere."""

    def __init__(self, cfg: Any, line: LiveLine | None = None) -> None:
        self._cfg, self._line = cfg, line
        self._folder = Path(experiment_dir(cfg, mkdir=False))
        self._lock = board_lock(self._folder)
        self._board = EvaluationBoard(self._folder, cfg.env, greedy=cfg.eval_greedy)
        self._background: BackgroundEvaluation | None = None
        self._test_success: float | None = None
        self._speed_judged = False

    # -- what Sample Factory calls -------------------------------------------------------------------------------

    def on_init(self, runner: Any) -> None:
        try:
            self._lock.acquire(timeout=LOCK_SECONDS)
        except Timeout:
            raise UsageError(
                f"--experiment={self._cfg.experiment}: another training is writing to {self._folder}"
            ) from None
        forgive_full_disks(runner.writers.values())
        describe_run(runner.writers[0], self._cfg)
        status = read_status(self._folder)
        if sentence := long_by_preset(self._cfg, status.frames if status is not None else 0):
            log.warning(sentence)

    def on_start(self, runner: Any) -> None:
        if self._cfg.eval_in_background:
            self._background = BackgroundEvaluation(self._folder, self._cfg.env, self._cfg.eval_episodes, log.warning)
            self._background.start()
        runner.call_every(LINE_SECONDS, lambda: self._look(runner))

    def extra_summaries(self, runner: Any, policy_id: int, writer: Any, env_steps: int) -> None:
        if policy_id == 0:
            self._show_evaluations(writer)
            if "version_diff_avg" in runner.policy_lag[0]:
                writer.add_scalar("perf/policy_lag", runner.policy_lag[0]["version_diff_avg"], env_steps)

    # -- during and after ----------------------------------------------------------------------------------------

    def _look(self, runner: Any) -> None:
        if self._background is not None and not runner.stopped:
            self._background.poll()
        if not self._speed_judged and runner.total_train_seconds >= MEASURE_SECONDS:
            self._judge_speed(runner)
        if self._line is not None and runner.frames.total:
            try:
                self._line.show(self.progress(runner).line())
            except OSError:  # whoever read the terminal is gone
                self._line = None

    def _judge_speed(self, runner: Any) -> None:
        self._speed_judged = True
        seconds, frames = runner.total_train_seconds, runner.frames.total
        speed = (frames - runner.counter.restored().total) / seconds
        if sentence := long_by_speed(self._cfg, frames, speed, seconds):
            log.warning(sentence)

    def _show_evaluations(self, writer: Any) -> None:
        try:
            shown = self._board.show_new(writer)
        except (UsageError, OSError) as error:
            log.warning("evaluations cannot be shown: %s", error)
            return
        for row in shown:
            if row.split == "test" and row.actions == actions_word(greedy=self._cfg.eval_greedy):
                self._test_success = row.success_rate

    def progress(self, runner: Any) -> Progress:
        cfg, frames, episodes = self._cfg, runner.frames, dict(runner.episode_scalars(0))
        fps = runner.frames_per_second
        left = seconds_left(
            frames.total, cfg.train_for_env_steps, fps, runner.total_train_seconds, cfg.train_for_seconds
        )
        return Progress(
            frames.total,
            cfg.train_for_env_steps,
            fps,
            math.nan if runner.stopped else left,
            episodes.get("go/return"),
            self._test_success,
            frames.explore / frames.total if cfg.max_pure_expl_steps and frames.total else None,
            runner.policy_lag[0].get("version_diff_avg"),
        )

    def finish(self, runner: Any, *, interrupted: bool) -> None:
        """After the last worker has ended. An interrupted training does not wait; the next part goes on evaluating."""
        if self._line is not None:
            self._line.end()
        if self._background is not None and not interrupted:
            self._finish_evaluation(self._background)
            self._show_evaluations(runner.writers[0])

    def _finish_evaluation(self, background: BackgroundEvaluation) -> None:
        stop = StopRequest()
        stop.install()
        try:
            if self._line is not None and background.pid is not None:
                limit = self._cfg.eval_finish_seconds
                self._line.say(f"Evaluating the remaining milestones, for at most {limit} s ...")
            background.finish(self._cfg.eval_finish_seconds, wanted=lambda: stop.signal is None)
        finally:
            stop.restore()

    def __enter__(self) -> "TrainingMonitor":
        return self

    def __exit__(self, *error: object) -> None:
        """However the training ended: no process and no lock is left."""
        if self._background is not None:
            self._background.stop()
        self._lock.release()
