"""A run that goes on from its best checkpoint has left the line that came after it, for good."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sf_explore_go.runs.names import checkpoints_in, find_checkpoints, milestones
from tests.e2e.cli import sf_explore_go, train
from tests.faults.training import GRID, total_frames

pytestmark = pytest.mark.slow

SERIAL = (*GRID, "--serial_mode=True", "--num_workers=1", "--batch_size=20", "--milestone_step_freq=800")


def go_on(folder: Path, frames: int, *flags: str) -> dict[str, Any]:
    """Train until the run has these frames; the part that this has added, from status.json."""
    train(folder, "run", *SERIAL, f"--train_for_env_steps={frames}", *flags)
    part: dict[str, Any] = json.loads((folder / "run/status.json").read_text())["parts"][-1]
    return part


def evaluated(run: Path, choice: str) -> list[tuple[int, str]]:
    """Frames and file of each row of evaluation.csv after these checkpoints were evaluated."""
    where = (f"--train_dir={run.parent}", f"--experiment={run.name}", f"--checkpoint={choice}")
    result = sf_explore_go("evaluate", *where, "--episodes=2", "--split=test")
    assert result.returncode == 0, result.stderr[-2000:]
    with (run / "evaluation.csv").open(newline="") as file:
        return [(int(row["frames"]), row["checkpoint"]) for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 4800 frames whose best checkpoint has 1600; all its milestones are evaluated."""
    folder = tmp_path_factory.mktemp("best")
    go_on(folder, 1600)
    agent = folder / "run/checkpoint_p0"
    newest = checkpoints_in(agent)[-1]
    shutil.copy(newest, agent / f"{newest.stem.replace('checkpoint', 'best')}_reward_0.500.pth")
    go_on(folder, 4800)
    assert len(evaluated(folder / "run", "all")) == len(milestones(folder / "run")) == 6
    return folder


def test_a_later_resume_stays_on_the_new_line(left: Path, tmp_path: Path) -> None:
    run = shutil.copytree(left / "run", tmp_path / "run")
    (best,) = checkpoints_in(run / "checkpoint_p0", "best")
    before = {path.name: path.read_bytes() for path in [*checkpoints_in(run / "checkpoint_p0"), *milestones(run)]}
    explorer = total_frames(checkpoints_in(run / "checkpoint_p1")[-1])

    from_best = go_on(tmp_path, 3200, "--load_checkpoint_kind=best")
    assert from_best["begun_at"] == total_frames(best) < 2400
    assert max(total_frames(path) for path in milestones(run)) == from_best["ended_at"] < 4800 <= explorer
    assert total_frames(find_checkpoints(run, "latest")[0]) == from_best["ended_at"]

    later = go_on(tmp_path, 4000)
    assert later["begun_at"] == from_best["ended_at"]
    assert total_frames(find_checkpoints(run, "latest")[0]) == later["ended_at"] < 4800

    # nothing is lost: what is no longer in its place lies in the folder of what was left
    aside = {path.name: path.read_bytes() for path in (run / "abandoned0001").rglob("*.pth")}
    newest, last_milestone = sorted(before)[1], sorted(before)[-1]
    assert {newest, last_milestone} <= aside.keys()
    assert all(before[name] == content for name, content in aside.items())

    with (run / "evaluation.csv").open(newline="") as file:  # as training has left it
        assert all(int(row["frames"]) <= total_frames(best) for row in csv.DictReader(file))
    rows = evaluated(run, "all")
    assert rows == [(total_frames(path), path.name) for path in milestones(run)]
    assert evaluated(run, "latest")[-1][0] == later["ended_at"]


def test_to_go_on_from_best_again_sets_aside_again(left: Path, tmp_path: Path) -> None:
    run = shutil.copytree(left / "run", tmp_path / "run")
    for number in (1, 2):
        part = go_on(tmp_path, 3200, "--load_checkpoint_kind=best")
        assert part["begun_at"] == total_frames(checkpoints_in(run / "checkpoint_p0", "best")[0])
        assert (run / f"abandoned000{number}").is_dir()
    assert json.loads((run / "config.json").read_text())["load_checkpoint_kind"] == "latest"


def test_without_a_best_checkpoint_it_is_one_sentence(left: Path, tmp_path: Path) -> None:
    run = shutil.copytree(left / "run", tmp_path / "run")
    checkpoints_in(run / "checkpoint_p0", "best")[0].unlink()
    where = (f"--train_dir={tmp_path}", "--experiment=run", "--load_checkpoint_kind=best")
    result = sf_explore_go("train", *SERIAL, "--train_for_env_steps=9000", *where)
    assert result.returncode == 2
    assert "--load_checkpoint_kind=best: " in result.stderr
    assert "has no best checkpoint" in result.stderr
    assert not list(run.glob("abandoned*"))
