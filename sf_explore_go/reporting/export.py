"""`--export`: the runs of a report in the form in which they can be published, as one experiment (see `records`)."""

import csv
import io
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.files import replacing
from sf_explore_go.reporting.records import ARM_FILES, OWNER, TABLES, Row, is_experiment, read_experiment
from sf_explore_go.reporting.runs import Arm, Run, listed
from sf_explore_go.runs.folder import OF_THIS_MACHINE

PER_RUN = ("context_seed", "experiment", "seed")  # stand beside a run's name, also where they do not differ


def export(arms: Sequence[Arm], folder: Path) -> None:
    """All that a report needs of the runs, without paths and names of this machine. An earlier export of these runs is
    replaced as a whole: whoever reads it meanwhile never finds a part of one and a part of the other."""
    names = run_names([run for arm in arms for run in arm.runs])
    try:
        refuse_to_lose(folder, names)
        replace_folder(folder.resolve(), experiment_files(arms, names))
    except OSError as error:
        raise UsageError(f"--export={folder} cannot be written ({error})") from error


def run_names(runs: Sequence[Run]) -> dict[Path, str]:
    """Runs' folders -> the names of these folders, with those of the folders above where runs would otherwise have the
    same name."""
    folders = [run.folder.resolve() for run in runs]
    for depth in range(1, 4):
        names = {folder: "/".join(folder.parts[-depth:]) for folder in folders}
        if len(set(names.values())) == len(names):
            return names
    raise UsageError(f"--export: {names[folders[0]]} and others have the same names up to three folders above them")


def refuse_to_lose(folder: Path, names: Mapping[Path, str]) -> None:
    """Refuse a folder that holds anything but an earlier export, or a run that the new one would not hold."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"--export={folder} is a file; it must be a folder")
    content = sorted(path.name for path in folder.iterdir())
    strange = [name for name in content if name not in TABLES and not fnmatch(name, ARM_FILES)]
    if content and (strange or not is_experiment(folder)):
        raise UsageError(
            f"--export={folder} holds {(strange or content)[0]}; it must be new, empty or an earlier export"
        )
    earlier = [record.folder for record in read_experiment(folder)] if content else []
    kept = {*names, *((folder / name).resolve() for name in names.values())}
    lost = [path for path in earlier if path.resolve() not in kept]
    if lost:
        raise UsageError(
            f"--export={folder} holds runs that this report leaves out ({listed(lost)}); report {folder} too, or choose"
            " another folder"
        )


def experiment_files(arms: Sequence[Arm], names: Mapping[Path, str]) -> dict[str, str]:
    """file -> content"""
    files: dict[str, str] = {}
    for arm in arms:
        runs = {names[run.folder.resolve()]: published(run.config) for run in arm.runs}
        files[arm_file(arm.name, files)] = arm_content(arm.name, runs)
    for table in TABLES:
        rows = [
            dict(zip(OWNER, (names[run.folder.resolve()], arm.name, str(run.config["seed"])), strict=True)) | row
            for arm in arms
            for run in arm.runs
            for row in run.tables.get(table, ())
        ]
        if rows:
            files[table] = as_csv(rows)
    return files


def published(config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sorted(config.items()) if name not in OF_THIS_MACHINE}


def arm_file(arm: str, taken: Iterable[str]) -> str:
    """A name that every file system can hold and no other arm has."""
    plain = re.sub(r"\W+", "_", arm.lower(), flags=re.ASCII).strip("_")[:80]
    numbers = ["", *(f"_{number}" for number in range(2, 2 + len(set(taken))))]
    return next(name for number in numbers if (name := f"arm_{plain}{number}.json") not in taken)


def arm_content(arm: str, runs: Mapping[str, Mapping[str, Any]]) -> str:
    """Its name, what each run has of its own, one line per run, and what their configurations have in common."""
    first, *others = runs.values()
    common = {
        name: value
        for name, value in first.items()
        if name not in PER_RUN and all(name in other and same(other[name], value) for other in others)
    }
    own = {run: {name: value for name, value in config.items() if name not in common} for run, config in runs.items()}
    lines = ",\n".join(f"  {json.dumps(run)}: {json.dumps(settings)}" for run, settings in own.items())
    shared = json.dumps(common, indent=1).replace("\n", "\n ")
    return f'{{\n "arm": {json.dumps(arm)},\n "runs": {{\n{lines}\n }},\n "config": {shared}\n}}\n'


def same(one: Any, other: Any) -> bool:
    """To the letter: 1, 1.0 and True are three values."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def as_csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def replace_folder(folder: Path, files: Mapping[str, str]) -> None:
    """A folder with these files in place of `folder`; on an error the old one stays."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    new, old = (folder.with_name(f".{folder.name}.{os.getpid()}.{word}") for word in ("new", "old"))
    try:
        new.mkdir()
        for name, content in files.items():
            with replacing(new / name) as file:
                file.write(content.encode())
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)
        for rest in (new, old):
            shutil.rmtree(rest, ignore_errors=True)
