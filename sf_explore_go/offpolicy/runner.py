"""A DQN training in its folder: the part of Sample Factory's runner, in one process.

Observers see of it what they see of APPO's runner: frames, episodes, speed, writers, the folder.
"""

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sample_factory.algo.utils.misc import ExperimentStatus
from sample_factory.cfg.arguments import cfg_dict
from sample_factory.utils.utils import init_file_logger, log
from tensorboardX import SummaryWriter

from sf_explore_go.core.observers import Observer
from sf_explore_go.offpolicy.episodes import Episodes
from sf_explore_go.offpolicy.trainer import Trainer
from sf_explore_go.phases.schedule import AGENT
from sf_explore_go.processes.stopping import EARLY, StopRequest
from sf_explore_go.processes.threads import use_one_thread
from sf_explore_go.runs.checkpoints import FORMAT, MET, CheckpointError, read_newest, save_atomically
from sf_explore_go.runs.folder import make_room, note_command, run_folder, save_config
from sf_explore_go.runs.names import checkpoints_in, milestone_path, policy_folder
from sf_explore_go.runs.status import EXIT_INTERRUPTED
from sf_explore_go.training.accounting import FrameCounter, Frames
from sf_explore_go.training.clock import FrameClock, summary_interval

# A milestone is played, not trained on: both networks, without optimisers and buffer.
MILESTONE_KEYS = ("format", "frames", "train_step", "env_steps", "model", "u", "config", MET)
SPEED_SECONDS, SPEED_POINTS = 1.0, 11  # frames per second are those of the last ten seconds


class Alarm:
    """Calls a function every so many seconds."""

    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self._seconds, self._call = seconds, call
        self._next = time.monotonic() + seconds

    def ring_if_due(self, now: float) -> None:
        if now >= self._next:
            self._next = now + self._seconds
            self._call()


