"""The process that evaluates while a training runs: `python -m sf_explore_go.evaluation.evaluator RUN ...`.

It looks for new milestones, plays them with the code of `sf-explore-go evaluate`, and writes evaluation.csv, nothing
else. It runs at low priority and in a session of its own. The training talks to it through standard input: the word
`finish` asks it to evaluate what is there and then to end; the end of the pipe, or of its parent, ends it at once.
"""

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.arguments import ArgumentParser
from sf_explore_go.core.errors import run
from sf_explore_go.evaluation.arena import Arena
from sf_explore_go.evaluation.arguments import is_greedy, load_config
from sf_explore_go.evaluation.evaluate import evaluate_checkpoint
from sf_explore_go.processes.console import NORMAL, set_up_console
from sf_explore_go.processes.stopping import STOP_SIGNALS
from sf_explore_go.runs.checkpoints import CheckpointError
from sf_explore_go.runs.names import milestones
from sf_explore_go.runs.scores import EVALUATION, Settings, read_scores
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.worlds.registry import world_of

NICENESS = 10  # a tenth of the share of others where cores are short; 19 would be left without any
LOOK_SECONDS = 2.0
PARENT_SECONDS = 0.5


def lower_priority() -> None:
    """Yield to everything else. With autogroups, a session's niceness counts and not its processes'."""
    os.nice(NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICENESS))


class Parent:
    """What the training wants: to go on, to finish, or (when it is gone) to stop at once."""

    def __init__(self) -> None:
        self._pid = os.getppid()
        self.finish = False
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            ready, _, _ = select.select([0], [], [], PARENT_SECONDS)
            said = os.read(0, 64) if ready else b"\n"
            if not said or os.getppid() != self._pid:
                os._exit(0)  # engines are removed by their guard, see doom/janitor.py
            self.finish |= b"finish" in said


def pending(folder: Path, splits: Sequence[str], settings: Settings, damaged: dict[Path, int]) -> list[Path]:
    """Milestones that are not evaluated yet, oldest first, without files known to be damaged."""
    done = {(one.checkpoint, one.split) for one in read_scores(folder / EVALUATION) if one.was_made_with(settings)}
    return [
        path
        for path in milestones(folder)
        if not all((path.name, split) in done for split in splits) and damaged.get(path) != path.stat().st_mtime_ns
    ]


def follow(folder: Path, cfg: AttrDict, settings: Settings, num_envs: int) -> None:
    """Evaluate milestones as they come, until the training says that there will be no more."""
    parent, splits = Parent(), world_of(cfg.env).splits
    damaged: dict[Path, int] = {}
    while True:
        last_look = parent.finish  # asked for before looking, so that no milestone is missed
        todo = pending(folder, splits, settings, damaged)
        for path in todo:
            begin = time.monotonic()
            try:
                with Arena(cfg, min(num_envs, settings.episodes)) as arena:
                    rows = evaluate_checkpoint(folder, path, splits, settings, arena)
            except CheckpointError as error:
                damaged[path] = path.stat().st_mtime_ns
                print(f"{error}; skipping it", flush=True)
                continue
            success = ", ".join(f"{row.split} {row.success_rate:.3f}" for row in rows)
            print(f"{path.name}: success {success} ({time.monotonic() - begin:.0f} s)", flush=True)
        if not todo:
            if last_look:
                return
            time.sleep(LOOK_SECONDS)


def main(argv: Sequence[str]) -> int:
    parser = ArgumentParser(prog="evaluator", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--num_envs", type=int, required=True)
    parser.add_argument("--env")
    args = parser.parse_args(argv)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)  # a training starts its children deaf to them
    lower_priority()
    set_up_console(NORMAL)
    cfg = load_config(args.folder, args.env)
    register_worlds(cfg.env)
    torch.set_num_threads(1)
    follow(args.folder, cfg, Settings(args.episodes, greedy=is_greedy(cfg)), args.num_envs)
    return 0


if __name__ == "__main__":
    sys.exit(run(main, sys.argv[1:]))
