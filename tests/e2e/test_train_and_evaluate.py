"""The real command line: train, evaluate twice, report."""

import csv
from pathlib import Path

from tests.e2e.cli import sf_explore_go, train


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "evaluation.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_evaluation_is_repeatable_whatever_the_number_of_environments(tmp_path: Path) -> None:
    train(
        tmp_path,
        "run",
        "--env=illustrative_train",
        "--train_for_env_steps=3000",
        "--seed=2",
        "--milestone_step_freq=1000",
    )
    command = ("evaluate", f"--train_dir={tmp_path}", "--experiment=run", "--episodes=40", "--checkpoint=all")
    tables = []
    for num_envs in (1, 8, 8):
        result = sf_explore_go(*command, f"--num_envs={num_envs}")
        assert result.returncode == 0, result.stderr
        tables.append(rows(tmp_path / "run"))
    assert tables[0] == tables[1] == tables[2]
    assert [row["split"] for row in tables[0]] == ["test", "train"] * 3
    assert [int(row["frames"]) // 1000 for row in tables[0]] == [1, 1, 2, 2, 3, 3]
    assert sf_explore_go("report", str(tmp_path), f"--out={tmp_path / 'report'}").returncode == 0


def test_a_budget_that_is_used_up_ends_in_a_milestone(tmp_path: Path) -> None:
    """Also where the last frames do not fill another batch."""
    flags = ("--env=illustrative_train", "--max_pure_expl_steps=8", "--explorer=random", "--serial_mode=False")
    batch = ("--batch_size=3500", "--num_batches_per_epoch=1", "--num_epochs=1", "--seed=2")
    train(tmp_path, "run", *flags, *batch, "--train_for_env_steps=8000", "--milestone_step_freq=4000")
    kept = sorted((tmp_path / "run/checkpoint_p0/milestones").glob("milestone_*.pth"))
    # the one at 4 000 frames is missing where the sampler has made 8 000 before the learner has its first batch
    assert [int(path.stem.split("_")[1]) // 4000 for path in kept][-1] == 2


def test_bad_input_is_one_sentence_and_exit_status_2(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/config.json").write_text('{"env": "illustrative_train"}')
    for argv in (
        ("evaluate", "--experiment=nobody"),
        ("evaluate", "--experiment=empty"),
        ("evaluate", "--experiment=empty", "--episodes=0"),
        ("evaluate", "--experiment=empty", "--checkpoint=no/such/file"),
        ("train", "--env=my_way_home_train", "--num_contexts=-3"),
        ("train", "--env=no_such_env"),
        ("nonsense",),
    ):
        folder = () if argv == ("nonsense",) else (f"--train_dir={tmp_path}",)
        result = sf_explore_go(*argv, *folder, cwd=tmp_path)
        complaint = [line for line in result.stderr.splitlines() if line.startswith("sf-explore-go:")]
        assert result.returncode == 2, argv
        assert len(complaint) == 1, result.stderr
        assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty"]


def test_a_cache_that_cannot_be_written_is_one_sentence_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    environment = {"SF_EXPLORE_GO_CACHE": str(tmp_path / "file" / "cache")}
    flags = ("--env=my_way_home_train", "--preset=smoke", f"--train_dir={tmp_path / 'runs'}")
    result = sf_explore_go("train", *flags, environment=environment)
    complaint = [line for line in result.stderr.splitlines() if line.startswith("sf-explore-go:")]
    assert result.returncode == 2
    assert len(complaint) == 1
    assert "SF_EXPLORE_GO_CACHE" in complaint[0]
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "runs").exists()
