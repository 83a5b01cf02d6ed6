"""A batch without reward is not blown up to the size of one with."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_factory.algo.learning.learner import Learner

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.training.advantages import AdvantageScale
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.training.learner import ExploreGoLearner
from sf_explore_go.training.runner import ExploreGoSerialRunner


def test_by_hand() -> None:
    scale = AdvantageScale(memory=0.5)
    assert scale.share(2.0) == 1  # the first: nothing to compare with but itself
    # variances 4 and 0.01 with weights 1/4 and 1/2, of together 3/4
    assert scale.share(0.1) == pytest.approx(0.1 / math.sqrt((4 / 4 + 0.01 / 2) / 0.75))
    # 4, 0.01 and 9 with 1/8, 1/4 and 1/2, of together 7/8: louder than usual, so as in Sample Factory
    assert scale.share(3.0) == 1
    assert scale.variance / scale.weight == pytest.approx((4 / 8 + 0.01 / 4 + 9 / 2) / (7 / 8))


def test_all_batches_alike_change_nothing() -> None:
    scale = AdvantageScale(memory=0.99)
    assert [scale.share(0.3) for _ in range(100)] == pytest.approx([1.0] * 100)


def test_a_batch_of_equal_advantages() -> None:
    assert AdvantageScale(memory=0.99).share(0.0) == 1


def test_a_learner_weighs_its_policy_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real run: every loss of Sample Factory's learner times what its spread is to the usual one, from the start."""
    stock, ours = [], []
    stock_losses, our_losses = Learner._calculate_losses, ExploreGoLearner._calculate_losses

    def note_stock(self: Any, *args: Any) -> Any:
        result = stock_losses(self, *args)
        stock.append((result[1].item(), result[-1]["adv_std"].item()))
        return result

    def note_ours(self: Any, *args: Any) -> Any:
        result = our_losses(self, *args)
        ours.append(result[1].item())
        return result

    monkeypatch.setattr(Learner, "_calculate_losses", note_stock)
    monkeypatch.setattr(ExploreGoLearner, "_calculate_losses", note_ours)
    register_worlds()
    flags = ["--env=illustrative_train", "--max_pure_expl_steps=0", "--train_for_env_steps=600", "--adv_std_memory=0.9"]
    runner = ExploreGoSerialRunner(parse_train_args([*flags, f"--train_dir={tmp_path}", "--experiment=run"]))
    assert runner.init() == 0
    assert runner.run() == 0
    assert len(ours) == len(stock) > 20
    stds = np.array([std for _, std in stock])
    for i, (loss, std) in enumerate(stock):
        weights = 0.9 ** np.arange(i, -1, -1)
        usual = math.sqrt((weights * stds[: i + 1] ** 2).sum() / weights.sum())
        assert ours[i] == pytest.approx(loss * min(1, std / usual), rel=1e-4, abs=1e-7)
    assert min(std / stds.max() for std in stds) < 0.9  # so there was something to weigh
    newest = max((tmp_path / "run/checkpoint_p0").glob("checkpoint_*.pth"))
    saved = read_checkpoint(newest, "cpu")["advantage_scale"]
    assert saved[0] / saved[1] == pytest.approx(usual**2, rel=1e-4)
