"""Evaluations in TensorBoard: once each, by whoever may write."""

from pathlib import Path

from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboardX import SummaryWriter

from sf_explore_go.monitoring.board import (
    HYPERPARAMETERS,
    LAYOUT,
    board_folder,
    board_lock,
    describe_run,
    show_evaluations,
)
from sf_explore_go.runs.scores import merge_scores
from tests.monitoring.events import accumulate, scalars_of
from tests.reporting.test_report import make_score

CFG = {"env": "illustrative_train", "learning_rate": 1e-4, "seed": 3, "explorer": "random"}


def test_each_row_is_shown_once_and_gaps_follow(tmp_path: Path) -> None:
    merge_scores(tmp_path / "evaluation.csv", [make_score(100, "train", 0.75), make_score(100, "test", 0.5)])
    show_evaluations(tmp_path, CFG)
    show_evaluations(tmp_path, CFG)
    merge_scores(tmp_path / "evaluation.csv", [make_score(200, "test", 0.25)])
    show_evaluations(tmp_path, CFG)
    assert "eval/generalisation_gap" in scalars_of(tmp_path)
    merge_scores(tmp_path / "evaluation.csv", [make_score(200, "train", 1.0)])
    show_evaluations(tmp_path, CFG)
    shown = scalars_of(tmp_path)
    assert shown["eval/train_success"] == [(100, 0.75), (200, 1.0)]
    assert shown["eval/test_success"] == [(100, 0.5), (200, 0.25)]
    assert shown["eval/generalisation_gap"] == [(100, 0.25), (200, 0.75)]
    # and once more in folders of their own, which have colours of their own
    assert scalars_of(tmp_path, "train")["eval/success"] == shown["eval/train_success"]
    assert scalars_of(tmp_path, "test")["eval/success"] == shown["eval/test_success"]
    assert scalars_of(tmp_path, "test")["eval/return"] == shown["eval/test_return"]


def test_a_training_that_runs_shows_them_itself(tmp_path: Path) -> None:
    merge_scores(tmp_path / "evaluation.csv", [make_score(100, "test", 0.5)])
    board_folder(tmp_path).mkdir(parents=True)
    with board_lock(tmp_path):
        show_evaluations(tmp_path, CFG)
    assert not list(board_folder(tmp_path).glob("events*"))
    show_evaluations(tmp_path, CFG)
    assert scalars_of(tmp_path)["eval/test_success"] == [(100, 0.5)]


def test_layout_and_hyperparameters(tmp_path: Path) -> None:
    with SummaryWriter(str(board_folder(tmp_path))) as writer:
        describe_run(writer, CFG)
    events = accumulate(tmp_path)
    layout = layout_pb2.Layout()
    layout.ParseFromString(events.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0])
    assert [category.title for category in layout.category] == list(LAYOUT)
    first = layout.category[0].chart[0]
    assert list(first.multiline.tag) == ["eval/success"]
    hparams = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    assert b"learning_rate" in hparams


def test_the_first_columns_of_hparams_tell_runs_apart() -> None:
    """TensorBoard sorts them by name and shows five."""
    first = sorted(HYPERPARAMETERS)[:5]
    assert [HYPERPARAMETERS[name] for name in first] == [
        "env",
        "explorer",
        "max_pure_expl_steps",
        "seed",
        "num_contexts",
    ]
    assert "K" in first
