"""The agent that comes with the package can be played at once, and plays well."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sf_explore_go.cli import enjoy, evaluate
from sf_explore_go.cli.build_pretrained import build
from sf_explore_go.core.errors import UsageError, run
from sf_explore_go.runs.checkpoints import read_checkpoint, save_atomically
from sf_explore_go.runs.pretrained import SOURCE
from sf_explore_go.runs.scores import read_scores
from tests.cli.test_enjoy import film, make_run


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in SOURCE.rglob("*") if path.is_file()) <= 2_000_000


def test_it_solves_its_training_contexts(tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in SOURCE.rglob("*")}
    command = [sys.executable, "-m", "sf_explore_go", "evaluate", "--pretrained", f"--train_dir={tmp_path / 'runs'}"]
    result = subprocess.run([*command, "--episodes=60"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    scores = {one.split: one for one in read_scores(tmp_path / "runs/pretrained/evaluation.csv")}
    assert scores["train"].success_rate >= 0.9
    assert scores["test"].success_rate >= 0.8
    assert {path: path.stat().st_mtime_ns for path in SOURCE.rglob("*")} == before  # nothing is written there
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["pretrained"]


def test_a_film_with_its_explorer(tmp_path: Path) -> None:
    flags = ["--pretrained", f"--train_dir={tmp_path}", "--split=train", "--episodes=1", "--explore_steps=5"]
    assert enjoy.main([*flags, f"--save_video={tmp_path / 'film.mp4'}"]) == 0
    assert len(film(tmp_path / "film.mp4")) > 5


@pytest.mark.parametrize("flags", [[], ["--pretrained", "--experiment=mine"]], ids=["neither", "both"])
def test_one_of_two_flags(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(evaluate.main, flags) == 2
    error = capsys.readouterr().err
    assert "--experiment" in error
    assert "--pretrained" in error


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert run(evaluate.main, ["--pretrained", f"--train_dir={tmp_path / 'file'}"]) == 2
    assert f"--train_dir={tmp_path / 'file'} cannot be written to" in capsys.readouterr().err


def test_built_from_a_run(tmp_path: Path) -> None:
    """The networks stay as they are; optimisers, and paths of the machine, stay behind."""
    run_folder, target = tmp_path / "runs/mine", tmp_path / "published"
    make_run(run_folder, "illustrative_train", "illustrative")
    path = run_folder / "checkpoint_p0/checkpoint_1_5.pth"
    state = read_checkpoint(path, "cpu")
    save_atomically(state | {"train_step": 1, "optimizer": {"large": torch.zeros(10)}}, path)
    build(run_folder, target)
    published = read_checkpoint(target / "checkpoint_p0/checkpoint_1_5.pth", "cpu")
    assert "optimizer" not in published
    assert all(torch.equal(published["model"][name], value) for name, value in state["model"].items())
    assert "train_dir" not in json.loads((target / "config.json").read_text())
    with pytest.raises(UsageError, match="has no checkpoint"):
        build(tmp_path / "runs", target)
