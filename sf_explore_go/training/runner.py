"""Wiring: a Sample Factory runner made of our parts."""

import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from sample_factory.algo.learning.batcher import Batcher
from sample_factory.algo.learning.learner_worker import LearnerWorker
from sample_factory.algo.runners.runner import AlgoObserver, Runner
from sample_factory.algo.runners.runner_parallel import ParallelRunner
from sample_factory.algo.runners.runner_serial import SerialRunner
from sample_factory.algo.utils.env_info import EnvInfo, obtain_env_info_in_a_separate_process
from sample_factory.algo.utils.misc import EPISODIC, LEARNER_ENV_STEPS, TRAIN_STATS, ExperimentStatus
from sample_factory.cfg.arguments import cfg_dict, preprocess_cfg
from sample_factory.utils.dicts import iterate_recursively
from sample_factory.utils.gpu_utils import set_global_cuda_envvars
from sample_factory.utils.utils import experiment_dir, init_file_logger, log
from signal_slot.signal_slot import Timer, signal

from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import resolve_explorer
from sf_explore_go.monitoring.coverage import Coverage, world_cells
from sf_explore_go.monitoring.full_disk import forgive_full_disks
from sf_explore_go.monitoring.pictures import PICTURES_PER_RUN, coverage_pictures
from sf_explore_go.processes.fork_server import (
    MOST_WORKERS,
    check_sockets,
    env_info_from_server,
    env_info_here,
    fork_from_server,
    start_server,
)
from sf_explore_go.processes.lifeline import tie_to_this_process
from sf_explore_go.processes.stopping import EARLY, StopRequest, children_deaf_to_stop_signals
from sf_explore_go.processes.supervisor import Supervisor
from sf_explore_go.runs.folder import note_command, save_config
from sf_explore_go.training.accounting import Frames
from sf_explore_go.training.batcher import ExploreGoBatcher
from sf_explore_go.training.buffers import ExploreGoBufferMgr
from sf_explore_go.training.clock import FrameClock, summary_interval
from sf_explore_go.training.learner import ExploreGoLearnerWorker
from sf_explore_go.training.memory import memory_warning
from sf_explore_go.training.messages import EXPLORE_PHASE, FATAL
from sf_explore_go.training.policies import policy_cfg
from sf_explore_go.training.sampler import ExploreGoParallelSampler, ExploreGoSerialSampler
from sf_explore_go.training.shared_memory import check_shared_memory
from sf_explore_go.worlds.registry import world_of

# what episodes report -> the tag under which it is plotted; other keys with a slash keep their name
EPISODE_TAGS = {"reward": "return", "len": "length", "success": "success", "true_objective": None}
POLICY_PREFIX = {0: "go", 1: "explore"}
STOP_POLL_SECONDS = 0.25