class DqnRunner:
    """Trains, saves, resumes; `observers` are called at the moments that core/observers.py names."""

    def __init__(self, cfg: Any) -> None:
        self.cfg, self.folder = cfg, run_folder(cfg)
        if EARLY.signal is not None and cfg.restart_behavior != "resume":
            raise SystemExit(EXIT_INTERRUPTED)  # there is nothing of this run yet, and all of the older one
        make_room(self.folder, cfg.restart_behavior)
        self._agent = policy_folder(self.folder, AGENT)
        self._agent.mkdir(parents=True, exist_ok=True)
        self.writers: dict[int, Any] = {
            AGENT: SummaryWriter(str(self.folder / ".summary" / str(AGENT)), flush_secs=cfg.flush_summaries_interval)
        }
        self.observers: list[Observer] = []
        self.policy_msg_handlers: dict[str, Any] = {}  # no other process has anything to tell
        self.policy_lag: list[dict[str, float]] = [{}]  # who acts is never behind
        self.stop_request = StopRequest()
        self.stopped = False
        self.reason_to_end: str | None = None  # a sentence, if something went wrong
        self.final_frames, self.total_train_seconds = Frames(0, 0), 0.0
        self._episodes = Episodes(cfg.num_envs_per_worker, cfg.stats_avg, explores=cfg.max_pure_expl_steps > 0)
        self._alarms: list[Alarm] = []
        self._speed: deque[tuple[float, int]] = deque(maxlen=SPEED_POINTS)
        self._reported: dict[str, float] = {}  # by the last gradient step

    def register_observer(self, observer: Observer) -> None:
        self.observers.append(observer)

    # -- what observers ask --------------------------------------------------------------------------------------

    @property
    def counter(self) -> FrameCounter:
        return self.trainer.frames

    @property
    def frames(self) -> Frames:
        return self.trainer.frames.read()

    @property
    def frames_per_second(self) -> float:
        if len(self._speed) < 2:
            return math.nan
        (begin, before), (end, after) = self._speed[0], self._speed[-1]
        return (after - before) / (end - begin)

    def episode_scalars(self, policy_id: int) -> Iterable[tuple[str, float]]:
        return self._episodes.scalars() if policy_id == AGENT else ()

    def call_every(self, seconds: float, call: Callable[[], None]) -> None:
        self._alarms.append(Alarm(seconds, call))

    # -- begin ---------------------------------------------------------------------------------------------------

    def init(self) -> Any:
        use_one_thread()
        init_file_logger(self.cfg)
        save_config(cfg_dict(self.cfg), self.folder)
        note_command(self.cfg, self.folder)
        self.trainer = Trainer(self.cfg)
        self._load_or_begin()
        total, freq = self.frames.total, self.cfg.milestone_step_freq
        self._milestones = FrameClock(freq, begun_at=total) if freq > 0 else None
        self._summaries = FrameClock(summary_interval(self.cfg))
        for observer in self.observers:
            observer.on_init(self)
        return ExperimentStatus.SUCCESS

    def _load_or_begin(self) -> None:
        state = read_newest(checkpoints_in(self._agent), self.trainer.device, log.warning)
        if state is None:
            self.trainer.begin()
            return
        try:
            self.trainer.load_state_dict(state)
        except (RuntimeError, KeyError, TypeError, ValueError, IndexError) as error:  # made by another network
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise CheckpointError(f"the checkpoint in {self._agent} does not fit this run ({reason})") from error

    # -- train ---------------------------------------------------------------------------------------------------

    def run(self) -> Any:
        self.stop_request.install()
        self.stop_request.signal = EARLY.signal
        try:
            self._train()
            self._end()
        finally:
            self.stop_request.restore()
            self.trainer.envs.close()
        if self.reason_to_end is not None:
            return ExperimentStatus.FAILURE
        return ExperimentStatus.SUCCESS if self.stop_request.signal is None else ExperimentStatus.INTERRUPTED

    def _train(self) -> None:
        for observer in self.observers:
            observer.on_start(self)
        begun = time.monotonic()
        self.call_every(SPEED_SECONDS, lambda: self._speed.append((time.monotonic(), self.counter.total())))
        self.call_every(self.cfg.save_every_sec, self.save)
        while self._goes_on():
            self._step()
            now = time.monotonic()
            self.total_train_seconds = now - begun
            for alarm in self._alarms:
                alarm.ring_if_due(now)
        if self.stop_request.signal is not None:
            log.warning("Received %s, saving and stopping...", self.stop_request.signal.name)

    def _goes_on(self) -> bool:
        if self.stop_request.signal is not None or self.reason_to_end is not None:
            return False
        in_time = self.total_train_seconds < self.cfg.train_for_seconds
        return in_time and self.counter.total() < self.cfg.train_for_env_steps

    def _step(self) -> None:
        trainer = self.trainer
        steps = trainer.step()
        self._episodes.add(steps, trainer.envs.explore_steps)
        trainer.begin_again(np.flatnonzero(steps.ended).tolist())
        if (reported := trainer.learn_if_due()) is not None:
            self._reported = reported
        total = self.counter.total()
        if self._milestones is not None and self._milestones.is_due(total):
            self._save_milestone()
        if self._summaries.is_due(total):
            self._write_summaries()
        for observer in self.observers:
            observer.on_training_step(self, trainer.updates)

    def _end(self) -> None:
        self.stopped = True
        if self.reason_to_end is None:
            self.save()
        if self.frames.total:
            self._write_summaries()
        for observer in self.observers:
            observer.on_stop(self)
        self.final_frames = self.frames

    # -- curves --------------------------------------------------------------------------------------------------

    def _write_summaries(self) -> None:
        total, writer, trainer = self.frames.total, self.writers[AGENT], self.trainer
        now = {"epsilon": trainer.epsilon, "buffer": float(len(trainer.replay)), "updates": float(trainer.updates)}
        for name, value in (now | self._reported).items():
            writer.add_scalar(f"train/{name}", value, total)
        for observer in self.observers:
            observer.extra_summaries(self, AGENT, writer, total)
        writer.flush()

    # -- files ---------------------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        config = json.loads(json.dumps(dict(self.cfg), default=str))
        return self.trainer.state_dict() | {"format": FORMAT, "config": config, MET: asdict(self.trainer.met())}

    def save(self) -> None:
        """A checkpoint; the oldest are removed, never what was just written."""
        trainer = self.trainer
        path = self._agent / f"checkpoint_{trainer.updates:09d}_{self.frames.total}.pth"
        if self._write(self._state(), path):
            others = sorted((p for p in checkpoints_in(self._agent) if p != path), key=lambda p: p.stat().st_mtime)
            for old in others[: max(0, len(others) + 1 - self.cfg.keep_checkpoints)]:
                old.unlink()

    def _save_milestone(self) -> None:
        path, state = milestone_path(self._agent, self.frames.total), self._state()
        path.parent.mkdir(exist_ok=True)
        self._write({key: state[key] for key in MILESTONE_KEYS}, path)

    def _write(self, state: dict[str, Any], path: Path) -> bool:
        """A full or missing disk ends the run with one sentence; earlier checkpoints stay."""
        try:
            save_atomically(state, path)
        except (OSError, RuntimeError) as error:  # torch makes the one into the other
            self.reason_to_end = f"{path} cannot be written ({error}); earlier checkpoints are untouched"
            return False
        return True
