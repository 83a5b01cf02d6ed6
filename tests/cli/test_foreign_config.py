"""A configuration may come from elsewhere: whatever it names, no verb that reads a run executes it."""

import importlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tensorboardX import SummaryWriter

from sf_explore_go.cli import evaluate
from sf_explore_go.cli import tensorboard as tensorboard_command
from sf_explore_go.cli.main import VERBS
from sf_explore_go.core.errors import run
from sf_explore_go.runs.checkpoints import read_checkpoint, save_atomically
from tests.cli.test_enjoy import make_run

TRAP = """
from pathlib import Path
from sf_explore_go.explorers.random import RandomExplorer
Path("executed").touch()
class Explorer(RandomExplorer): ...
"""
RUN = ["--train_dir=runs", "--experiment=k0_seed0"]
# every verb that reads a run, with its exit status; tensorboard is told to end at once
READERS = {
    "train": ([*RUN, "--env=illustrative_train", "--train_for_env_steps=100"], 2),
    "doctor": ([*RUN, "--env=illustrative_train"], 2),
    "evaluate": ([*RUN, "--episodes=2"], 0),
    "enjoy": ([*RUN, "--explore_steps=3", "--episodes=1", "--save_video=film.gif"], 2),
    "coverage": ([*RUN, "--phases=2"], 0),
    "export": ([*RUN, "--out=agent.onnx"], 0),
    "values": (RUN, 2),
    "report": (["runs", "--out=out"], 0),
    "tensorboard": (["runs", "--port=0"], 0),
    "sweep": (["status", "illustrative.toml", "--train_dir=runs"], 0),
}
OTHERS = {"map", "scenario", "bench"}  # which read none


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose explorer is a module in the user's folder that leaves a trace when it is imported."""
    sweep = Path("launch/illustrative.toml").read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(tensorboard_command, "wait", lambda: 0)
    monkeypatch.delitem(sys.modules, "trap", raising=False)
    (tmp_path / "illustrative.toml").write_text(sweep)
    (tmp_path / "trap.py").write_text(TRAP)
    folder = tmp_path / "runs/k0_seed0"
    make_run(folder, "illustrative_train", "illustrative")
    change(folder, explorer="trap:Explorer", max_pure_expl_steps=8)
    evaluate.main([*RUN, "--episodes=2"])
    SummaryWriter(str(folder / ".summary/0")).close()
    return folder


def call(verb: str, *argv: str) -> int:
    return run(importlib.import_module(VERBS[verb][0]).main, argv)


def change(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_every_verb_is_looked_at() -> None:
    assert set(READERS) | OTHERS == set(VERBS)


@pytest.mark.parametrize("verb", READERS)
@pytest.mark.parametrize("policies", [1, 2])
def test_no_verb_executes_what_a_configuration_names(
    verb: str, policies: int, run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(run_folder, num_policies=policies)
    argv, status = READERS[verb]
    if policies == 2:
        make_explorer_checkpoint(run_folder)
        status = 0 if verb == "enjoy" else status  # a policy needs none of its explorer's code
    capsys.readouterr()
    assert call(verb, *argv) == status
    assert not Path("executed").exists()
    error = capsys.readouterr().err
    assert "Traceback" not in error
    if status == 2 and verb != "values":  # which refuses this world
        assert "names an explorer from outside this package; pass --explorer=trap:Explorer to run its code" in error


def test_a_published_experiment_executes_nothing_either(run_folder: Path) -> None:
    """Also where its arms have different flags, so that the report asks what a flag's default is."""
    other = run_folder.with_name("k0_seed1")
    shutil.copytree(run_folder, other)
    change(other, seed=1, later_flag=0.5, env="trap:World")
    assert call("report", "runs", "--mixed", "--out=out", "--export=published") == 0
    arms = [json.loads(path.read_text())["config"] for path in Path("published").glob("arm_*.json")]
    assert [arm["explorer"] for arm in arms] == ["trap:Explorer"] * 2
    assert call("report", "published", "--mixed", "--out=out") == 0
    assert not Path("executed").exists()


def make_explorer_checkpoint(folder: Path) -> None:
    agent = folder / "checkpoint_p0/checkpoint_1_5.pth"
    (folder / "checkpoint_p1").mkdir()
    save_atomically(read_checkpoint(agent, "cpu"), folder / "checkpoint_p1" / agent.name)


def test_named_on_the_command_line_it_explores(run_folder: Path) -> None:
    argv, _ = READERS["enjoy"]
    assert call("enjoy", *argv, "--explorer=random") == 0
    assert not Path("executed").exists()
    assert call("enjoy", *argv, "--explorer=trap:Explorer") == 0
    assert Path("executed").exists()
