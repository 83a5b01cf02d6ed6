"""One training under a meter: `python -m sf_explore_go.bench.arm KIND SECONDS BEGUN FILE FLAGS...`

KIND is `ours` or `stock1`, `stock2`: Sample Factory's own runner with one or two policies, on the same world with the
same flags. The meter starts some seconds after the first training step, measures for SECONDS, writes its numbers as
JSON to FILE and ends the process. BEGUN is the time at which the command was given.
"""

import contextlib
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sample_factory.algo.runners.runner_parallel import ParallelRunner
from sample_factory.algo.utils.misc import LEARNER_ENV_STEPS, TRAIN_STATS, ExperimentStatus

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.processes.console import QUIET, set_up_console
from sf_explore_go.training.environments import prepare_world, register_worlds
from sf_explore_go.training.memory import memory_needed, tree_memory, tree_shared_memory
from sf_explore_go.training.runner import ExploreGoParallelRunner
from sf_explore_go.training.shared_memory import bytes_needed

WARM_UP_SECONDS = 6.0  # after the first training step
LOOK_SECONDS = 0.25
ENGINE = "engines"
STATISTICS = ("version_diff_avg", "version_diff_waited", "valids_fraction")


def make_runner(kind: str, flags: Sequence[str]) -> Any:
    cfg = parse_train_args(flags)
    prepare_world(cfg.env)
    register_worlds()
    if kind == "ours":
        return ExploreGoParallelRunner(cfg)
    cfg.num_policies = int(kind.removeprefix("stock"))
    return ParallelRunner(cfg)


class FrameMeter:
    """How many frames a training has made; stock Sample Factory knows only those that were learned from."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.learned: dict[int, int] = defaultdict(int)  # policy -> frames that its learner has trained on
        # not by the runner's own method, which forgets the list that belongs round the first handler
        runner.policy_msg_handlers.setdefault(LEARNER_ENV_STEPS, []).append(self._on_steps)

    def _on_steps(self, _: Any, message: dict, policy_id: int) -> None:
        self.learned[policy_id] = message[LEARNER_ENV_STEPS]

    def total(self) -> int:
        ours = isinstance(self.runner, ExploreGoParallelRunner)
        return self.runner.frames.total if ours else self.total_learned()

    def total_learned(self) -> int:
        return sum(self.learned.values())


class Meter:
    """Looks at a running training from a thread of its main process."""

    def __init__(self, runner: Any, seconds: float, begun: float, target: Path) -> None:
        self.runner, self.seconds, self.begun, self.target = runner, seconds, begun, target
        self.frames = FrameMeter(runner)
        self.statistics: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.measuring = False
        runner.policy_msg_handlers.setdefault(TRAIN_STATS, []).append(self._on_statistics)

    def _on_statistics(self, _: Any, message: dict, policy_id: int) -> None:
        for name in STATISTICS if self.measuring else ():
            if name in message[TRAIN_STATS]:
                self.statistics[policy_id][name].append(float(message[TRAIN_STATS][name]))

    def updates(self) -> int:
        return int(self.runner.buffer_mgr.policy_versions.sum())

    def run(self) -> None:
        while self.updates() == 0:
            time.sleep(LOOK_SECONDS)
        first_step = time.time() - self.begun
        time.sleep(WARM_UP_SECONDS)
        self.measuring = True
        cpu, updates, learned = self.cpu_seconds(), self.updates(), self.frames.total_learned()
        begin = time.monotonic()
        samples = [(0.0, self.frames.total())]
        while samples[-1][0] < self.seconds:
            time.sleep(LOOK_SECONDS)
            samples.append((time.monotonic() - begin, self.frames.total()))
        took = samples[-1][0]
        frameskip = self.runner.env_info.frameskip
        result = {
            "frames_per_second": speed(samples),
            "samples_per_second": (self.frames.total_learned() - learned) / frameskip / took,
            "updates_per_second": (self.updates() - updates) / took,
            "first_step_seconds": first_step,
            "cores": {kind: (now - cpu.get(kind, 0.0)) / took for kind, now in self.cpu_seconds().items()},
            "statistics": {p: {k: float(np.mean(v)) for k, v in s.items()} for p, s in self.statistics.items()},
        } | self.memory()
        self.target.write_text(json.dumps(result))
        end_at_once(self.runner)

    def cpu_seconds(self) -> dict[str, float]:
        """Of this process and its workers, by kind."""
        seconds: dict[str, float] = defaultdict(float)
        seconds["main"] = sum(psutil.Process().cpu_times()[:2])
        for name, process in workers_of(self.runner).items():
            seconds[name.split("_")[0]] += sum(process.cpu_times()[:2])
            for child in process.children(recursive=True):
                seconds[ENGINE] += sum(child.cpu_times()[:2])
        return dict(seconds)

    def memory(self) -> dict[str, float]:
        cfg, env_info, root = self.runner.cfg, self.runner.env_info, psutil.Process()
        return {
            "memory": tree_memory(root),
            "memory_estimate": memory_needed(cfg, env_info),
            "shared_memory": tree_shared_memory(root),
            "shared_memory_estimate": bytes_needed(cfg, env_info),
        }


def workers_of(runner: Any) -> dict[str, psutil.Process]:
    processes = [*runner.processes, *runner.sampler.processes]
    return {process.name: psutil.Process(process.pid) for process in processes}


def end_at_once(runner: Any) -> None:
    """Nothing of a benchmark's training is kept. Engines, and helpers that free shared memory, follow."""
    for process in workers_of(runner).values():
        with contextlib.suppress(psutil.Error):
            process.kill()
    os._exit(0)


def speed(samples: Sequence[tuple[float, int]]) -> float:
    """Frames per second: slope of the line through (seconds, frames), since frames come in lumps of a batch."""
    seconds, frames = np.array(samples, float).T
    return float(np.polyfit(seconds, frames, 1)[0])


def train_under(watch: Callable[[Any, float, float, Path], Any], argv: Sequence[str]) -> int:
    """A training that `watch` looks at, from a thread of its main process, and ends; words as at the top."""
    kind, seconds, begun, target, *flags = argv
    set_up_console(QUIET)
    runner = make_runner(kind, flags)
    watcher = watch(runner, float(seconds), float(begun), Path(target))
    if runner.init() != ExperimentStatus.SUCCESS:
        return 1
    threading.Thread(target=watcher.run, daemon=True).start()
    runner.run()
    return 1  # the watcher ends the process before


if __name__ == "__main__":
    sys.exit(train_under(Meter, sys.argv[1:]))
