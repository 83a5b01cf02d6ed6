"""A learning rate that is changed for the next part of a run is the one that it learns with."""

from pathlib import Path
from typing import Any

import pytest
from sample_factory.algo.utils.misc import ExperimentStatus

from sf_explore_go.cli.train import make_runner
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.names import checkpoints_in
from sf_explore_go.training.environments import register_worlds
from tests.e2e.cli import scalars

SERIAL = (
    "--env=illustrative_train", "--explorer=e3b", "--max_pure_expl_steps=8", "--seed=3", "--batch_size=20",
    "--num_batches_per_epoch=1", "--experiment=run",
)  # fmt: skip
PART = 300  # frames


def runner_of(folder: Path, parts: int, *flags: str) -> Any:
    register_worlds()
    budget = f"--train_for_env_steps={parts * PART}"
    return make_runner(parse_train_args([*SERIAL, f"--train_dir={folder}", budget, *flags]))


def train(folder: Path, parts: int, *flags: str) -> None:
    runner = runner_of(folder, parts, *flags)
    assert runner.init() == runner.run() == ExperimentStatus.SUCCESS


def newest(folder: Path, policy: int) -> dict[str, Any]:
    return read_checkpoint(checkpoints_in(folder / "run" / f"checkpoint_p{policy}")[-1], "cpu")


def rates(state: dict[str, Any]) -> list[float]:
    """What the optimisers of a checkpoint took their last step with."""
    optimisers = [state["optimizer"], *([state["e3b"]["optimizer"]] if "e3b" in state else [])]
    return [optimiser["param_groups"][0]["lr"] for optimiser in optimisers]


def first_rate(folder: Path, policy: int, parts: int, *flags: str) -> float:
    """That a policy's learner would begin the next part with."""
    runner = runner_of(folder, parts, *flags)
    runner.init()
    learner = runner.learners[policy].learner
    learner.init()
    assert learner.optimizer.param_groups[0]["lr"] == learner.curr_lr
    return float(learner.curr_lr)


def test_both_policies_and_the_inverse_model_learn_with_the_new_rate(tmp_path: Path) -> None:
    train(tmp_path, 1, "--learning_rate=1e-3", "--explorer_learning_rate=2e-3")
    assert [rates(newest(tmp_path, policy)) for policy in (0, 1)] == [[1e-3], [2e-3, 2e-3]]

    train(tmp_path, 2, "--learning_rate=1e-6", "--explorer_learning_rate=3e-6")
    assert [rates(newest(tmp_path, policy)) for policy in (0, 1)] == [[1e-6], [3e-6, 3e-6]]
    for policy, rate in ((0, 1e-6), (1, 3e-6)):
        used = [value for frames, value in scalars(tmp_path / "run", policy)["train/actual_lr"] if frames > 1.2 * PART]
        assert used
        assert used == pytest.approx([rate] * len(used))

    train(tmp_path, 3)  # what the run was last told holds on
    assert [rates(newest(tmp_path, policy)) for policy in (0, 1)] == [[1e-6], [3e-6, 3e-6]]


def test_an_explorer_without_a_rate_of_its_own_follows(tmp_path: Path) -> None:
    train(tmp_path, 1, "--learning_rate=1e-3")
    train(tmp_path, 2, "--learning_rate=1e-6")
    assert rates(newest(tmp_path, 1)) == [1e-6, 1e-6]


@pytest.mark.parametrize("policy", [0, 1])
def test_an_adaptive_rate_goes_on_unless_the_flag_changes(tmp_path: Path, policy: int) -> None:
    adaptive = "--lr_schedule=kl_adaptive_epoch"
    train(tmp_path, 1, adaptive, "--learning_rate=1e-3")
    stands_at = newest(tmp_path, policy)["curr_lr"]
    assert stands_at != 1e-3
    assert first_rate(tmp_path, policy, 2, adaptive, "--learning_rate=1e-3") == stands_at
    assert first_rate(tmp_path, policy, 2) == stands_at
    assert first_rate(tmp_path, policy, 2, "--learning_rate=1e-5") == 1e-5


def test_a_rate_that_decays_keeps_its_position(tmp_path: Path) -> None:
    runner = runner_of(tmp_path, 4, "--lr_schedule=linear_decay", "--learning_rate=1e-3")
    runner.init()
    runner._should_end_training = lambda: runner.frames.total >= PART  # a quarter of its budget
    runner.run()
    stands_at = newest(tmp_path, 0)["curr_lr"]
    assert 0.7e-3 < stands_at < 0.8e-3
    assert first_rate(tmp_path, 0, 4, "--learning_rate=1e-4") == pytest.approx(0.1 * stands_at)
