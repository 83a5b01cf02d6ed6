"""Wiring: a Sample Factory runner made of our parts."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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
from signal_slot.signal_slot import EventLoopObject, Timer, signal

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.versions import written_for
from sf_explore_go.explorers.registry import resolve_explorer
from sf_explore_go.phases.schedule import AGENT
from sf_explore_go.processes.fork_server import (
    MOST_WORKERS,
    check_sockets,
    env_info_from_server,
    env_info_here,
    fork_from_server,
    start_server,
)
from sf_explore_go.processes.lifeline import share_without_names, tie_to_this_process
from sf_explore_go.processes.stopping import EARLY, StopRequest, children_deaf_to_stop_signals
from sf_explore_go.processes.supervisor import Supervisor
from sf_explore_go.processes.threads import use_one_thread
from sf_explore_go.runs.abandoned import go_on_from_best
from sf_explore_go.runs.folder import note_command, save_config
from sf_explore_go.runs.resume import can_go_on
from sf_explore_go.runs.status import EXIT_INTERRUPTED
from sf_explore_go.training.accounting import FrameCounter, Frames
from sf_explore_go.training.batcher import ExploreGoBatcher
from sf_explore_go.training.buffers import ExploreGoBufferMgr
from sf_explore_go.training.clock import FrameClock, summary_interval
from sf_explore_go.training.explore_length import begin_exploring_if_solved
from sf_explore_go.training.learner_worker import ExploreGoLearnerWorker
from sf_explore_go.training.memory import memory_warning
from sf_explore_go.training.messages import ENV_OF_EPISODE, FATAL
from sf_explore_go.training.policies import has_phases
from sf_explore_go.training.rounds import Rounds
from sf_explore_go.training.sampler import ExploreGoParallelSampler, ExploreGoSerialSampler
from sf_explore_go.training.shared_memory import check_shared_memory

written_for("sample-factory", "2.1.1")

# what episodes report -> the tag under which it is plotted; other keys with a slash keep their name
EPISODE_TAGS = {"reward": "return", "len": "length", "success": "success", "true_objective": None}
POLICY_PREFIX = {0: "go", 1: "explore"}
STOP_POLL_SECONDS = 0.25


@contextmanager
def without_stock_wandb(cfg: Any) -> Iterator[None]:
    """Sample Factory's constructor starts wandb in a way that wandb refuses; we have one of our own, in monitoring."""
    wanted, cfg.with_wandb = cfg.with_wandb, False
    try:
        yield
    finally:
        cfg.with_wandb = wanted


class Ticker(EventLoopObject):
    """Calls a function every so many seconds, in the runner's loop, which knows methods of such objects only."""

    def __init__(self, event_loop: Any, name: str, seconds: float, call: Callable[[], None]) -> None:
        super().__init__(event_loop, name)
        self._call = call
        self._timer = Timer(event_loop, seconds)
        self._timer.timeout.connect(self.tick)

    def tick(self) -> None:
        self._call()


