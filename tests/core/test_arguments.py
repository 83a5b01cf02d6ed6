"""What every verb does with words that it does not know, and with numbers that are written short."""

from pathlib import Path

import pytest

from sf_explore_go.cli import demo
from sf_explore_go.cli import main as cli
from sf_explore_go.core.arguments import did_you_mean, whole_number
from sf_explore_go.core.errors import UsageError
from sf_explore_go.evaluation.arguments import make_parser as evaluate_parser
from sf_explore_go.evaluation.ladder import parse as parse_coverage
from sf_explore_go.sweep.plan import read_sweep
from tests.sweep.sweeps import write


def test_a_name_that_is_nearly_right_is_asked_for() -> None:
    assert did_you_mean("evalaute", cli.VERBS) == "; did you mean evaluate?"
    assert did_you_mean("xyz", cli.VERBS) == ""


def test_an_unknown_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trian"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sf-explore-go: unknown verb 'trian'; it must be one of train, evaluate")
    assert error.endswith("; did you mean train?\n")


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("-3", -3), ("1e6", 10**6), ("2.5e3", 2500), ("6_000", 6000)])
def test_whole_numbers(text: str, number: int) -> None:
    assert whole_number(text) == number
    assert isinstance(whole_number(text), int)


def test_other_verbs_take_them_too() -> None:
    assert evaluate_parser().parse_args(["--experiment=x", "--episodes=1e3"]).episodes == 1000
    assert parse_coverage(["--experiment=x", "--steps=2e2"]).steps == 200
    with pytest.raises(UsageError, match=r"^evaluate: argument --episodes: '1.5' must be a whole number, such as 20"):
        evaluate_parser().parse_args(["--experiment=x", "--episodes=1.5"])
    with pytest.raises(UsageError, match=r"^demo: argument --frames: '1e-3' must be a whole number"):
        demo.main(["--frames=1e-3"])
    with pytest.raises(UsageError, match=r"^evaluate: unknown flag --episode=3; did you mean --episodes\?$"):
        evaluate_parser().parse_args(["--experiment=x", "--episode=3"])


def test_sweep_files_take_them_too(tmp_path: Path) -> None:
    short = {"train_for_env_steps": "train_for_env_steps = 1e5", "episodes": "episodes = 1e1"}
    sweep = read_sweep(write(tmp_path, **short), tmp_path)
    assert all(run.budget == 100_000 for run in sweep.runs)
    assert evaluate_parser().parse_args(["--experiment=x", *sweep.evaluate_flags]).episodes == 10
    with pytest.raises(UsageError, match=r"--train_for_env_steps: '0.5' must be a whole number"):
        read_sweep(write(tmp_path, train_for_env_steps="train_for_env_steps = 0.5"), tmp_path)
    with pytest.raises(UsageError, match=r"unknown key seds; .*; did you mean seeds\?$"):
        read_sweep(write(tmp_path, seeds="seds = [0, 1]"), tmp_path)
