"""docs/metrics.md and the event files of real runs name the same tags."""

import re
from pathlib import Path

import pytest

from tests.e2e.cli import train
from tests.monitoring.events import accumulate, all_tags, scalars_of

PAGE = Path("docs/metrics.md")
OF_DOOM = {"eval/test_success_by_goal", "go/engine_failed", "explore/visits", "explore/go_starts"}
NORMALISATION = {f"train/{what}_running_{of}" for what in ("obs", "returns") for of in ("mean", "std")}
OF_COUNTS = {"explore/counts_new"}
OF_ROOMS = {f"eval/{what}" for what in ("value_error", "optimal", "explored", "recent")} | {
    f"eval/{split}_{what}" for split in ("reachable", "validation") for what in ("success", "return", "length")
}
OF_DQN = {f"train/{of}_{what}" for of in "qu" for what in ("loss", "grad_norm", "value")} | {
    f"train/{what}" for what in ("bonus", "epsilon", "buffer", "updates")
}
OF_LEARNED_EXPLORERS = {"explore/return", "explore/length"} | OF_COUNTS


def documented() -> set[str]:
    """The first column of every table."""
    return set(re.findall(r"^\| `([a-z_]+/[a-z0-9_]+)` \|", PAGE.read_text(), re.MULTILINE))


def test_every_row_has_a_unit_and_a_meaning() -> None:
    rows = re.findall(r"^\| `.*$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == len(documented()) > 50
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 3
        assert cells[2]
    for tag in ("eval/train_success", "eval/test_success", "eval/generalisation_gap"):
        assert tag in documented()


def test_tags_of_the_grid(tmp_path: Path) -> None:
    flags = ("--env=illustrative_train", "--seed=1", "--train_for_env_steps=2000", "--milestone_step_freq=1000")
    train(tmp_path, "run", *flags, "--eval_in_background=True", "--eval_episodes=8")
    tags = all_tags(tmp_path / "run")
    e3b = {tag for tag in documented() if tag.startswith("explore/e3b_")}
    # no second policy, hence none of a learned explorer; such a short run ends before its speed is known
    assert tags - documented() == set()
    assert documented() - tags <= OF_DOOM | OF_ROOMS | OF_DQN | OF_LEARNED_EXPLORERS | e3b | NORMALISATION | {
        "perf/frames_per_second"
    }


def test_tags_of_four_rooms(tmp_path: Path) -> None:
    flags = ("--env=four_rooms_train", "--num_contexts=3", "--seed=1", "--train_for_env_steps=5000")
    train(tmp_path, "run", *flags, "--milestone_step_freq=5000", "--eval_in_background=True", "--eval_episodes=4")
    tags = all_tags(tmp_path / "run")
    assert tags - documented() == set()
    assert tags >= OF_ROOMS | OF_COUNTS | {"eval/test_success", "eval/generalisation_gap"}


def test_tags_of_dqn(tmp_path: Path) -> None:
    flags = ("--env=four_rooms_train", "--algo=DQN", "--num_contexts=3", "--seed=1", "--train_for_env_steps=5000")
    train(tmp_path, "run", *flags, "--milestone_step_freq=5000", "--eval_in_background=True", "--eval_episodes=4")
    tags = all_tags(tmp_path / "run")
    assert tags - documented() == set()
    assert tags >= OF_ROOMS | OF_DQN | {"go/return", "go/success", "go/length", "phases/explore_steps"}
    assert {tag for tag in tags if tag.startswith("train/")} == OF_DQN


@pytest.mark.slow
def test_a_real_run_has_every_documented_tag_and_no_other(tmp_path: Path) -> None:
    flags = ("--env=my_way_home_train", "--preset=smoke", "--explorer=e3b", "--seed=0", "--train_for_seconds=75")
    features = ("--e3b_layer_norm=False", "--e3b_scale_features=True")
    more = ("--train_for_env_steps=100000000", "--milestone_step_freq=40000", "--eval_in_background=True")
    train(tmp_path, "run", *flags, *features, *more, "--eval_episodes=4")
    folder = tmp_path / "run"
    assert all_tags(folder) == documented() - OF_COUNTS - OF_ROOMS - OF_DQN
    # curves start within a minute of the first frames, though 100 episodes take longer
    events = accumulate(folder)
    assert events.Scalars("go/return")[0].wall_time - events.Scalars("phases/go_frames")[0].wall_time < 60
    assert scalars_of(folder)["eval/test_success"][0][0] >= 40000
