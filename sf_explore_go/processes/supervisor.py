"""Watches the workers of a run for those that die, hang, or do not stop when told to.

A training that has lost a process could only wait, so the supervisor ends it: environments first, then the learners,
which save. It kills every worker that does not stop in time, so the run ends within a minute.

Messages travel through queues, and a killed worker may have held the lock of one. Nobody can take that lock again, so
dead workers get no more messages, and a thread ends the run if the main thread waits for such a lock.

A worker may hang for reasons outside the run, such as a shared file system that does not respond. So a run that ends
because of a hang and has a checkpoint to resume from counts as interrupted: a scheduler starts it again.
"""

import contextlib
import math
import os
import signal
import sys
import threading
import time
from typing import Any

import psutil
from sample_factory.algo.learning.batcher import Batcher
from sample_factory.algo.sampling.rollout_worker import RolloutWorker
from sample_factory.utils.utils import log

from sf_explore_go.processes.lifeline import remove_names_of_semaphores
from sf_explore_go.processes.watchdog import Watchdog
from sf_explore_go.runs.resume import can_go_on
from sf_explore_go.runs.status import EXIT_INTERRUPTED, FAILED, INTERRUPTED

START_SECONDS = 900.0  # from the command to a worker's first frame; many engines on a slow machine take minutes
SAMPLERS_STOP_SECONDS = 20.0  # from the order to stop; then samplers are killed
LEARNERS_STOP_SECONDS = 50.0  # the same for learners, which wait for the samplers and then save
JOIN_SECONDS = 5.0  # for a process whose work is done
LOCK_SECONDS = 45.0  # for the main thread to come by again if a worker is dead, which ends the run in any case
FILES_SECONDS = 30.0  # for the run's folder to answer at the end of a main thread that hangs
STANDSTILL = 1.25  # limits without progress until the whole run is blamed: a silent worker, if any, is known before
LOOK_SECONDS = 0.5


