"""What is on the disk of a run: in a folder of its own, or in the folder of an experiment, with all other runs.

The folder of an experiment is what `sf-explore-go report --export` writes. It has each table once, for all runs, with
three columns in front that say whose row it is, and one file per arm: the settings that its runs have in common, and
run by run those that they do not.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from sf_explore_go.core.errors import UsageError
from sf_explore_go.runs.folder import CONFIG, read_config
from sf_explore_go.runs.scores import BY_GOAL, EVALUATION, parse_row, read_table

COVERAGE, GO_STARTS = "coverage.csv", "go_starts.csv"
ARM_FILES = "arm_*.json"
COVERAGE_NUMBERS = ("per_phase", "together", "start_cells")
OWNER = ("run", "arm", "seed")  # the columns in front
NEEDED = ("env", "max_pure_expl_steps", "explorer", "seed")
DEPTH = 3  # TRAIN_DIR/SWEEP/ARM/RUN, as Sample Factory's launcher has it

Row = dict[str, Any]
Owner = tuple[str, ...]  # values of the columns OWNER


def score_row(row: dict[str, str]) -> Row:
    """With all columns, also those that earlier versions did not write; exact ones only where there are any."""
    return {name: value for name, value in asdict(parse_row(row)).items() if value is not None}


def measured_row(*numbers: str) -> Callable[[dict[str, str]], Row]:
    """How to parse a row of what an explorer did, in which these columns are numbers."""
    return lambda row: {"explorer": row["explorer"]} | row | {name: float(row[name]) for name in numbers}


TABLES: dict[str, Callable[[dict[str, str]], Row]] = {
    EVALUATION: score_row,
    BY_GOAL: score_row,
    COVERAGE: measured_row(*COVERAGE_NUMBERS),
    GO_STARTS: measured_row("x", "y"),
}


@dataclass(frozen=True)
class Record:
    """A run as it was recorded."""

    folder: Path  # in an experiment it does not exist: the experiment's folder and the name of the run
    config: dict[str, Any]
    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in TABLES})


def find_records(folder: Path, depth: int = DEPTH) -> Iterator[Record]:
    """Every run at or below a folder: what holds an experiment, or a run's configuration or evaluation."""
    if is_experiment(folder):
        yield from read_experiment(folder)
    elif (folder / CONFIG).is_file() or (folder / EVALUATION).is_file():
        yield read_folder(folder)
    elif depth:
        for below in sorted(path for path in folder.iterdir() if path.is_dir()):
            yield from find_records(below, depth - 1)


def read_folder(folder: Path) -> Record:
    """A run in a folder of its own; of one that was not evaluated, nothing else is read."""
    if not (folder / EVALUATION).is_file():
        return Record(folder, {})
    tables = {name: read_table(folder / name, parse) for name, parse in TABLES.items()}
    config = read_config(folder)
    refuse_incomplete(config, f"{folder / CONFIG} cannot be read as a run's configuration")
    return Record(folder, config, tables)


def refuse_incomplete(config: dict[str, Any], sentence: str) -> None:
    for name in NEEDED:
        if name not in config:
            raise UsageError(f"{sentence} (no {name})")


def is_experiment(folder: Path) -> bool:
    return any(folder.glob(ARM_FILES))


def read_experiment(folder: Path) -> list[Record]:
    """Every run of an experiment, by name."""
    if not (folder / EVALUATION).is_file():
        raise UsageError(f"{folder} cannot be read as an experiment: it has files of arms, but no {EVALUATION}")
    records: dict[Owner, Record] = {}
    for path in sorted(folder.glob(ARM_FILES)):
        arm, configs = read_arm(path)
        twice = sorted(configs.keys() & {run for run, *_ in records})
        if twice:
            raise UsageError(f"{path} has the run {twice[0]}, which another arm of this experiment has too")
        records |= {(run, arm, str(config["seed"])): Record(folder / run, config) for run, config in configs.items()}
    for name in TABLES:
        for owner, row in read_table(folder / name, owned(name, records)):
            records[owner].tables[name].append(row)
    return sorted(records.values(), key=lambda record: record.folder)


def owned(table: str, records: dict[Owner, Record]) -> Callable[[dict[str, str]], tuple[Owner, Row]]:
    """How to parse a row of an experiment's table: whose it is, and what the run's own table would have."""

    def parse(row: dict[str, str]) -> tuple[Owner, Row]:
        owner = tuple(row[name] for name in OWNER)
        if owner not in records:
            run, arm, seed = owner
            raise ValueError(f"no {ARM_FILES} beside it has run {run}, seed {seed} of {arm}")
        return owner, TABLES[table]({name: cell for name, cell in row.items() if name not in OWNER})

    return parse


def read_arm(path: Path) -> tuple[str, dict[str, dict[str, Any]]]:
    """The name of an arm, and the configurations of its runs by their names."""
    sentence = f"{path} cannot be read as an arm of an experiment"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        configs = {run: dict(content["config"] | own) for run, own in content["runs"].items()}
        name = str(content["arm"])
    except KeyError as error:
        raise UsageError(f"{sentence} (no {error.args[0]})") from error
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{sentence} ({error})") from error
    for run, config in configs.items():
        if not run or Path(run).is_absolute() or ".." in Path(run).parts:
            raise UsageError(f"{sentence} ({run!r} is no name for a run)")
        refuse_incomplete(config, sentence)
    return name, configs
