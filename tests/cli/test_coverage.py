"""Coverage of maps drawn by hand."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from sf_explore_go.cli import coverage as coverage_command
from sf_explore_go.core.errors import run
from sf_explore_go.evaluation.coverage import Coverage, effective_cells, measure
from sf_explore_go.evaluation.explore import Nobody
from sf_explore_go.monitoring.coverage import coverage_pictures
from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.registry import world_of
from tests.cli.test_enjoy import make_run

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


def cells_of(env: str) -> CellGrid:
    cells = world_of(env).cells()
    assert cells is not None
    return cells


def test_cells_of_our_worlds() -> None:
    assert cells_of("illustrative_train").free.sum() == 9
    assert cells_of("my_way_home_test").free.sum() == 248
    assert cells_of("my_way_home_small_test").free.sum() == 135


@pytest.mark.parametrize("env", ["my_way_home_train", "my_way_home_small_train"])
def test_pictures_of_the_labyrinth(env: str) -> None:
    world = world_of(env)
    coverage = Coverage(cells_of(env))
    assert coverage_pictures(coverage, world) == {}
    coverage.add([(464.0, -176.0), (500.0, -176.0)], (500.0, -176.0))
    pictures = coverage_pictures(coverage, world)
    assert set(pictures) == {"explore/visits", "explore/go_starts"}
    assert all(picture.ndim == 3 and picture.shape[2] == 3 for picture in pictures.values())
    assert not np.array_equal(pictures["explore/visits"], pictures["explore/go_starts"])


def test_a_world_of_plain_cells_has_pictures_too() -> None:
    coverage = Coverage(cells_of("illustrative_train"))
    coverage.add([(2, 0), (2, 1)], (2, 1))
    pictures = coverage_pictures(coverage, world_of("illustrative_train"))
    assert set(pictures) == {"explore/visits", "explore/go_starts"}
    visits = pictures["explore/visits"][72::144, 72::144]  # the middle of each cell, north up
    assert pictures["explore/visits"].shape == (720, 720, 3)
    seen = {(x, 4 - row) for row in range(5) for x in range(5) if visits[row, x].tolist() == [77, 0, 75]}
    assert seen == {(2, 0), (2, 1)}


class Steps:
    """An environment of one actor: a walk to the right, one cell per decision, that ends after `length` of them."""

    def __init__(self, length: int) -> None:
        self.length = length

    def reset(self, seed: int) -> tuple[list, list]:
        self.x = 0
        return [{}], [{"position": (1.0, 1.0)}]

    def step(self, actions: list) -> tuple[list, list, list, list, list]:
        self.x += 1
        return [{}], [0.0], [self.x == self.length], [False], [{"position": (1.0 + 10 * self.x, 1.0)}]


class Walks:
    def begin(self, obs: dict, seed: int) -> None: ...

    def act(self, obs: dict) -> int:
        return 0


def test_the_agent_takes_over_after_k_decisions() -> None:
    """k is uniform on 0 to K; where the episode has ended before, the agent does not start at all."""
    row = CellGrid(np.ones((1, 6), bool), (0.0, 0.0), 10.0)
    measured = measure("walks", Walks(), Steps(length=99), row, phases=6000, steps=5, seed=1)
    starts = np.array([x for x, _ in measured.coverage.starts()])
    counts = np.bincount(((starts - 1) / 10).astype(int), minlength=6)
    assert counts.sum() == 6000
    assert (np.abs(counts - 1000) < 5 * np.sqrt(1000 * 5 / 6)).all()
    assert measured.row()["start_cells"] == pytest.approx(6, abs=0.01)
    short = measure("walks", Walks(), Steps(length=3), row, phases=600, steps=5, seed=1)
    assert {x for x, _ in short.coverage.starts()} == {1.0, 11.0, 21.0}  # nobody acts in the fourth state
    nobody = measure("none", Nobody(), Steps(length=3), row, phases=10, steps=0, seed=1)
    assert nobody.coverage.starts() == [(1.0, 1.0)] * 10


def test_a_table_for_people_and_json_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "run", "illustrative_train", "illustrative")
    flags = [f"--train_dir={tmp_path}", "--experiment=run", "--phases=5", "--steps=4"]
    assert coverage_command.main(flags) == 0  # the run has no trained explorer, so none is asked for
    head, *lines = capsys.readouterr().out.splitlines()
    names = ("explorer", "phases", "decisions", "map per phase", "95 % interval", "map together", "start cells")
    assert re.split(" {2,}", head) == list(names)
    assert [line.split()[0] for line in lines] == ["random", "none"]
    assert len({len(line) for line in [head, *lines]}) == 1
    assert coverage_command.main([*flags, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["explorer"], row["phases"], row["steps"]) for row in rows] == [("random", 5, 4), ("none", 5, 0)]
    for line, row in zip(lines, rows, strict=True):
        assert f"{row['per_phase']:.1%}  " in line
        assert line.endswith(f"{row['start_cells']:.1f}")


@pytest.mark.parametrize("name", ["trained", "e3b", "nobody", "no_such:Module"])
def test_an_explorer_that_cannot_be_had_is_one_sentence_with_the_right_flag(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path / "run", "illustrative_train", "illustrative")
    flags = [f"--train_dir={tmp_path}", "--experiment=run", "--phases=1"]
    assert run(coverage_command.main, [*flags, f"--explorers={name}"]) == 2
    error = capsys.readouterr().err.splitlines()
    assert len(error) == 1
    assert f"--explorers={name}: " in error[0]
    assert "--explorer=" not in error[0]
