"""Frames, counted once, where they are made.

Each rollout worker adds the frames of its environments (decisions x frameskip) to its own row of a shared table, split
by phase; nobody else writes there, so no lock is needed and no message can be lost. The sum is the one clock of a run:
it ends the training, places milestones, drives learning-rate schedules and is the x-axis of every plot. Row 0 holds
what earlier parts of a resumed run have made. Beside the table stands the total at which explore phases began, where
they wait for the agent's success; the main process writes it once.
"""

from typing import NamedTuple

import torch

from sf_explore_go.phases.schedule import Phase

NOT_YET = -1


class Frames(NamedTuple):
    """Environment frames by phase."""

    explore: int
    go: int

    @property
    def total(self) -> int:
        return self.explore + self.go


class FrameCounter:
    """The shared table: int64 [1 + workers, phases]."""

    def __init__(self, num_workers: int, *, share: bool) -> None:
        self._table = torch.zeros((num_workers + 1, len(Phase)), dtype=torch.int64)
        self._explore_began = torch.full((1,), NOT_YET, dtype=torch.int64)
        if share:
            self._table.share_memory_()
            self._explore_began.share_memory_()

    def row(self, worker_idx: int) -> "WorkerFrames":
        return WorkerFrames(self._table, worker_idx)

    def read(self) -> Frames:
        explore, go = self._table.sum(dim=0).tolist()
        return Frames(explore, go)

    def total(self) -> int:
        return int(self._table.sum())

    def made_by(self, worker_idx: int) -> int:
        """Frames of one rollout worker since this command began."""
        return int(self._table[worker_idx + 1].sum())

    def restored(self) -> Frames:
        """What this run started from; zero unless it was resumed."""
        explore, go = self._table[0].tolist()
        return Frames(explore, go)

    @property
    def explore_began(self) -> int | None:
        """The total at which explore phases began; None if they have not, or never had to wait."""
        frames = int(self._explore_began)
        return None if frames == NOT_YET else frames

    def note_explore_began(self) -> None:
        self._explore_began[0] = self.total()

    def restore(self, frames: Frames, explore_began: int | None = None) -> None:
        """Set the start of a resumed run; called before any environment steps."""
        self._table[0] = torch.tensor(frames)
        self._explore_began[0] = NOT_YET if explore_began is None else explore_began


class WorkerFrames:
    """The row of one rollout worker, as a NumPy view: cheap to add to at every step."""

    def __init__(self, table: torch.Tensor, worker_idx: int) -> None:
        self._row = table.numpy()[worker_idx + 1]

    def add(self, phase: Phase, frames: int) -> None:
        self._row[phase] += frames
