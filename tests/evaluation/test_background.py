"""Evaluation beside a training: it keeps up, it ends with the training, and it cannot harm it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import psutil
import pytest

from sf_explore_go.runs.scores import read_scores
from tests.e2e.cli import train
from tests.monitoring.events import scalars_of

T = TypeVar("T")
FLAGS = ("--env=illustrative_train", "--seed=2", "--eval_in_background=True", "--eval_episodes=10")


def test_every_milestone_is_evaluated_and_shown(tmp_path: Path) -> None:
    result = train(tmp_path, "run", *FLAGS, "--train_for_env_steps=2000", "--milestone_step_freq=500")
    folder = tmp_path / "run"
    made = sorted(path.name for path in (folder / "checkpoint_p0/milestones").iterdir())
    rows = read_scores(folder / "evaluation.csv")
    assert len(made) == 4
    assert sorted((row.checkpoint, row.split) for row in rows) == [(n, s) for n in made for s in ("test", "train")]
    shown = scalars_of(folder)
    for split in ("train", "test"):
        expected = [(row.frames, row.success_rate) for row in rows if row.split == split]
        np.testing.assert_allclose(shown[f"eval/{split}_success"], expected, rtol=1e-6)
    assert len(shown["eval/generalisation_gap"]) == 4
    # the terminal: plain lines, no escape codes, nothing of Sample Factory's log, which is in its file
    assert "of 2,000 frames" in result.stderr
    assert "\x1b" not in result.stderr + result.stdout
    assert "Env info" not in result.stderr
    assert "Saving milestone" in (folder / "sf_log.txt").read_text()
    # a second part of a run that is complete changes nothing
    before = (folder / "evaluation.csv").read_bytes()
    train(tmp_path, "run", *FLAGS, "--train_for_env_steps=2000", "--milestone_step_freq=500", "--quiet")
    assert (folder / "evaluation.csv").read_bytes() == before
    assert scalars_of(folder)["eval/test_success"] == shown["eval/test_success"]


def start(folder: Path, *flags: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "sf_explore_go", "train", f"--train_dir={folder}", "--experiment=run", *flags]
    log = (folder / "log").open("w")
    return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)


def evaluator_of(process: subprocess.Popen) -> psutil.Process | None:
    for child in psutil.Process(process.pid).children():
        if "sf_explore_go.evaluation.evaluator" in child.cmdline():
            return child
    return None


def wait_for(find: Callable[[], T | None], seconds: float = 200) -> T:
    deadline = time.time() + seconds
    while time.time() < deadline:
        if (found := find()) is not None:
            return found
        time.sleep(0.2)
    raise AssertionError("waited in vain")


def first_row(folder: Path) -> bool | None:
    return bool(read_scores(folder / "run/evaluation.csv")) or None


@pytest.mark.slow
def test_a_killed_evaluator_is_a_sentence_and_not_the_end(tmp_path: Path) -> None:
    process = start(tmp_path, *FLAGS, "--train_for_env_steps=12000", "--milestone_step_freq=1000")
    evaluator = wait_for(lambda: evaluator_of(process))
    wait_for(lambda: first_row(tmp_path))
    assert evaluator.nice() >= 10
    evaluator.kill()
    assert process.wait(timeout=400) == 0
    log = (tmp_path / "log").read_text()
    assert log.count("background evaluation ended (signal 9") == 1
    assert "Traceback" not in log
    assert "of 12,000 frames" in log
    assert sorted((tmp_path / "run/checkpoint_p0").glob("checkpoint_*.pth"))
    assert read_scores(tmp_path / "run/evaluation.csv")


@pytest.mark.slow
def test_a_damaged_milestone_stops_neither_evaluation_nor_training(tmp_path: Path) -> None:
    milestones = tmp_path / "run/checkpoint_p0/milestones"
    milestones.mkdir(parents=True)
    (milestones / "milestone_000000000001.pth").write_bytes(b"half of a file")
    process = start(tmp_path, *FLAGS, "--train_for_env_steps=2000", "--milestone_step_freq=1000")
    assert process.wait(timeout=300) == 0
    rows = read_scores(tmp_path / "run/evaluation.csv")
    assert {row.frames // 1000 for row in rows} == {1, 2}
    said = (tmp_path / "run/evaluation.log").read_text()
    assert said.count("milestone_000000000001.pth cannot be read") == 1
    assert "Traceback" not in said + (tmp_path / "log").read_text()


@pytest.mark.slow
def test_an_evaluator_whose_training_was_killed_ends_with_its_engines(tmp_path: Path) -> None:
    flags = ("--env=my_way_home_train", "--preset=smoke", "--seed=0", "--milestone_step_freq=4000")
    process = start(tmp_path, *flags, "--train_for_env_steps=100000000", "--eval_in_background=True")

    def busy() -> list[psutil.Process] | None:
        evaluator = evaluator_of(process)
        family = [evaluator, *evaluator.children(recursive=True)] if evaluator else []
        return family if sum(member.name() == "vizdoom" for member in family) >= 2 else None

    family = wait_for(busy, 300)
    everyone = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    try:
        _, alive = psutil.wait_procs(family, timeout=20)
        assert not alive
    finally:
        for member in everyone:  # the workers, whose end is not what is tested here
            if member.is_running():
                member.kill()
