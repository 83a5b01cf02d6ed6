"""Reading what a run has shown in TensorBoard."""

from pathlib import Path
from typing import Any

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def accumulate(folder: Path, policy_id: int | str = 0) -> Any:
    events: Any = EventAccumulator(str(folder / ".summary" / str(policy_id)), size_guidance={"scalars": 0, "images": 0})
    events.Reload()
    return events


def scalars_of(folder: Path, policy_id: int | str = 0) -> dict[str, list[tuple[int, float]]]:
    """tag -> [(frames, value)]"""
    events = accumulate(folder, policy_id)
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def all_tags(folder: Path) -> set[str]:
    """Scalars and images of every policy and split of a run."""
    tags: set[str] = set()
    for policy in sorted((folder / ".summary").iterdir()):
        if policy.is_dir():
            found = accumulate(folder, policy.name).Tags()
            tags |= {*found["scalars"], *found["images"]}
    return tags
