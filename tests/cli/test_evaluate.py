"""The evaluate verb: what is done stays done, and trouble is one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sample_factory.model.actor_critic import create_actor_critic

from sf_explore_go.cli import evaluate
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import run
from sf_explore_go.evaluation import evaluate as evaluate_library
from sf_explore_go.evaluation.arena import Arena
from sf_explore_go.evaluation.arguments import load_config
from sf_explore_go.evaluation.evaluate import evaluate_checkpoint
from sf_explore_go.evaluation.player import play
from sf_explore_go.monitoring import progress
from sf_explore_go.processes import console
from sf_explore_go.runs.checkpoints import FORMAT, save_atomically
from sf_explore_go.runs.names import milestones
from sf_explore_go.runs.scores import Settings, read_scores
from sf_explore_go.training.environments import register_worlds

FRAMES = (1000, 2000, 3000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with three milestones of untrained agents."""
    register_worlds()
    cfg = parse_train_args(["--env=illustrative_train", "--seed=1"])
    milestones = tmp_path / "run/checkpoint_p0/milestones"
    milestones.mkdir(parents=True)
    (tmp_path / "run/config.json").write_text(json.dumps(dict(cfg)))
    with Arena(cfg, 1) as arena:
        env = arena.envs("train")[0]
        for frames in FRAMES:
            torch.manual_seed(frames)
            model = create_actor_critic(cfg, env.observation_space, env.action_space).state_dict()
            state = {"model": model, "frames": [0, frames], "env_steps": frames, "format": FORMAT}
            save_atomically(state, milestones / f"milestone_{frames:012d}.pth")
    return tmp_path / "run"


def call(folder: Path, *flags: str) -> int:
    return run(evaluate.main, [f"--train_dir={folder.parent}", f"--experiment={folder.name}", "--episodes=12", *flags])


def test_a_second_call_plays_only_what_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    def counted(*args: Any, **options: Any) -> Any:
        played.append(1)
        return play(*args, **options)

    monkeypatch.setattr(evaluate_library, "play", counted)
    assert call(folder, "--checkpoint=all", "--split=test") == 0
    assert len(played) == 3
    first = read_scores(folder / "evaluation.csv")
    assert call(folder, "--checkpoint=all") == 0
    assert len(played) == 6  # the training contexts
    assert call(folder, "--checkpoint=all") == 0
    assert len(played) == 6
    assert [row for row in read_scores(folder / "evaluation.csv") if row.split == "test"] == first
    assert call(folder, "--checkpoint=all", "--eval_seed=1") == 0
    assert len(played) == 12  # other settings, hence played anew, in place of the first ones
    assert len(read_scores(folder / "evaluation.csv")) == 6


def test_the_last_checkpoint_may_be_played_longer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(folder, "--checkpoint=all", "--split=test", "--final_episodes=30") == 0
    rows = read_scores(folder / "evaluation.csv")
    assert [(row.frames, row.episodes) for row in rows] == [(1000, 12), (2000, 12), (3000, 30)]
    assert call(folder, "--checkpoint=all", "--final_episodes=0") == 2
    assert "--final_episodes=0: it must be a whole number, at least 1" in capsys.readouterr().err


def test_every_second_milestone_and_the_last(folder: Path) -> None:
    assert call(folder, "--checkpoint=all", "--split=test", "--every=2") == 0
    assert [row.frames for row in read_scores(folder / "evaluation.csv")] == [1000, 3000]


def test_greedy_rows_stand_beside_sampled_ones(folder: Path) -> None:
    milestone = folder / "checkpoint_p0/milestones/milestone_000000001000.pth"
    assert call(folder, f"--checkpoint={milestone}", "--split=test") == 0
    assert call(folder, f"--checkpoint={milestone}", "--split=test", "--greedy") == 0
    rows = read_scores(folder / "evaluation.csv")
    assert [(row.actions, row.was_made_with(Settings(12, 0, row.actions == "greedy"))) for row in rows] == [
        ("sampled", True),
        ("greedy", True),
    ]


def test_detail_by_goal_adds_up(folder: Path) -> None:
    assert call(folder, "--checkpoint=all") == 0
    whole, parts = read_scores(folder / "evaluation.csv"), read_scores(folder / "evaluation_goals.csv")
    for row in whole:
        mine = [part for part in parts if part.key == row.key]
        assert sum(part.episodes for part in mine) == row.episodes == 12
        assert sum(part.success_rate * part.episodes for part in mine) == pytest.approx(row.success_rate * 12)
        assert sum(part.mean_return * part.episodes for part in mine) == pytest.approx(row.mean_return * 12)


def test_a_damaged_milestone_is_named_and_the_others_are_evaluated(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = folder / "checkpoint_p0/milestones/milestone_000000002000.pth"
    damaged.write_bytes(damaged.read_bytes()[:1000])
    assert call(folder, "--checkpoint=all") == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert str(damaged) in error[0]
    assert {row.frames for row in read_scores(folder / "evaluation.csv")} == {1000, 3000}


@pytest.mark.parametrize("trouble", ["no milestones", "empty csv", "other network", "all damaged"])
def test_trouble_is_one_sentence_and_changes_nothing(
    folder: Path, trouble: str, capsys: pytest.CaptureFixture[str]
) -> None:
    milestones = sorted((folder / "checkpoint_p0/milestones").iterdir())
    for path in milestones:
        if trouble == "no milestones":
            path.unlink()
        elif trouble == "all damaged":
            path.write_bytes(b"nothing")
        elif trouble == "other network":
            save_atomically(
                {"model": {"layer": torch.zeros(3)}, "frames": [0, 1], "env_steps": 1, "format": FORMAT}, path
            )
    if trouble == "empty csv":
        (folder / "evaluation.csv").write_text("")
    before = sorted(path.name for path in folder.iterdir())
    assert call(folder, "--checkpoint=all") == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert len(error) == 1
    assert str(folder) in error[0]
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No evaluation is too short to tell of it, and no line too soon."""
    monkeypatch.setattr(progress, "SHORT_SECONDS", 0.0)
    monkeypatch.setattr(console, "FIRST_MINUTE", 0.0)


@pytest.mark.usefixtures("impatient")
def test_progress_counts_what_is_still_to_play(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(folder, "--checkpoint=all", "--split=test", "--final_episodes=20") == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [f"{done} of 44 episodes" for done in range(1, 45)]
    assert all(line.endswith(" left") for line in lines[:-1])
    assert not lines[-1].endswith("left")
    assert call(folder, "--checkpoint=all", "--final_episodes=20") == 0  # the training contexts are missing
    assert capsys.readouterr().err.splitlines()[-1].startswith("44 of 44 episodes")
    assert call(folder, "--checkpoint=all", "--final_episodes=20") == 0
    assert capsys.readouterr().err == ""
    assert call(folder, "--checkpoint=all", "--quiet", "--eval_seed=1") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("impatient")
def test_the_background_process_shows_none(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Arena(load_config(folder, None), 2) as arena:
        for path in milestones(folder):
            evaluate_checkpoint(folder, path, ("train", "test"), Settings(12), arena)
    assert capfd.readouterr() == ("", "")


def test_time_left_by_hand() -> None:
    assert progress.episode_line(25, 100, 30.0) == "25 of 100 episodes, 2 min left"  # 1.2 s each
    assert progress.episode_line(90, 100, 45.0) == "90 of 100 episodes, 5 s left"
    assert progress.episode_line(1000, 1000, 200.0) == "1,000 of 1,000 episodes, 3 min"
