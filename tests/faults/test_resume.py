"""A run that was interrupted is the run that was not, but for the episodes that were being played."""

from pathlib import Path
from typing import Any

import pytest
import torch

from sf_explore_go.cli.train import make_runner
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.names import checkpoints_in
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.training.runner import ExploreGoSerialRunner
from tests.e2e.cli import sf_explore_go, train
from tests.faults.training import GRID

pytestmark = pytest.mark.slow

SERIAL = (*GRID, "--serial_mode=True", "--num_workers=1", "--batch_size=20", "--num_batches_per_epoch=1")
HALF = 1600  # frames: 20 updates and more of each policy
NOT_STATE = {"config", "generators"}  # flags of the command, and where the generators stood when the file was written


def same(a: Any, b: Any) -> bool:
    """Bit by bit, through dictionaries and lists."""
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`straight` is trained in one piece, `halves` in two."""
    folder = tmp_path_factory.mktemp("resume")
    train(folder, "straight", *SERIAL, f"--train_for_env_steps={2 * HALF}", f"--milestone_step_freq={HALF}")
    train(folder, "halves", *SERIAL, f"--train_for_env_steps={HALF}", f"--milestone_step_freq={HALF}")
    return folder


def newest(folder: Path, name: str, policy: int) -> dict[str, Any]:
    return read_checkpoint(checkpoints_in(folder / name / f"checkpoint_p{policy}")[-1], "cpu")


def test_both_are_the_same_until_then(folder: Path) -> None:
    first = sorted((folder / "straight" / "checkpoint_p0" / "milestones").glob("*.pth"))[0]
    assert same(read_checkpoint(first, "cpu")["model"], newest(folder, "halves", 0)["model"])
    assert newest(folder, "halves", 0)["train_step"] >= 20


def test_what_is_loaded_is_what_was_saved(folder: Path) -> None:
    flags = [*SERIAL, f"--train_dir={folder}", "--experiment=halves", f"--train_for_env_steps={2 * HALF}"]
    register_worlds()
    runner = make_runner(parse_train_args(flags))
    assert isinstance(runner, ExploreGoSerialRunner)
    runner.init()
    for policy in (0, 1):
        saved = newest(folder, "halves", policy)
        learner = runner.learners[policy].learner
        learner.init()
        loaded = learner._get_checkpoint_dict()
        assert all(same(loaded[key], saved[key]) for key in saved.keys() - NOT_STATE), policy
        assert torch.equal(torch.get_rng_state(), saved["generators"]["torch"])


def test_the_second_half_goes_on_with_exact_counters(folder: Path) -> None:
    before = [newest(folder, "halves", policy) for policy in (0, 1)]
    train(folder, "halves", *SERIAL, f"--train_for_env_steps={2 * HALF}", f"--milestone_step_freq={HALF}")
    for policy in (0, 1):
        half, end, straight = before[policy], newest(folder, "halves", policy), newest(folder, "straight", policy)
        assert end["train_step"] > half["train_step"]
        assert sum(end["frames"]) >= 2 * HALF > sum(half["frames"]) - 1
        # environments begin new episodes after a resume, so the data, and hence the weights, are others from here on
        assert not same(end["model"], straight["model"])
        assert abs(sum(end["frames"]) - sum(straight["frames"])) < HALF / 10


def test_a_run_that_has_its_budget_is_not_started_again(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (folder / "straight").rglob("*")}
    flags = ("train", *SERIAL, f"--train_dir={folder}", "--experiment=straight", f"--train_for_env_steps={2 * HALF}")
    result = sf_explore_go(*flags)
    assert result.returncode == 0
    assert f"of --train_for_env_steps={2 * HALF}; nothing to do" in result.stdout
    assert {path: path.stat().st_mtime_ns for path in (folder / "straight").rglob("*")} == before
