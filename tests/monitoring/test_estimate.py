"""A run that takes days says so, goes on, and when it is stopped says how to go on."""

import os
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from sf_explore_go.cli import train
from sf_explore_go.cli.main import main
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import run
from sf_explore_go.monitoring import estimate, monitor
from sf_explore_go.monitoring.estimate import long_by_preset, long_by_speed, two_digits
from sf_explore_go.processes import console
from sf_explore_go.runs.status import read_status

DOOM, GRID = "--env=my_way_home_train", "--env=illustrative_train"


def cfg_of(*flags: str) -> Any:
    return parse_train_args([*flags, "--experiment=none", "--device=cpu", "--seed=0"])


def test_the_papers_budget_on_two_cores_is_told_before_it_starts() -> None:
    sentence = long_by_preset(cfg_of(DOOM), 0, cores=2)
    assert sentence == (
        "500,000,000 frames take about 3 d 5 h here: without a GPU a core makes about 900 frames/s with --preset=paper,"
        " and this machine has 2; to finish sooner, pass --preset=laptop with another --experiment, or"
        " --train_for_env_steps=150000000, which takes about a day"
    )


@pytest.mark.parametrize(
    ("flags", "frames", "cores"),
    [
        ((DOOM, "--preset=laptop"), 0, 2),
        ((DOOM,), 0, 64),
        ((DOOM,), 450_000_000, 2),  # most of it is done
        ((DOOM, "--train_for_seconds=3600"), 0, 2),
        ((GRID, "--train_for_env_steps=1e12"), 0, 2),  # of which no speed is known
    ],
)
def test_what_fits_into_a_day_is_not_spoken_of(flags: tuple[str, ...], frames: int, cores: int) -> None:
    assert long_by_preset(cfg_of(*flags), frames, cores) is None


def test_a_gpu_has_a_speed_of_its_own() -> None:
    cfg = cfg_of(DOOM)
    cfg.device = "gpu"
    assert long_by_preset(cfg, 0, cores=2) is None


def test_the_measured_speed_is_exact() -> None:
    paper, laptop = cfg_of(DOOM), cfg_of(DOOM, "--preset=laptop", "--train_for_env_steps=1e9")
    assert long_by_speed(paper, 100_000, 1_870.0, 60.0) == (
        "at 1,870 frames/s the remaining 499,900,000 frames take about 3 d 2 h; to finish sooner, pass --preset=laptop"
        " with another --experiment, or --train_for_env_steps=160000000, which takes about a day"
    )
    sentence = long_by_speed(laptop, 0, 7_000.0, 60.0)
    assert sentence is not None
    assert sentence.endswith("; to finish sooner, pass --train_for_env_steps=600000000, which takes about a day")
    assert long_by_speed(paper, 100_000, 35_000.0, 60.0) is None  # four hours on a GPU
    assert long_by_speed(paper, 0, 0.0, 60.0) is None


def test_numbers_that_can_be_read() -> None:
    assert [two_digits(n) for n in (161_784_000, 99.9, 7, 0)] == [160_000_000, 99, 7, 0]


def test_a_training_says_both_goes_on_and_says_how_to_go_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def judged(*measured: Any) -> str | None:
        os.kill(os.getpid(), signal.SIGINT)  # Ctrl+C, as soon as the sentence was due
        return long_by_speed(*measured)

    monkeypatch.setenv(console.VARIABLE, "normal")
    monkeypatch.setitem(estimate.FRAMES_PER_SECOND_AND_CORE, "illustrative", 100)
    monkeypatch.setattr(monitor, "MEASURE_SECONDS", 1.0)
    monkeypatch.setattr(monitor, "long_by_speed", judged)
    folder = tmp_path / "two words"
    flags = [GRID, "--seed=0", "--train_for_env_steps=1e12", f"--train_dir={folder}", "--experiment=run"]
    assert run(train.main, [*flags, "--restart_behavior=overwrite"]) == 75

    said = caplog.text
    assert re.search(r"1,000,000,000,000 frames take about \d+ d \d+ h here: .*--preset=illustrative", said)
    assert re.search(r"at [\d,]+ frames/s the remaining [\d,]+ frames take about \d+ d \d+ h; to finish sooner", said)
    assert "Received SIGINT, saving and stopping" in said
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Stopped and saved. To continue: sf-explore-go train ")
    verb, *words = shlex.split(last.split(": ", 1)[1])[1:]
    status = read_status(folder / "run")
    assert status is not None
    cfg = parse_train_args(words)
    assert (verb, cfg.restart_behavior, cfg.train_dir) == ("train", "resume", str(folder))
    assert not train.has_its_budget(cfg, folder / "run")
    assert status.frames > 0


def test_ctrl_c_in_another_verb_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(argv: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("sf_explore_go.cli.evaluate.main", stopped)
    assert main(["evaluate", "--experiment=a b"]) == 130
    assert (
        capsys.readouterr().err == "\nsf-explore-go: stopped; to continue: sf-explore-go evaluate '--experiment=a b'\n"
    )
