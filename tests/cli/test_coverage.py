"""Coverage of maps drawn by hand."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.cli import coverage as coverage_command
from sf_explore_go.core.errors import UsageError, run
from sf_explore_go.evaluation.coverage import Coverage, effective_cells, measure
from sf_explore_go.evaluation.explore import Nobody
from sf_explore_go.evaluation.ladder import check_same
from sf_explore_go.monitoring.coverage import coverage_pictures
from sf_explore_go.runs.checkpoints import read_checkpoint, save_atomically
from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.registry import world_of
from tests.cli.test_enjoy import make_run
from tests.cli.test_foreign_config import make_explorer_checkpoint

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
    assert coverage.reached().tolist() == [[0.5, 0.5, 0], [0.5, 0, 0]]


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
    def begin(self, seat: int, obs: dict, info: dict, seed: int) -> None: ...

    def act(self, seats: Sequence[int], obs: Sequence[dict], infos: Sequence[dict]) -> list[int]:
        return [0] * len(seats)


def test_the_agent_takes_over_after_k_decisions() -> None:
    """k is uniform on 0 to K; where the episode has ended before, the agent does not start at all."""
    row = CellGrid(np.ones((1, 6), bool), (0.0, 0.0), 10.0)
    measured = measure("walks", Walks(), [Steps(length=99)], row, phases=6000, steps=5, seed=1)
    starts = np.array([x for x, _ in measured.coverage.starts()])
    counts = np.bincount(((starts - 1) / 10).astype(int), minlength=6)
    assert counts.sum() == 6000
    assert (np.abs(counts - 1000) < 5 * np.sqrt(1000 * 5 / 6)).all()
    assert effective_cells(measured.start_counts()) == pytest.approx(6, abs=0.01)
    assert measured.effective_starts() == pytest.approx(6, abs=0.01)
    short = measure("walks", Walks(), [Steps(length=3)], row, phases=600, steps=5, seed=1)
    assert {x for x, _ in short.coverage.starts()} == {1.0, 11.0, 21.0}  # nobody acts in the fourth state
    nobody = measure("none", Nobody(), [Steps(length=3)], row, phases=10, steps=0, seed=1)
    assert nobody.coverage.starts() == [(1.0, 1.0)] * 10


def test_a_table_for_people_and_json_for_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "run", "illustrative_train", "illustrative")
    flags = [f"--train_dir={tmp_path}", "--experiment=run", "--phases=5", "--steps=4"]
    assert coverage_command.main(flags) == 0  # the run has no trained explorer, so none is asked for
    head, *lines = capsys.readouterr().out.splitlines()
    names = ("explorer", "phases", "decisions", "map per phase", "95 % interval", "map together", "start cells")
    assert re.split(" {2,}", head) == [*names, "oracle starts"]
    assert [line.split()[0] for line in lines] == ["random", "none", "oracle"]
    assert len({len(line) for line in [head, *lines]}) == 1
    assert coverage_command.main([*flags, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    played = [(row["explorer"], row["phases"], row["steps"]) for row in rows]
    assert played == [("random", 5, 4), ("none", 5, 0), ("oracle", 5, 4)]
    for line, row in zip(lines, rows, strict=True):
        assert f"{row['per_phase']:.1%}  " in line
        assert line.endswith(f"  {row['start_cells_corrected']:>11.1f}  {row['oracle_starts']:>13.0%}")
    assert {path.name for path in (tmp_path / "run").glob("*.*")} >= {
        "coverage.csv", "go_starts.csv", "coverage_random.png", "coverage_oracle.png", "coverage_ladder.png",
    }  # fmt: skip


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


def rows_of(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, dict]:
    """What `coverage --json` prints, by explorer."""
    capsys.readouterr()
    assert run(coverage_command.main, [*argv, "--json"]) == 0
    return {row["explorer"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}


def test_without_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sticky = Path("docs/examples/sticky_explorer.py").resolve()
    monkeypatch.chdir(tmp_path)
    argv = ("--env=illustrative_train", "--phases=40", "--steps=8")
    explorers = ("--explorers=none", "random", f"{sticky}:StickyExplorer", "oracle")
    rows = rows_of(capsys, *argv, *explorers, "--num_envs=1")
    assert list(rows) == ["none", "random", f"{sticky}:StickyExplorer", "oracle"]
    assert rows["none"]["per_phase"] == pytest.approx(1 / 9)
    assert rows["none"]["per_phase"] < rows["random"]["per_phase"] < rows["oracle"]["per_phase"]
    assert rows["oracle"]["oracle_starts"] == 1.0
    assert rows == rows_of(capsys, *argv, *explorers, "--num_envs=7", "--out=elsewhere")
    assert rows != rows_of(capsys, *argv, *explorers, "--eval_seed=1")
    assert {path.name for path in Path("coverage").iterdir()} >= {"coverage.csv", "coverage_ladder.png"}
    assert {path.name for path in tmp_path.iterdir()} == {"coverage", "elsewhere"}


def test_runs_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        make_run(tmp_path / name, "illustrative_train", "illustrative")
        config = tmp_path / name / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | {"explorer": "e3b"}))
        make_explorer_checkpoint(tmp_path / name)
        weights = read_checkpoint(tmp_path / name / "checkpoint_p1/checkpoint_1_5.pth", "cpu")
        torch.manual_seed(seed)
        weights["model"] = {key: torch.randn_like(value) for key, value in weights["model"].items()}
        save_atomically(weights, tmp_path / name / "checkpoint_p1/checkpoint_1_5.pth")
    argv = (f"--train_dir={tmp_path}", "--phases=10", "--steps=6", f"--out={tmp_path / 'out'}")
    rows = rows_of(capsys, *argv, "--experiment=a", "b", "--explorers", "trained", "random")
    assert list(rows) == ["e3b (a)", "e3b (b)", "random"]
    assert rows["e3b (a)"]["per_phase"] != rows["e3b (b)"]["per_phase"]
    assert rows["random"]["oracle_starts"] is None
    assert (tmp_path / "out/coverage_e3b__a_.png").is_file()
    alone = rows_of(capsys, *argv, "--experiment=b", "--num_envs=3")
    assert list(alone) == ["e3b", "random", "none", "oracle"]
    assert alone["e3b"] == rows["e3b (b)"] | {"explorer": "e3b", "oracle_starts": alone["e3b"]["oracle_starts"]}


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([], "whose? Pass --experiment=NAME, --pretrained, or --env=ENV"),
        (["--env=my_way_home"], "--env=my_way_home: it must be my_way_home_train"),
        (["--env=my_way_home_train", "--phazes=3"], "unknown flag --phazes=3; did you mean --phases?"),
        (["--env=my_way_home_train", "--env_frameskip=0"], "--env_frameskip=0: it must be above 0"),
        (["--env=my_way_home_train", "--preset=desktop"], "--preset=desktop: it must be paper or laptop"),
        (["--env=my_way_home_train", "--phases=0"], "--phases=0: it must be a whole number, at least 1"),
        (["--env=my_way_home_train", "--num_envs=0"], "--num_envs=0: it must be a whole number, at least 1"),
        (["--env=my_way_home_train", "--explorers=orakle"], "--explorers=orakle: it must be random"),
        (["--env=my_way_home_train", "--explorers=trained"], "--explorers=trained: without --experiment there"),
        (["--env=my_way_home_train", "--out=/dev/null/x"], "--out=/dev/null/x: it must be a folder"),
        (["--env=docs/examples/my_worlds.py:Corridor", "--explorers=oracle"], "--explorers=oracle: the world of"),
        (["--experiment=a", "--pretrained"], "--pretrained: it is a run of its own"),
        (["--pretrained", "--env_frameskip=4"], "--env_frameskip=4: a run has its own settings"),
        (["--experiment=nowhere"], "nowhere/config.json does not exist"),
    ],
)
def test_bad_input_is_one_sentence(argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(coverage_command.main, argv) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert sentence in error


def test_runs_that_do_not_compare_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, change in (("a", {}), ("b", {"context_seed": 7}), ("c", {"env_frameskip": 2})):
        make_run(tmp_path / name, "illustrative_train", "illustrative")
        config = tmp_path / name / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | change))
    argv = [f"--train_dir={tmp_path}", "--phases=2", f"--out={tmp_path / 'out'}", "--experiment"]
    assert run(coverage_command.main, [*argv, "a", "b"]) == 2
    assert "--experiment=b: it has context_seed=7, but a has 1; it must be the same" in capsys.readouterr().err
    assert run(coverage_command.main, [*argv, "a", "c"]) == 2
    assert "--experiment=c: it has env_frameskip=2, but a has " in capsys.readouterr().err
    assert run(coverage_command.main, [*argv, "a", "b", "--context_seed=3"]) == 0


def test_a_run_older_than_a_worlds_flag_had_its_default() -> None:
    """So it compares with runs that name it."""
    older = AttrDict(env="my_way_home_train", env_frameskip=4, num_contexts=10, context_seed=1)
    random, balanced = (AttrDict(older | {"context_goals": way}) for way in ("random", "balanced"))
    check_same([Path("a"), Path("b")], [older, random])
    for first, second in ((older, balanced), (balanced, older)):
        with pytest.raises(UsageError, match=r"--experiment=b: it has context_goals=.*must be the same in all runs"):
            check_same([Path("a"), Path("b")], [first, second])
