"""Resuming from the best checkpoint: everything that the run made after it is set aside.

The newest checkpoint is the one with the most updates, and milestones and evaluations are known by their frames. Two
lines of training in one folder would get mixed up: a later resume would return to the abandoned line, and curves would
show both. So everything after the best checkpoint is moved to `abandoned0001` in the run's folder (or the next number);
nothing is deleted. Only the agent goes back: the best score says nothing about the explorer, which stays as it is.
"""

import csv
import shutil
from pathlib import Path

from filelock import FileLock
from sample_factory.utils.utils import log

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.files import replacing, write_csv
from sf_explore_go.phases.schedule import AGENT
from sf_explore_go.runs.checkpoints import newest_readable
from sf_explore_go.runs.names import checkpoints_in, milestones, policy_folder
from sf_explore_go.runs.scores import BY_GOAL, EVALUATION

SHOWN = ".summary/0/shown_evaluations.json"  # TensorBoard's memory; without it evaluations are shown anew


def go_on_from_best(folder: Path) -> None:
    """Make the agent's best checkpoint its newest one; nothing happens if there is none."""
    agent = policy_folder(folder, AGENT)
    found = newest_readable(checkpoints_in(agent, "best"), "cpu", log.warning)
    if found is None:
        return
    best, state = found
    newest = agent / f"checkpoint_{'_'.join(best.stem.split('_')[1:3])}.pth"
    if not newest.exists():
        with best.open("rb") as source, replacing(newest) as copy:
            shutil.copyfileobj(source, copy)
    aside, frames = next_folder(folder), sum(state["frames"])
    later = [path for path in milestones(folder) if int(path.stem.split("_")[1]) > frames]
    later += [path for path in reversed(checkpoints_in(agent)) if path.name > newest.name]  # the newest first
    for table in (EVALUATION, BY_GOAL):
        set_rows_aside(folder / table, frames, aside)
    for path in later:
        move(path, aside / path.relative_to(folder))
    if aside.exists():
        (folder / SHOWN).unlink(missing_ok=True)
        log.warning("Resuming from %s at %d frames; all later results are now in %s", best.name, frames, aside)


def next_folder(folder: Path) -> Path:
    numbers = [int(path.name[-4:]) for path in folder.glob("abandoned[0-9][0-9][0-9][0-9]")]
    return folder / f"abandoned{max(numbers, default=0) + 1:04d}"


def move(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)


def set_rows_aside(path: Path, frames: int, aside: Path) -> None:
    """Move the rows of checkpoints with more frames than these; others may add rows meanwhile."""
    if not path.is_file():
        return
    with FileLock(path.with_name(f".{path.name}.lock")):
        try:
            with path.open(newline="") as file:
                reader = csv.DictReader(file)
                rows = [(int(row["frames"]) > frames, row) for row in reader]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path} cannot be read ({error}); repair it or move it away") from error
        columns = reader.fieldnames or ()
        if any(is_later for is_later, _ in rows):
            # not under its own name, by which a report would take the folder for a run
            write_csv(aside / f"abandoned_{path.name}", columns, [row for is_later, row in rows if is_later])
            write_csv(path, columns, [row for is_later, row in rows if not is_later])
