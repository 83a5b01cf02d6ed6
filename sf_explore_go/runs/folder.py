"""A run's folder: one training at a time in it, and a record of the commands that made it."""

import itertools
import json
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from sf_explore_go import __version__
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.files import replacing

CONFIG, HISTORY_FILE = "config.json", "history.jsonl"
PACKAGES = ("sample-factory", "vizdoom", "torch", "gymnasium", "numpy")
# what a configuration says of the machine and of its user, and what is left out where it is published
OF_THIS_MACHINE = {"train_dir", "cli_args", "command_line", "git_hash", "git_repo_name"}


def run_folder(cfg: Any) -> Path:
    return Path(cfg.train_dir) / cfg.experiment


@contextmanager
def claimed(cfg: Any) -> Iterator[Path]:
    """The folder of a run, held against a second training for as long as this one lasts, even if it is killed.

    The lock lies beside the folder, since a restart moves the folder away.
    """
    folder = run_folder(cfg)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--experiment={cfg.experiment}: {folder} is a file; choose another name")
    lock = FileLock(folder.with_name(f".{folder.name}.lock"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise UsageError(
            f"--experiment={cfg.experiment}: another training is running in {folder}; wait for it, or choose another"
            " name"
        ) from error
    except OSError as error:
        raise not_writable(folder, error) from error
    try:
        check_writable(folder)
        yield folder
    finally:
        lock.release()


def check_writable(folder: Path) -> None:
    """Check now, not when the first checkpoint is due. Leaves no new folder behind."""
    existed = folder.exists()
    try:
        folder.mkdir(exist_ok=True)
        with replacing(folder / ".writable") as file:
            file.write(bytes(64 * 1024))
        (folder / ".writable").unlink()
    except OSError as error:
        raise not_writable(folder, error) from error
    finally:
        if not existed and folder.exists():
            shutil.rmtree(folder)


def make_room(folder: Path, restart_behavior: str) -> None:
    """What `--restart_behavior` asks for: an older run of this name goes on, is moved aside, or is removed."""
    if restart_behavior == "restart" and folder.is_dir():
        numbers = itertools.count(1)
        folder.rename(next(old for n in numbers if not (old := folder.with_name(f"{folder.name}_old{n:04d}")).exists()))
    elif restart_behavior == "overwrite" and folder.is_dir():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)


def not_writable(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"{folder} cannot be written to ({error.strerror}); choose another --train_dir or --experiment")


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a run. It may come from elsewhere, so nothing that it names is run."""
    path = folder / CONFIG
    try:
        config = json.loads(path.read_text())
        if not isinstance(config, dict):
            raise ValueError("it is not a JSON object")
    except FileNotFoundError as error:
        raise UsageError(f"{path} does not exist; {folder} must be the folder of a run") from error
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read ({error})") from error
    return config


def save_config(cfg: dict[str, Any], folder: Path) -> None:
    with replacing(folder / CONFIG) as file:
        file.write(json.dumps(cfg, indent=2, default=str).encode() + b"\n")


def note_command(cfg: Any, folder: Path) -> None:
    """Add this command to the run's history: one line of JSON for each time it was started or resumed."""
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": f"sf-explore-go train {cfg.command_line}",
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "packages": {"sf-explore-go": __version__} | {name: metadata.version(name) for name in PACKAGES},
        "git": git_state(),
    }
    with (folder / HISTORY_FILE).open("a") as file:
        file.write(json.dumps(line) + "\n")


def git_state() -> dict[str, Any] | None:
    """Commit of the sources that run here, and whether they have changed since; None outside a checkout."""
    source = Path(__file__).resolve().parent
    try:
        commit = _git(source, "rev-parse", "HEAD")
        tracked = _git(source, "ls-files", "--error-unmatch", Path(__file__).name)
    except (OSError, subprocess.SubprocessError):
        return None
    if not tracked:
        return None
    return {"commit": commit, "dirty": _git(source, "status", "--porcelain", "--untracked-files=no") != ""}


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()
