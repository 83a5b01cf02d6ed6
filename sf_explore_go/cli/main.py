"""The console script `sf-explore-go`: one verb per module, imported when it is asked for."""

import importlib
import os
import select
import shlex
import signal
import sys
from collections.abc import Sequence

from sf_explore_go import __version__
from sf_explore_go.core.arguments import did_you_mean
from sf_explore_go.core.errors import run
from sf_explore_go.processes.stopping import EARLY

EXIT_NO_READER = 128 + signal.SIGPIPE  # as if the signal had ended it
EXIT_STOPPED = 128 + signal.SIGINT  # what a shell reports of a program that Ctrl+C has ended

# verb -> (module with main(argv) -> exit status, one line of help)
VERBS: dict[str, tuple[str, str]] = {
    "train": ("sf_explore_go.cli.train", "train an agent, with or without an explore phase"),
    "evaluate": ("sf_explore_go.cli.evaluate", "play a trained agent on training and test contexts"),
    "coverage": ("sf_explore_go.cli.coverage", "measure how much of the map an explorer sees"),
    "report": ("sf_explore_go.cli.report", "draw curves and tables over seeds, by arm"),
    "sweep": ("sf_explore_go.cli.sweep", "print many runs, run them here or on Slurm, and see how far they are"),
    "tensorboard": ("sf_explore_go.cli.tensorboard", "show curves and pictures of all runs in the browser"),
    "enjoy": ("sf_explore_go.cli.enjoy", "watch a trained agent, in a window or as a film"),
    "export": ("sf_explore_go.cli.export", "write a trained agent as an ONNX file"),
    "values": ("sf_explore_go.cli.values", "draw what an agent thinks of every state, beside the optimum (Four Rooms)"),
    "map": ("sf_explore_go.cli.map", "draw the labyrinth and print the contexts of a set"),
    "scenario": ("sf_explore_go.cli.scenario", "build and check the scenario WADs"),
    "doctor": ("sf_explore_go.cli.doctor", "check whether a training will run here; clean up after crashes"),
    "bench": ("sf_explore_go.bench.common", "measure speed side by side with stock Sample Factory"),
}


def usage() -> str:
    width = max(len(verb) for verb in VERBS)
    lines = [f"  {verb:<{width}}  {text}" for verb, (_, text) in VERBS.items()]
    return "\n".join(["usage: sf-explore-go VERB [options]   (VERB --help explains a verb)", "", *lines])


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if argv[0] in ("-V", "--version"):
        print(f"sf-explore-go {__version__}")
        return 0
    verb, rest = argv[0], argv[1:]
    if verb not in VERBS:
        sentence = f"unknown verb {verb!r}; it must be one of {', '.join(VERBS)}{did_you_mean(verb, VERBS)}"
        print(f"sf-explore-go: {sentence}", file=sys.stderr)
        return 2
    if verb == "train":
        EARLY.install()  # importing takes seconds, in which a scheduler may already ask for the end
    module = importlib.import_module(VERBS[verb][0])
    try:
        return run(module.main, rest)
    except KeyboardInterrupt:
        print(f"\nsf-explore-go: stopped; to continue: {shlex.join(['sf-explore-go', *argv])}", file=sys.stderr)
        return EXIT_STOPPED
    except BrokenPipeError:
        if stdout_is_open():
            raise
        return EXIT_NO_READER


def stdout_is_open() -> bool:
    """False if its reader is gone, as in `sf-explore-go train --help | head`; what is left then goes nowhere."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return True
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return False


if __name__ == "__main__":
    sys.exit(main())
