"""Pictures for TensorBoard: where explore phases have been, and where they left the agent."""

from numpy.typing import NDArray

from sf_explore_go.monitoring.coverage import Coverage
from sf_explore_go.worlds.registry import World

PICTURES_PER_RUN = 20


def coverage_pictures(coverage: Coverage, world: World) -> dict[str, NDArray]:
    """tag -> picture [height, width, RGB]; only worlds that have a map to draw on give any."""
    if world.kind != "doom" or len(coverage) == 0:
        return {}
    from sf_explore_go.worlds.doom.mapview import map_image

    together = coverage.scalars()["explore/coverage_together"]
    title = f"{len(coverage)} explore phases: {together:.0%} of the map"
    starts = coverage.cells.visit_counts(coverage.starts())
    return {
        "explore/visits": map_image(world.scenario, heat=coverage.visits(), title=title),
        "explore/go_starts": map_image(world.scenario, heat=starts, title=f"Where {starts.sum()} go phases started"),
    }
