"""Coverage of maps drawn by hand."""

import numpy as np
import pytest

from sf_explore_go.doom.geometry import CellGrid
from sf_explore_go.monitoring.coverage import Coverage, effective_cells, world_cells
from sf_explore_go.monitoring.pictures import coverage_pictures
from sf_explore_go.worlds import world_of

# two rows of three cells of side 10; the one at row 1, column 2 is a wall
CELLS = CellGrid(np.array([[True, True, True], [True, True, False]]), (0.0, 0.0), 10.0)


def test_shares_by_hand() -> None:
    coverage = Coverage(CELLS)
    coverage.add([(1, 1), (2, 2), (11, 1)], (11.0, 1.0))  # two of five free cells
    coverage.add([(1, 11), (25, 15)], None)  # one free cell, and a wall, which does not count
    scalars = coverage.scalars()
    assert scalars["explore/coverage_per_phase"] == pytest.approx((2 / 5 + 1 / 5) / 2)
    assert scalars["explore/coverage_together"] == pytest.approx(3 / 5)
    assert scalars["explore/go_start_cells"] == 1
    assert coverage.visits().tolist() == [[2, 1, 0], [1, 0, 0]]


def test_only_the_last_phases_count() -> None:
    coverage = Coverage(CELLS, phases_kept=2)
    for x in (1, 11, 21):
        coverage.add([(x, 1)], (x, 1.0))
    assert coverage.visits().tolist() == [[0, 1, 1], [0, 0, 0]]
    assert coverage.starts() == [(11, 1.0), (21, 1.0)]


def test_nothing_before_the_first_phase() -> None:
    assert Coverage(CELLS).scalars() == {}


def test_effective_cells() -> None:
    assert effective_cells([3, 3, 0, 3]) == pytest.approx(3)
    assert effective_cells([7]) == 1
    assert 1 < effective_cells([9, 1]) < 2


def test_cells_of_our_worlds() -> None:
    assert world_cells(world_of("illustrative_train")).free.sum() == 9
    assert world_cells(world_of("my_way_home_test")).free.sum() == 248
    assert world_cells(world_of("my_way_home_small_test")).free.sum() == 135


@pytest.mark.parametrize("env", ["my_way_home_train", "my_way_home_small_train"])
def test_pictures_of_the_labyrinth_and_none_of_the_cross(env: str) -> None:
    world = world_of(env)
    coverage = Coverage(world_cells(world))
    assert coverage_pictures(coverage, world) == {}
    coverage.add([(464.0, -176.0), (500.0, -176.0)], (500.0, -176.0))
    pictures = coverage_pictures(coverage, world)
    assert set(pictures) == {"explore/visits", "explore/go_starts"}
    assert all(picture.ndim == 3 and picture.shape[2] == 3 for picture in pictures.values())
    assert not np.array_equal(pictures["explore/visits"], pictures["explore/go_starts"])
    cross = world_of("illustrative_train")
    assert coverage_pictures(coverage, cross) == {}
