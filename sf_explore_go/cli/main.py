"""The console script `sf-explore-go`: one verb per module, imported when it is asked for."""

import importlib
import sys
from collections.abc import Callable, Sequence

from sf_explore_go import __version__
from sf_explore_go.core.errors import UsageError
from sf_explore_go.processes.stopping import EARLY

# verb -> (module with main(argv) -> exit status, one line of help)
VERBS: dict[str, tuple[str, str]] = {
    "train": ("sf_explore_go.cli.train", "train an agent, with or without an explore phase"),
    "evaluate": ("sf_explore_go.cli.evaluate", "play a trained agent on training and test contexts"),
    "coverage": ("sf_explore_go.cli.coverage", "how much of the map an explorer sees"),
    "report": ("sf_explore_go.reporting.report", "curves and tables over seeds, by arm"),
    "sweep": ("sf_explore_go.cli.sweep", "many runs: print them, run them here, give them to Slurm; their states"),
    "tensorboard": ("sf_explore_go.cli.tensorboard", "curves and pictures of all runs in the browser"),
    "enjoy": ("sf_explore_go.cli.enjoy", "watch a trained agent, in a window or as a film"),
    "map": ("sf_explore_go.cli.map", "draw the labyrinth and print the contexts of a set"),
    "scenario": ("sf_explore_go.cli.scenario", "build and check the scenario WADs"),
    "doctor": ("sf_explore_go.cli.doctor", "see whether a training will run here; clean up after crashed ones"),
    "bench": ("sf_explore_go.bench.common", "measure speed side by side with stock Sample Factory"),
}


def usage() -> str:
    width = max(len(verb) for verb in VERBS)
    lines = [f"  {verb:<{width}}  {text}" for verb, (_, text) in VERBS.items()]
    return "\n".join(["usage: sf-explore-go VERB [options]   (VERB --help explains a verb)", "", *lines])


def run(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Run a verb; what the user got wrong becomes one sentence on stderr and exit status 2."""
    try:
        return main(argv)
    except UsageError as error:
        print(f"sf-explore-go: {error}", file=sys.stderr)
        return 2


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
        print(f"sf-explore-go: unknown verb {verb!r}; allowed: {', '.join(VERBS)}", file=sys.stderr)
        return 2
    if verb == "train":
        EARLY.install()  # importing takes seconds, in which a scheduler may already ask for the end
    module = importlib.import_module(VERBS[verb][0])
    return run(module.main, rest)


if __name__ == "__main__":
    sys.exit(main())