class Supervisor:
    """Watches the workers of one runner; `poll` is called a few times per second."""

    def __init__(self, runner: Any, hang_timeout: float) -> None:
        self._runner = runner
        self._components: list[Any] = []
        self._unheard: set[str] = set()
        self.hung = False  # why the run ends, if it does
        self._hang_timeout = hang_timeout
        limit = hang_timeout if hang_timeout > 0 else math.inf
        self._working = Watchdog(limit)
        self._run = Watchdog(STANDSTILL * limit)
        self._progress = (0, 0)
        self._starting = Watchdog(START_SECONDS if hang_timeout > 0 else math.inf)
        self._stop_time: float | None = None
        self._killed: set[str] = set()
        self._main_thread, self._main_thread_and_a_death = Watchdog(limit), Watchdog(min(limit, LOCK_SECONDS))
        self._ended = threading.Event()

    def begin(self) -> None:
        """When every worker has a process."""
        self._components = list(self._runner.components_to_stop)
        self._unheard = {component.object_id for component in self._components}
        if self._hang_timeout > 0:
            self._main_thread.watch("main")
            self._main_thread_and_a_death.watch("main")
            threading.Thread(target=self._watch_the_main_thread, daemon=True, name="supervisor").start()

    def poll(self) -> str | None:
        """Why the run must end, in a sentence; None if all is well."""
        self._main_thread_comes_by()
        if dead := self._dead():
            self._send_nothing_to(dead)
            return f"{', '.join(map(how_it_died, dead))}; its traceback, if it left one, is above"
        self._note_who_works()
        if slow := self._starting.silent():
            return f"{', '.join(slow)} did not start within {START_SECONDS:.0f} s"
        return self._who_hangs()

    def _who_hangs(self) -> str | None:
        silent, standstill = self._working.silent(), self._run.silent()
        self.hung = bool(silent or standstill)
        if silent:
            self._kill([c for c in self._components if c.object_id in silent])
            return f"{', '.join(silent)} gave no sign of life for {self._hang_timeout:g} s (--hang_timeout)"
        if standstill:
            return (
                f"the run made no frame and no update for {self._hang_timeout:g} s, though every worker responds"
                " (--hang_timeout)"
            )
        return None

    def sign_of_life(self, component_id: str) -> None:
        self._working.sign_of_life(component_id)
        if component_id in self._unheard:
            self._unheard.remove(component_id)
            if not self._unheard:
                remove_names_of_semaphores()

    def _note_who_works(self) -> None:
        """Starting engines and networks may take long; whoever has seen a frame must be heard of from then on."""
        frames = self._runner.buffer_mgr.frames
        begun = frames.total() > frames.restored().total
        for component in self._components:
            works = frames.made_by(component.worker_idx) > 0 if isinstance(component, RolloutWorker) else begun
            if works:
                self._working.watch(component.object_id)
                self._starting.forget(component.object_id)
            else:
                self._starting.watch(component.object_id)
        if begun:
            self._note_progress()

    def _note_progress(self) -> None:
        """A lost message can leave all workers waiting for each other. Slow learners stop frames, but not updates."""
        self._run.watch("run")
        progress = (self._runner.buffer_mgr.frames.total(), int(self._runner.buffer_mgr.policy_versions.sum()))
        if progress != self._progress:
            self._progress = progress
            self._run.sign_of_life("run")

    # -- the end -------------------------------------------------------------------------------------------------

    def see_to_the_end(self) -> None:
        """While the run stops: do not wait for dead workers, and kill those that take too long."""
        self._main_thread_comes_by()
        self._stop_time = self._stop_time or time.monotonic()
        waited = time.monotonic() - self._stop_time
        remaining = self._runner.components_to_stop
        samplers = [c for c in remaining if c.object_id in self._runner.sampling_components]
        if waited > SAMPLERS_STOP_SECONDS and samplers:
            self._kill(samplers)
        if waited > LEARNERS_STOP_SECONDS:
            self._kill(remaining)
        self._forget_the_dead()

    def _forget_the_dead(self) -> None:
        waiting_for = self._runner.components_to_stop
        dead = [component for component in waiting_for if not self._is_alive(component)]
        if dead:
            self._send_nothing_to(dead)
            self._runner.components_to_stop = [component for component in waiting_for if component not in dead]
            self._runner._component_stopped(dead[0].object_id, {})  # which looks at all that remain

    def _send_nothing_to(self, components: list[Any]) -> None:
        gone = {component.object_id for component in components}
        for receivers in self._runner.send_signals_to.values():
            receivers -= gone

    def _kill(self, components: list[Any]) -> None:
        for component in components:
            process = self._process(component)
            if process is not None and process.is_alive() and process.name not in self._killed:
                self._killed.add(process.name)
                log.error("%s does not respond; killing %s", component.object_id, process.name)
                process.kill()

    def join(self, processes: list[Any]) -> None:
        """Instead of Sample Factory's joins, which wait without end."""
        self._ended.set()
        deadline = time.monotonic() + JOIN_SECONDS
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    # -- the main thread -----------------------------------------------------------------------------------------

    def _main_thread_comes_by(self) -> None:
        self._main_thread.sign_of_life("main")
        self._main_thread_and_a_death.sign_of_life("main")

    def _watch_the_main_thread(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            hangs, waits = self._main_thread.silent(), self._main_thread_and_a_death.silent()
            if waits and self._dead():
                self._end_without_the_main_thread(self._main_thread_and_a_death.limit, hung=False)
            elif hangs:
                self._end_without_the_main_thread(self._main_thread.limit, hung=True)

    def _end_without_the_main_thread(self, seconds: float, *, hung: bool) -> None:
        fates = [fate for component in self._components if (fate := self._fate(component))]
        sys.stderr.write(
            f"sf-explore-go: {''.join(f'{fate}; ' for fate in fates)}the main process has not responded for"
            f" {seconds:g} s (perhaps a worker died or stopped while it held the lock of a queue, or a file system"
            " hangs); the run ends with its last periodic checkpoint\n"
        )
        sys.stderr.flush()
        self._kill(self._components)
        os._exit(self._exit_status(hung=hung))

    def _exit_status(self, *, hung: bool) -> int:
        """As in status.json, if the run's folder responds. If not, the next start finds out what can be read."""
        statuses = [EXIT_INTERRUPTED if hung or self._runner.stop_request.has_come else 1]

        def settle() -> None:
            if not self._runner.stop_request.has_come and not can_go_on(self._runner.cfg, self._runner.folder):
                statuses.append(1)
            self._runner.tell_of_loss(INTERRUPTED if statuses[-1] == EXIT_INTERRUPTED else FAILED)

        thread = threading.Thread(target=settle, daemon=True)
        thread.start()
        thread.join(FILES_SECONDS)
        return statuses[-1]

    # -- processes -----------------------------------------------------------------------------------------------

    def _process(self, component: Any) -> Any:
        if isinstance(component, Batcher):  # a thread of its learner's process
            component = self._runner.learners[component.policy_id]
        return component.event_loop.process if component.event_loop is not None else None

    def _fate(self, component: Any) -> str | None:
        """What happened to a worker that no longer runs; None if it runs."""
        if not self._is_alive(component):
            return how_it_died(component)
        process = self._process(component)
        with contextlib.suppress(psutil.Error):
            if process is not None and psutil.Process(process.pid).status() == psutil.STATUS_STOPPED:
                return f"{component.object_id} is stopped"
        return None

    def _dead(self) -> list[Any]:
        return [component for component in self._components if not self._is_alive(component)]

    def _is_alive(self, component: Any) -> bool:
        process = self._process(component)
        return process is None or process.is_alive()


def how_it_died(component: Any) -> str:
    process = component.event_loop.process
    code = process.exitcode if process is not None else None
    if code is not None and code < 0:
        return f"{component.object_id} died ({signal.Signals(-code).name})"
    return f"{component.object_id} died"
