"""The trained agent that comes with the package: a run's folder without what only training needs (docs/results.md).

`--pretrained` copies it into the folder of runs and uses it like any other run, so that nothing is ever
written into the package, which may be read-only and belong to someone else.
"""

import shutil
import tempfile
from argparse import Namespace
from pathlib import Path

from sf_explore_go.core.arguments import ArgumentParser
from sf_explore_go.core.errors import UsageError
from sf_explore_go.runs.folder import run_folder

SOURCE = Path(__file__).parent / "my_way_home_small"
NAME = "pretrained"  # of its copy among the runs


def pretrained_agents() -> dict[str, Path]:
    """Name -> folder, of the agents that come with the package."""
    return {path.parent.name: path.parent for path in sorted(Path(__file__).parent.glob("*/config.json"))}


def add_run_arguments(parser: ArgumentParser) -> None:
    """Which run: by name, or the one that comes with the package."""
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--experiment", help="name of the run in --train_dir")
    which.add_argument(
        "--pretrained", action="store_true", help=f"the agent that comes with the package; copied to --train_dir/{NAME}"
    )
    parser.add_argument("--train_dir", default="train_dir", help="folder of all runs")
    parser.add_argument(
        "--env", help="only for a run in a world of your own: the world's name, module:World, so that its code may run"
    )


def chosen_run(args: Namespace) -> Path:
    """The folder of the run that the arguments choose."""
    if not args.pretrained:
        return run_folder(args)
    folder = Path(args.train_dir) / NAME
    if not folder.is_dir():
        copy_to(folder)
    return folder


def copy_to(folder: Path) -> None:
    """Copy all or nothing, even if another process does the same."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{NAME}.") as temporary:
            copy = Path(shutil.copytree(SOURCE, Path(temporary) / NAME))
            try:
                copy.rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was faster
                    raise
    except OSError as error:
        raise UsageError(f"--train_dir={folder.parent} cannot be written to ({error.strerror})") from error
