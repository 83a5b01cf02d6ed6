"""Writing and reading checkpoint files.

A checkpoint is a plain dictionary of tensors, numbers and strings, so that it loads with `weights_only=True` and
executes nothing. It is written to a temporary file, synced and renamed: whoever reads sees the old file or the new one,
never half of one.
"""

from pathlib import Path
from typing import Any

import torch

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.files import replacing

FORMAT = 2  # of what the learners write; 1 had no generators and no configuration
MET = "met"  # in a milestone of a world whose states can be listed: which share of them the training had met


class CheckpointError(UsageError):
    """No checkpoint could be read although there are some."""


class ForeignCheckpointError(CheckpointError):
    """A sound file, but not one that this version writes."""


def save_atomically(state: dict[str, Any], path: Path) -> None:
    with replacing(path) as file:
        torch.save(state, file)


def read_checkpoint(path: Path, device: Any) -> dict[str, Any]:
    """Load one file; raises CheckpointError with a sentence if it cannot be read."""
    try:
        state = torch.load(path, map_location=device, weights_only=True)
    except Exception as error:  # a damaged file can raise nearly anything
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"checkpoint {path} cannot be read ({reason[:200]})") from error
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise CheckpointError(f"checkpoint {path} cannot be read (it has no model)")
    check_format(state, path)
    return state


def check_format(state: dict[str, Any], path: Path) -> None:
    version = state.get("format", 1 if "frames" in state else None)
    if version is None:
        raise ForeignCheckpointError(
            f"checkpoint {path} was written by Sample Factory itself; it must come from sf-explore-go train"
        )
    if version != FORMAT:
        raise ForeignCheckpointError(
            f"checkpoint {path} has format {version!r}; this version reads format {FORMAT}: use the version that wrote"
            " it, or start a new run with another --experiment"
        )


def read_newest(paths: list[Path], device: Any, warn: Any) -> dict[str, Any] | None:
    """The newest checkpoint that loads (`paths` oldest first); None if there is none at all."""
    found = newest_readable(paths, device, warn)
    return found[1] if found is not None else None


def newest_readable(paths: list[Path], device: Any, warn: Any) -> tuple[Path, dict[str, Any]] | None:
    """The same with its path.

    A damaged file is passed over with a warning. If there are checkpoints and none of them loads, this raises: starting
    from zero beside the run's own results would be worse.
    """
    for path in reversed(paths):
        try:
            return path, read_checkpoint(path, device)
        except ForeignCheckpointError:
            raise
        except CheckpointError as error:
            warn(f"{error}; trying the previous one")
    if paths:
        raise CheckpointError(
            f"none of the {len(paths)} checkpoints in {paths[0].parent} can be read; nothing was changed"
        )
    return None
