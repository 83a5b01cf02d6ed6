"""In serial mode a seed fixes everything that is written."""

from pathlib import Path

import pytest

from tests.e2e.cli import scalars, train

COMMON = ("--env=illustrative_train", "--train_for_env_steps=1200", "--num_workers=2", "--num_envs_per_worker=2")


@pytest.mark.parametrize(
    "explorer", [pytest.param("random", marks=pytest.mark.slow), "tests.training.recording:PolicyExplorer"]
)
def test_one_seed_one_curve_another_seed_another(tmp_path: Path, explorer: str) -> None:
    flags = (*COMMON, f"--explorer={explorer}")
    train(tmp_path, "a", *flags, "--seed=3", PYTHONHASHSEED="1")
    train(tmp_path, "b", *flags, "--seed=3", PYTHONHASHSEED="2")
    train(tmp_path, "c", *flags, "--seed=4", PYTHONHASHSEED="1")
    for policy_id in (0, 1) if explorer != "random" else (0,):
        a, b, c = (scalars(tmp_path / name, policy_id) for name in "abc")
        assert a.keys() == b.keys()
        assert any(tag.startswith("train/") for tag in a)
        assert sum(len(points) for points in a.values()) > 200
        assert a == b
        assert a != c
