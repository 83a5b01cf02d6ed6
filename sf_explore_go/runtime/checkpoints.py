"""Writing and reading checkpoint files.

A checkpoint is a plain dictionary of tensors, numbers and strings, so that it loads with `weights_only=True` and
executes nothing. It is written to a temporary file, synced and renamed: whoever reads sees the old file or the new one,
never half of one.
"""

import os
import pickle
from pathlib import Path
from typing import Any

import torch

from sf_explore_go.errors import UsageError


class CheckpointError(UsageError):
    """No checkpoint could be read although there are some."""


def save_atomically(state: dict[str, Any], path: Path) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_checkpoint(path: Path, device: Any) -> dict[str, Any]:
    """Load one file; raises CheckpointError with a sentence if it cannot be read."""
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, KeyError, pickle.UnpicklingError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"checkpoint {path} cannot be read ({reason})") from error
    if not isinstance(state, dict) or "model" not in state:
        raise CheckpointError(f"checkpoint {path} cannot be read (it holds no model)")
    return state


def read_newest(paths: list[Path], device: Any, warn: Any) -> dict[str, Any] | None:
    """The newest checkpoint that loads (`paths` oldest first); None if there is none at all.

    A damaged file is passed over with a warning. If there are checkpoints and none of them loads, this raises: a run
    that started from zero beside its own results would be the worse surprise.
    """
    for path in reversed(paths):
        try:
            return read_checkpoint(path, device)
        except CheckpointError as error:
            warn(f"{error}; trying the one before")
    if paths:
        raise CheckpointError(
            f"none of the {len(paths)} checkpoints in {paths[0].parent} can be read; nothing was changed"
        )
    return None
