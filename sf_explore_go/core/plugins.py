"""The user's own code: modules loaded by name or by file."""

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from sf_explore_go.core.errors import UsageError


def is_foreign(name: object) -> bool:
    """Whether a name stands for code from outside this package: a module or a file, and a class in it."""
    return ":" in str(name)


def load_class(target: str, flag: str) -> Any:
    """What `module:Class` or `file.py:Class` names; `flag` is what a refusal names."""
    place, _, class_name = target.rpartition(":")
    found = getattr(load(place, flag), class_name, None)
    if found is None:
        raise UsageError(f"{flag}: {place} has no {class_name!r}")
    return found


def load(place: str, flag: str) -> ModuleType:
    """A module by its dotted name or by the path of its file; `flag` is what a refusal names."""
    if place.endswith(".py"):
        return load_file(Path(place), flag)
    if str(Path.cwd()) not in sys.path:  # a console script does not look in the user's folder by itself
        sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise UsageError(f"{flag}: module {error.name!r} was not found") from error


def load_file(path: Path, flag: str) -> ModuleType:
    """The same file is the same module, however often it is asked for."""
    path = path.resolve()
    name = f"sf_explore_go_user.{'_'.join(path.with_suffix('').parts[1:])}"
    if name in sys.modules:
        return sys.modules[name]
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(f"{flag}: the file {path} does not exist")
    module = module_from_spec(spec)
    sys.modules[name] = module  # pickle looks for it here
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
