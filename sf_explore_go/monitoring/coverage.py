"""How much of the world the explore phases of a training see: curves, and pictures on the map."""

from typing import Any

from numpy.typing import NDArray

from sf_explore_go.core.observers import Observer
from sf_explore_go.evaluation.coverage import Coverage
from sf_explore_go.training.clock import FrameClock
from sf_explore_go.training.messages import EXPLORE_PHASE
from sf_explore_go.worlds.base import World

PICTURES_PER_RUN = 20


class CoverageObserver(Observer):
    """Of a world that has cells; others have nothing to show."""

    def __init__(self, world: World, budget: int) -> None:
        self._world, self._cells = world, world.cells()
        self._coverage = Coverage(self._cells) if self._cells is not None else None
        self._picture_clock = FrameClock(max(1, budget // PICTURES_PER_RUN))

    def on_init(self, runner: Any) -> None:
        if self._coverage is not None:
            runner.policy_msg_handlers[EXPLORE_PHASE] = [self._on_explore_phase]

    def _on_explore_phase(self, runner: Any, msg: dict, policy_id: int) -> None:
        assert self._coverage is not None
        self._coverage.add(**msg[EXPLORE_PHASE])

    def extra_summaries(self, runner: Any, policy_id: int, writer: Any, env_steps: int) -> None:
        if policy_id != 0 or not self._coverage:
            return
        for tag, value in self._coverage.scalars().items():
            writer.add_scalar(tag, value, env_steps)
        if self._picture_clock.is_due(env_steps):
            for tag, picture in coverage_pictures(self._coverage, self._world).items():
                writer.add_image(tag, picture, env_steps, dataformats="HWC")


def coverage_pictures(coverage: Coverage, world: World) -> dict[str, NDArray]:
    """tag -> picture [height, width, RGB]; nothing where there is no map to draw on."""
    if len(coverage) == 0:
        return {}
    together = coverage.scalars()["explore/coverage_together"]
    starts = coverage.cells.visit_counts(coverage.starts())
    pictures = {
        "explore/visits": world.map_image(
            heat=coverage.visits(), title=f"{len(coverage)} explore phases: {together:.0%} of the map"
        ),
        "explore/go_starts": world.map_image(heat=starts, title=f"Where {starts.sum()} go phases started"),
    }
    return {tag: picture for tag, picture in pictures.items() if picture is not None}