class ExploreGoRunner(Runner):
    """What the serial and the parallel runner share. Stands behind them in the method resolution order."""

    total_env_steps_since_resume: int | None
    components_to_stop: list[Any]

    def __init__(self, cfg: Any, unique_name: str | None = None) -> None:
        super().__init__(cfg, unique_name)
        self.policy_msg_handlers[LEARNER_ENV_STEPS] = [self._on_learner_steps]
        self.policy_msg_handlers[TRAIN_STATS] = [self._on_train_stats]
        self.policy_msg_handlers[EPISODIC] = [self._on_episode]
        self.policy_msg_handlers[EXPLORE_PHASE] = [self._on_explore_phase]
        self.msg_handlers[FATAL] = [self._on_fatal]
        forgive_full_disks(self.writers.values())
        self.stop_request = StopRequest()
        self.final_frames = Frames(0, 0)
        self.coverage: Coverage | None = None  # made when the first explore phase is reported
        self._first_frame_time: float | None = None
        self._summary_clock = FrameClock(summary_interval(cfg))
        self._picture_clock = FrameClock(max(1, cfg.train_for_env_steps // PICTURES_PER_RUN))
        self.sampling_components: set[str] = set()
        self.reason_to_end: str | None = None  # a sentence, if something went wrong
        self.supervisor = Supervisor(self, cfg.hang_timeout)
        self._learning_told_to_stop = False
        self._all_started = False  # set when every worker has a process
        self._poll_timer = Timer(self.event_loop, STOP_POLL_SECONDS)
        self._poll_timer.timeout.connect(self._poll)  # not one of self.timers, which end with the training

    @signal  # type: ignore[untyped-decorator]
    def stop_learning(self) -> None:
        """Emitted when all sampling has stopped, so that the last checkpoints hold the final frame counts."""

    # -- making the parts ----------------------------------------------------------------------------------------

    def init(self) -> Any:
        """Overridden whole: Sample Factory names its buffer manager inside."""
        set_global_cuda_envvars(self.cfg)
        self.env_info = self._obtain_env_info()
        self.reward_shaping = [self.env_info.reward_shaping_scheme] * self.cfg.num_policies
        if not preprocess_cfg(self.cfg, self.env_info):
            return ExperimentStatus.FAILURE
        self._check_phases()
        check_shared_memory(self.cfg, self.env_info)
        if sentence := memory_warning(self.cfg, self.env_info):
            log.warning(sentence)
        init_file_logger(self.cfg)
        self._save_cfg()
        note_command(self.cfg, self.folder)
        self.buffer_mgr = ExploreGoBufferMgr(self.cfg, self.env_info)
        self._observers_call(AlgoObserver.on_init, self)
        return ExperimentStatus.SUCCESS

    def _obtain_env_info(self) -> EnvInfo:
        return obtain_env_info_in_a_separate_process(self.cfg)

    def _save_cfg(self) -> None:
        save_config(cfg_dict(self.cfg), self.folder)

    def _check_phases(self) -> None:
        if self.cfg.max_pure_expl_steps == 0:
            return
        if self.env_info.num_agents > 1:
            agents = self.env_info.num_agents
            raise UsageError(
                f"--env={self.cfg.env} has {agents} agents; an explore phase needs one agent per environment"
            )
        resolve_explorer(self.cfg.explorer).check(self.env_info.action_space)

    def _make_batcher(self, event_loop: Any, policy_id: int) -> Any:
        batcher_class = ExploreGoBatcher if self.cfg.max_pure_expl_steps > 0 else Batcher
        return batcher_class(event_loop, policy_id, self.buffer_mgr, policy_cfg(self.cfg, policy_id), self.env_info)

    def _make_learner(self, event_loop: Any, policy_id: int, batcher: Any) -> Any:
        return ExploreGoLearnerWorker(event_loop, self.cfg, self.env_info, self.buffer_mgr, batcher, policy_id)

    def _make_sampler(self, sampler_cls: type, event_loop: Any) -> Any:
        sampler_class = ExploreGoSerialSampler if self.cfg.serial_mode else ExploreGoParallelSampler
        return super()._make_sampler(sampler_class, event_loop)

    # -- the one clock -------------------------------------------------------------------------------------------

    @property
    def frames(self) -> Frames:
        return self.buffer_mgr.frames.read() if self.buffer_mgr is not None else Frames(0, 0)

    def _should_end_training(self) -> bool:
        frames = self.frames
        if self._first_frame_time is None and frames != self.buffer_mgr.frames.restored():
            self._first_frame_time = time.time()
        self.total_train_seconds = time.time() - (self._first_frame_time or time.time())
        out_of_frames = frames.total >= self.cfg.train_for_env_steps
        return out_of_frames or self.total_train_seconds >= self.cfg.train_for_seconds

    def _after_training_iteration(self, training_iteration_since_resume: int) -> None:
        if self.cfg.serial_mode and self._summary_clock.is_due(self.frames.total):
            self._write_summaries()
        super()._after_training_iteration(training_iteration_since_resume)

    def _poll(self) -> None:
        if self.stopped:
            self.supervisor.see_to_the_end()
        elif self.stop_request.signal is not None:
            log.info("Received %s, saving and stopping...", self.stop_request.signal.name)
            self._stop_training()
            self.status = ExperimentStatus.INTERRUPTED
        elif self._all_started and (reason := self.supervisor.poll()):
            self.end_because(reason)
        elif not self.cfg.serial_mode and self._should_end_training():
            self._stop_training()

    def end_because(self, reason: str) -> None:
        """Stop a run in which something has gone wrong; the first reason is the one to tell."""
        if self.reason_to_end is None:
            self.reason_to_end = reason
            log.error("%s. Stopping...", reason)
        self._stop_training(failed=True)

    def _receive_heartbeat(self, component_type: type, component_id: str, p_name: str, qsize: int) -> None:
        self.supervisor.sign_of_life(component_id)

    def _check_heartbeat(self) -> None:
        """Sample Factory's own check, by a timer, ends a run only when all workers of a kind are silent."""

    # -- messages from the workers -------------------------------------------------------------------------------

    @staticmethod
    def _on_learner_steps(runner: "ExploreGoRunner", msg: dict, policy_id: int) -> None:
        # Sample Factory sums what learners consumed; here every policy's x-axis is the total that was made.
        restored = runner.buffer_mgr.frames.restored().total
        runner.env_steps[policy_id] = runner.frames.total
        runner.total_env_steps_since_resume = runner.frames.total - restored

    @staticmethod
    def _on_train_stats(runner: "ExploreGoRunner", msg: dict, policy_id: int) -> None:
        stats, frames = msg[TRAIN_STATS], runner.frames.total
        for key, value in stats.items():
            tag = key if "/" in key else f"train/{key}"
            runner.writers[policy_id].add_scalar(tag, value, frames)
        lag = {key: stats[key] for key in ("version_diff_min", "version_diff_max", "version_diff_avg") if key in stats}
        runner.policy_lag[policy_id].update(lag)

    @staticmethod
    def _on_episode(runner: "ExploreGoRunner", msg: dict, policy_id: int) -> None:
        for _, key, value in iterate_recursively(msg[EPISODIC]):
            if key not in runner.policy_avg_stats:
                runner.policy_avg_stats[key] = [
                    deque(maxlen=runner.cfg.stats_avg) for _ in range(runner.cfg.num_policies)
                ]
            runner.policy_avg_stats[key][policy_id].append(value)

    @staticmethod
    def _on_fatal(runner: "ExploreGoRunner", msg: dict) -> None:
        runner.end_because(msg[FATAL])

    @staticmethod
    def _on_explore_phase(runner: "ExploreGoRunner", msg: dict, policy_id: int) -> None:
        if runner.coverage is None:
            runner.coverage = Coverage(world_cells(world_of(runner.cfg.env)))
        runner.coverage.add(**msg[EXPLORE_PHASE])

    # -- summaries -----------------------------------------------------------------------------------------------

    def _report_experiment_summaries(self) -> None:
        """Called by a timer. In serial mode summaries follow frames instead, so that runs can be repeated."""
        if not self.cfg.serial_mode:
            self._write_summaries()

    def _write_summaries(self) -> None:
        frames = self.frames
        if frames.total == 0:
            return
        for policy_id, writer in self.writers.items():
            for tag, value in self._episode_scalars(policy_id):
                writer.add_scalar(tag, value, frames.total)
            self._observers_call(AlgoObserver.extra_summaries, self, policy_id, writer, frames.total)
        main = self.writers[0]
        main.add_scalar("phases/explore_share", frames.explore / frames.total, frames.total)
        main.add_scalar("phases/explore_frames", frames.explore, frames.total)
        main.add_scalar("phases/go_frames", frames.go, frames.total)
        if self.coverage is not None:
            self._write_coverage(self.coverage, frames.total)
        fps = self._get_perf_stats()[0][0]
        if not np.isnan(fps):
            main.add_scalar("perf/frames_per_second", fps, frames.total)
        for writer in self.writers.values():
            writer.flush()

    def _write_coverage(self, coverage: Coverage, frames: int) -> None:
        for tag, value in coverage.scalars().items():
            self.writers[0].add_scalar(tag, value, frames)
        if self._picture_clock.is_due(frames):
            for tag, picture in coverage_pictures(coverage, world_of(self.cfg.env)).items():
                self.writers[0].add_image(tag, picture, frames, dataformats="HWC")

    def _episode_scalars(self, policy_id: int) -> Iterable[tuple[str, float]]:
        for key, values in self.policy_avg_stats.items():
            tag = key if "/" in key else EPISODE_TAGS.get(key, key)
            if tag is not None and len(values[policy_id]) > 0:
                yield (tag if "/" in tag else f"{POLICY_PREFIX[policy_id]}/{tag}"), float(np.mean(values[policy_id]))

    def _update_stats_and_print_report(self) -> None:
        if self.buffer_mgr is None or not self.env_steps:
            return
        self.total_env_steps_since_resume = self.frames.total - self.buffer_mgr.frames.restored().total
        self.fps_stats.append((time.time(), self.total_env_steps_since_resume))
        log.info(self._progress_line())

    def _progress_line(self) -> str:
        frames = self.frames
        fps = self._get_perf_stats()[0][0]
        parts = [f"{frames.total:,} of {self.cfg.train_for_env_steps:,} frames"]
        if not np.isnan(fps):
            parts.append(f"{fps:,.0f} frames/s")
        if self.cfg.max_pure_expl_steps > 0 and frames.total:
            parts.append(f"exploring {frames.explore / frames.total:.0%}")
        shown = dict(self._episode_scalars(0))
        parts += [
            f"{name} {shown[tag]:.3f}"
            for tag, name in (("go/return", "return"), ("go/success", "success"))
            if tag in shown
        ]
        return ", ".join(parts)

    # -- the end -------------------------------------------------------------------------------------------------

    def _setup_component_termination(self, stop_signal: Any, component_to_stop: Any) -> None:
        """Samplers stop first; batchers, and through them the learners, when no more frames can be made."""
        if isinstance(component_to_stop, Batcher):
            stop_signal = self.stop_learning
        elif not isinstance(component_to_stop, LearnerWorker):
            self.sampling_components.add(component_to_stop.object_id)
        super()._setup_component_termination(stop_signal, component_to_stop)

    def _component_stopped(self, component_obj_id: str, component_profiles: Any) -> None:
        super()._component_stopped(component_obj_id, component_profiles)
        remaining = {component.object_id for component in self.components_to_stop}
        if not self._learning_told_to_stop and not remaining & self.sampling_components:
            self._learning_told_to_stop = True
            self.stop_learning.emit(self.object_id)

    def _on_everything_stopped(self) -> None:
        self._poll_timer.stop()
        self._write_summaries()
        self.final_frames = self.frames
        super()._on_everything_stopped()

    def run(self) -> Any:
        self.stop_request.install()
        self.stop_request.signal = EARLY.signal
        try:
            status = super().run()
        finally:
            self.stop_request.restore()
        return ExperimentStatus.INTERRUPTED if self.stop_request.signal is not None else status

    @property
    def folder(self) -> Path:
        return Path(experiment_dir(self.cfg))


class ExploreGoParallelRunner(ParallelRunner, ExploreGoRunner):
    """Workers in processes of their own."""

    def init(self) -> Any:
        check_sockets()
        if self._forks:
            start_server()
        status = super().init()
        if status == ExperimentStatus.SUCCESS:
            processes = [*self.processes, *self.sampler.processes]
            tie_to_this_process(processes)
            if self._forks:
                fork_from_server(processes)
        return status

    @property
    def _forks(self) -> bool:
        """Whether a server makes the workers."""
        return bool(self.cfg.num_workers <= MOST_WORKERS)

    def _obtain_env_info(self) -> EnvInfo:
        if self._forks and not self.cfg.use_env_info_cache:
            return env_info_from_server(self.cfg)
        return super()._obtain_env_info()

    def _on_start(self) -> None:
        with children_deaf_to_stop_signals():
            super()._on_start()
        self.supervisor.begin()
        self._all_started = True

    def _on_everything_stopped(self) -> None:
        self.supervisor.join([*self.processes, *self.sampler.processes])
        super()._on_everything_stopped()


class InOrder(dict):
    """A set of names that is walked in sorted order; holds the receivers of a signal."""

    def add(self, name: str) -> None:
        self[name] = None

    def remove(self, name: str) -> None:
        del self[name]


class ExploreGoSerialRunner(SerialRunner, ExploreGoRunner):
    """Everything in one process, in an order that depends on the seed only."""

    def _obtain_env_info(self) -> EnvInfo:
        return super()._obtain_env_info() if self.cfg.use_env_info_cache else env_info_here(self.cfg)

    def init(self) -> Any:
        status = super().init()
        # Receivers of a signal stand in sets of strings, which Python walks in another order in every process.
        receivers = self.event_loop.receivers
        for emitter, names in receivers.items():
            receivers[emitter] = InOrder.fromkeys(sorted(names))
        return status
