"""A batcher that keeps rollouts in the order in which they arrive."""

from collections import deque

from sample_factory.algo.learning.batcher import Batcher
from sample_factory.algo.utils.rl_utils import trajectories_per_training_iteration

from sf_explore_go.training.buffers import add_phase_tensors


class RolloutQueue:
    """First in, first out, with the interface of Sample Factory's SliceMerger.

    The original merges neighbouring buffers into longer slices, which lets a later rollout of an environment overtake
    an earlier one. The elliptical bonus follows an explore phase across rollouts, so here nothing overtakes.
    """

    def __init__(self) -> None:
        self._slices: deque[slice] = deque()

    @property
    def total_num(self) -> int:
        return len(self._slices)

    def merge_slices(self, trajectory_slice: slice) -> None:
        """Take one rollout (a slice of length 1, as non-batched sampling makes them)."""
        assert trajectory_slice.stop - trajectory_slice.start == 1
        self._slices.append(trajectory_slice)

    def get_at_most(self, count: int) -> slice | None:
        """The oldest rollout, with the ones that follow it in both arrival and memory; at most `count`."""
        if not self._slices:
            return None
        first = self._slices.popleft()
        stop = first.stop
        while self._slices and self._slices[0].start == stop and stop - first.start < count:
            stop = self._slices.popleft().stop
        return slice(first.start, stop)


class ExploreGoBatcher(Batcher):
    """Used when there is an explore phase; the baseline keeps Sample Factory's batcher."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        # the parent takes the run's number from the buffers; the explorer's batch may have a size of its own
        self.traj_per_training_iteration = trajectories_per_training_iteration(self.cfg)
        self.slices_for_training: dict[str, RolloutQueue] = {device: RolloutQueue() for device in self.traj_tensors}

    def init(self) -> None:
        super().init()
        for batch in self.training_batches:
            # without these keys the copy from shared memory would drop the phase tensors in silence
            add_phase_tensors(batch, self.cfg, batch["dones"].device, share=False)
