"""Looking after the workers of a run: the dead, the silent, and those that do not stop when told to.

A training that lost one of its processes can only wait, so it is ended instead, as well as it can be: environments
first, then the learners, which save. Whoever does not follow in time is killed: every end comes within a minute.

Messages travel through queues whose lock a killed worker may have held. Nobody can take that lock again, so the dead
get no more messages, and a thread ends the run if the main thread has come to wait for such a lock.
"""

import contextlib
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

from sf_explore_go.monitoring.status import EXIT_INTERRUPTED
from sf_explore_go.processes.watchdog import Watchdog

START_SECONDS = 900.0  # from the command to a worker's first frame; many engines on a slow machine take minutes
SAMPLERS_STOP_SECONDS = 20.0  # from the order to stop; then samplers are killed
LEARNERS_STOP_SECONDS = 50.0  # the same for learners, which wait for the samplers and then save
JOIN_SECONDS = 5.0  # for a process whose work is done
MAIN_SECONDS = 45.0  # for the main thread to come by again
LOOK_SECONDS = 0.5


class Supervisor:
    """Of one runner with workers in processes; its `poll` is called a few times per second."""

    def __init__(self, runner: Any, hang_timeout: float) -> None:
        self._runner = runner
        self._components: list[Any] = []
        self._hang_timeout = hang_timeout
        self._working = Watchdog(hang_timeout)
        self._starting = Watchdog(START_SECONDS)
        self._stop_time: float | None = None
        self._killed: set[str] = set()
        self._main_thread = Watchdog(MAIN_SECONDS)
        self._ended = threading.Event()

    def begin(self) -> None:
        """When every worker has a process."""
        self._components = list(self._runner.components_to_stop)
        self._main_thread.watch("main")
        threading.Thread(target=self._watch_the_main_thread, daemon=True, name="supervisor").start()

    def poll(self) -> str | None:
        """Why the run must end, in a sentence; None if all is well."""
        self._main_thread.sign_of_life("main")
        if dead := [c for c in self._components if not self._is_alive(c)]:
            self._send_nothing_to(dead)
            return f"{', '.join(map(how_it_died, dead))}; a traceback, if there was time for one, stands above"
        self._note_who_works()
        if slow := self._starting.silent():
            return f"{', '.join(slow)} did not start within {START_SECONDS:.0f} s"
        if self._hang_timeout > 0 and (silent := self._working.silent()):
            self._kill([c for c in self._components if c.object_id in silent])
            return f"{', '.join(silent)} gave no sign of life for {self._hang_timeout:g} s (--hang_timeout)"
        return None

    def sign_of_life(self, component_id: str) -> None:
        self._working.sign_of_life(component_id)

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

    # -- the end -------------------------------------------------------------------------------------------------

    def see_to_the_end(self) -> None:
        """While the run stops: wait for nobody who is gone, and kill who takes too long."""
        self._main_thread.sign_of_life("main")
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
                log.error("%s does not answer; killing %s", component.object_id, process.name)
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

    def _watch_the_main_thread(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            if self._main_thread.silent():
                self._end_without_the_main_thread()

    def _end_without_the_main_thread(self) -> None:
        fates = [fate for component in self._components if (fate := self._fate(component))]
        sys.stderr.write(
            f"sf-explore-go: {''.join(f'{fate}; ' for fate in fates)}the main process has not come on for"
            f" {MAIN_SECONDS:.0f} s, as when a worker dies or stops with the lock of a queue;"
            " the run ends with its last periodic checkpoint\n"
        )
        sys.stderr.flush()
        self._kill(self._components)
        os._exit(EXIT_INTERRUPTED if self._runner.stop_request.signal is not None else 1)

    # -- processes -----------------------------------------------------------------------------------------------

    def _process(self, component: Any) -> Any:
        if isinstance(component, Batcher):  # a thread of its learner's process
            component = self._runner.learners[component.policy_id]
        return component.event_loop.process if component.event_loop is not None else None

    def _fate(self, component: Any) -> str | None:
        """What has become of a worker that does not run any more."""
        if not self._is_alive(component):
            return how_it_died(component)
        process = self._process(component)
        with contextlib.suppress(psutil.Error):
            if process is not None and psutil.Process(process.pid).status() == psutil.STATUS_STOPPED:
                return f"{component.object_id} is stopped"
        return None

    def _is_alive(self, component: Any) -> bool:
        process = self._process(component)
        return process is None or process.is_alive()


def how_it_died(component: Any) -> str:
    process = component.event_loop.process
    code = process.exitcode if process is not None else None
    if code is not None and code < 0:
        return f"{component.object_id} died ({signal.Signals(-code).name})"
    return f"{component.object_id} died"