class ExploreGoRunner(Runner):
    """What the serial and the parallel runner share. Comes after them in the method resolution order."""

    total_env_steps_since_resume: int | None
    components_to_stop: list[Any]

    def __init__(self, cfg: Any, unique_name: str | None = None) -> None:
        with without_stock_wandb(cfg):
            super().__init__(cfg, unique_name)
        self.policy_msg_handlers[LEARNER_ENV_STEPS] = [self._on_learner_steps]
        self.policy_msg_handlers[TRAIN_STATS] = [self._on_train_stats]
        self.policy_msg_handlers[EPISODIC] = [self._on_episode]
        self.msg_handlers[FATAL] = [self._on_fatal]
        self.stop_request = StopRequest()
        self.final_frames = Frames(0, 0)
        num_envs = cfg.num_workers * cfg.num_envs_per_worker
        self.rounds: list[Rounds[dict]] = [Rounds(num_envs) for _ in range(cfg.num_policies)]
        self._first_frame_time: float | None = None
        self._summary_clock = FrameClock(summary_interval(cfg))
        self.sampling_components: set[str] = set()
        self.reason_to_end: str | None = None  # a sentence, if something went wrong
        self.supervisor = Supervisor(self, cfg.hang_timeout)
        self._learning_told_to_stop = False
        self._all_stopped = False
        self._all_started = False  # set when every worker has a process
        self._tickers: list[Ticker] = []
        self._poll_timer = Timer(self.event_loop, STOP_POLL_SECONDS)
        self._poll_timer.timeout.connect(self._poll)  # not one of self.timers, which end with the training

    @signal  # type: ignore[untyped-decorator]
    def stop_learning(self) -> None:
        """Emitted when all sampling has stopped, so that the last checkpoints hold the final frame counts."""

    # -- making the parts ----------------------------------------------------------------------------------------

    def _handle_restart(self) -> None:
        """Called by Sample Factory's constructor: it moves or removes the folder of an older run, then writes there.

        So whatever can be refused is refused here, while everything is as it was.
        """
        self._check_everything()
        if EARLY.signal is not None and self.cfg.restart_behavior != "resume":
            raise SystemExit(EXIT_INTERRUPTED)  # there is nothing of this run yet, and all of the older one
        super()._handle_restart()

    def _check_everything(self) -> None:
        set_global_cuda_envvars(self.cfg)
        self.env_info = self._obtain_env_info()
        if not preprocess_cfg(self.cfg, self.env_info):
            raise UsageError("Sample Factory rejects these flags together; its lines above say which and why")
        self._check_phases()
        check_shared_memory(self.cfg, self.env_info)
        if sentence := memory_warning(self.cfg, self.env_info):
            log.warning(sentence)

    def init(self) -> Any:
        """Overridden whole: Sample Factory names its buffer manager inside."""
        self.reward_shaping = [self.env_info.reward_shaping_scheme] * self.cfg.num_policies
        if self.cfg.load_checkpoint_kind == "best":
            go_on_from_best(self.folder)
            self.cfg.load_checkpoint_kind = "latest"  # which it is from now on
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
        if has_phases(self.cfg) and self.env_info.num_agents > 1:
            agents = self.env_info.num_agents
            raise UsageError(
                f"--env={self.cfg.env} has {agents} agents; an explore phase needs one agent per environment"
            )
        if self.cfg.max_pure_expl_steps == 0:
            return
        resolve_explorer(self.cfg.explorer).check(self.env_info.action_space, self.cfg)

    def _make_batcher(self, event_loop: Any, policy_id: int) -> Any:
        batcher_class = ExploreGoBatcher if has_phases(self.cfg) else Batcher
        return batcher_class(
            event_loop, policy_id, self.buffer_mgr, self.buffer_mgr.policy_cfgs[policy_id], self.env_info
        )

    def _make_learner(self, event_loop: Any, policy_id: int, batcher: Any) -> Any:
        return ExploreGoLearnerWorker(event_loop, self.cfg, self.env_info, self.buffer_mgr, batcher, policy_id)

    def _make_sampler(self, sampler_cls: type, event_loop: Any) -> Any:
        sampler_class = ExploreGoSerialSampler if self.cfg.serial_mode else ExploreGoParallelSampler
        return super()._make_sampler(sampler_class, event_loop)

    # -- the one clock -------------------------------------------------------------------------------------------

    @property
    def frames(self) -> Frames:
        return self.buffer_mgr.frames.read() if self.buffer_mgr is not None else Frames(0, 0)

    @property
    def counter(self) -> FrameCounter | None:
        """None before `init`."""
        return self.buffer_mgr.frames if self.buffer_mgr is not None else None

    @property
    def frames_per_second(self) -> float:
        """Over the last ten seconds; nan while it is not known."""
        return float(self._get_perf_stats()[0][0])

    def call_every(self, seconds: float, call: Callable[[], None]) -> None:
        """For observers, once everything has started."""
        self._tickers.append(Ticker(self.event_loop, f"ticker{len(self._tickers)}", seconds, call))

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
            log.warning("Received %s, saving and stopping...", self.stop_request.signal.name)
            self._stop_training()
            self.status = ExperimentStatus.INTERRUPTED
        elif self._all_started and (reason := self.supervisor.poll()):
            self.end_because(reason)
        elif not self.cfg.serial_mode and self._should_end_training():
            self._stop_training()

    def end_because(self, reason: str) -> None:
        """Stop a run in which something went wrong; the first reason is the one that is reported."""
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
        """Episodes count in full rounds: in curves, on the progress line, and when the best policy is looked for."""
        rounds = runner.rounds[policy_id]
        complete = rounds.add(msg[ENV_OF_EPISODE], msg[EPISODIC])
        for episode in complete:
            for _, key, value in iterate_recursively(episode):
                if key not in runner.policy_avg_stats:
                    kept = rounds.episodes_kept(runner.cfg.stats_avg)
                    runner.policy_avg_stats[key] = [deque(maxlen=kept) for _ in runner.rounds]
                runner.policy_avg_stats[key][policy_id].append(value)
        if complete and policy_id == AGENT:
            begin_exploring_if_solved(runner)

    @staticmethod
    def _on_fatal(runner: "ExploreGoRunner", msg: dict) -> None:
        runner.end_because(msg[FATAL])

    # -- summaries -----------------------------------------------------------------------------------------------

    def _report_experiment_summaries(self) -> None:
        """Called by a timer. In serial mode summaries follow frames instead, so that runs can be repeated."""
        if not self.cfg.serial_mode:
            self._write_summaries()

    def _write_summaries(self) -> None:
        """Let the observers write their curves."""
        frames = self.frames.total
        if frames == 0:
            return
        for policy_id, writer in self.writers.items():
            self._observers_call(AlgoObserver.extra_summaries, self, policy_id, writer, frames)
            writer.flush()

    def episode_scalars(self, policy_id: int) -> Iterable[tuple[str, float]]:
        """Tag and mean of what the last full rounds of episodes reported."""
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
        fps = self.frames_per_second
        parts = [f"{frames.total:,} of {self.cfg.train_for_env_steps:,} frames"]
        if not np.isnan(fps):
            parts.append(f"{fps:,.0f} frames/s")
        if self.cfg.max_pure_expl_steps > 0 and frames.total:
            parts.append(f"exploring {frames.explore / frames.total:.0%}")
        shown = dict(self.episode_scalars(0))
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
        """A component whose process has ended is not waited for, but its own message may still come: after the end,
        which must come once."""
        if self._all_stopped:
            return
        super()._component_stopped(component_obj_id, component_profiles)
        self._all_stopped = not self.components_to_stop
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
        if self.stop_request.signal is not None or (self.supervisor.hung and can_go_on(self.cfg, self.folder)):
            return ExperimentStatus.INTERRUPTED
        return status

    def tell_of_loss(self, state: str) -> None:
        """For an end without the main thread."""
        for observer in self.observers:
            observer.on_lost(self, state)

    @property
    def folder(self) -> Path:
        return Path(experiment_dir(self.cfg))


class ExploreGoParallelRunner(ParallelRunner, ExploreGoRunner):
    """Workers in processes of their own."""

    def _check_everything(self) -> None:
        check_sockets()
        if self._forks:
            start_server()
        super()._check_everything()

    def init(self) -> Any:
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
        if self.cfg.use_env_info_cache:
            return super()._obtain_env_info()
        try:
            return env_info_here(self.cfg)
        except Exception as error:  # whatever a world may raise
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise UsageError(f"--env={self.cfg.env} cannot be made here ({reason})") from error

    def init(self) -> Any:
        use_one_thread()
        status = super().init()
        share_without_names()  # a learner shares its weights even with itself
        # Receivers of a signal stand in sets of strings, which Python walks in another order in every process.
        receivers = self.event_loop.receivers
        for emitter, names in receivers.items():
            receivers[emitter] = InOrder.fromkeys(sorted(names))
        return status
