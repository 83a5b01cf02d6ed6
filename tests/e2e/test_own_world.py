"""Worlds of the user's own: those that docs/worlds.md builds, and Gymnasium's, through the command line."""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.e2e.cli import scalars, sf_explore_go

PAGE = Path("docs/worlds.md")
SHORT = ("--train_for_env_steps=4000", "--milestone_step_freq=0", "--num_workers=1", "--num_envs_per_worker=4",
         "--batch_size=128", "--rollout=16", "--seed=1")  # fmt: skip
PENDULUM = """
import gymnasium as gym
from sf_explore_go.worlds.base import World

class Pendulum(World):
    def make_env(self, split, cfg, render_mode=None):
        env = gym.make("Pendulum-v1", render_mode=render_mode)
        env.unwrapped.m = 1.0 if split == "train" else 1.3
        return env
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def rows(folder: Path) -> dict[str, dict[str, str]]:
    with (folder / "evaluation.csv").open(newline="") as file:
        return {row["split"]: row for row in csv.DictReader(file)}


def call(folder: Path, *words: str) -> str:
    result = sf_explore_go(*words, cwd=folder)
    assert result.returncode == 0, (words, result.stderr[-3000:])
    return result.stdout


def test_the_commands_of_the_page(tmp_path: Path) -> None:
    """All but the length of the trainings is as the page has it."""
    (tmp_path / "my_worlds.py").write_text(blocks("python")[0])
    commands = [line.removeprefix("sf-explore-go ").split() for line in blocks("bash")[0].splitlines()]
    assert [words[0] for words in commands] == ["train"] * 2 + ["evaluate"] * 2 + ["coverage", "enjoy", "report"]
    for words in commands:
        short = {"train": SHORT, "evaluate": ("--checkpoint=latest", "--episodes=8"), "enjoy": ("--episodes=1",)}
        call(tmp_path, *words, *short.get(words[0], ()))
    for run in ("baseline", "explore_go"):
        assert set(rows(tmp_path / "train_dir" / run)) == {"train", "test"}
        with (tmp_path / "train_dir" / run / "evaluation_goals.csv").open(newline="") as file:
            played = {(row["split"], int(row["goal"])): int(row["episodes"]) for row in csv.DictReader(file)}
        goals = {"train": (0, 4, 10, 14), "test": (2, 6, 8, 12)}
        assert played == {(split, goal): 2 for split, of_split in goals.items() for goal in of_split}
    assert scalars(tmp_path / "train_dir/explore_go")["explore/coverage_per_phase"][-1][1] > 1 / 15
    assert (tmp_path / "corridor.gif").stat().st_size > 1000


def test_page_and_file_are_the_same_world() -> None:
    def bare(text: str) -> str:
        text = re.sub(r"#[^\n]*| -> [^:\n]+(?=:\n)", "", text[text.index("LENGTH,") :])
        names = r"Sequence\[int\]|str \| None|int \| None|dict\[str, Any\] \| None|Any|int|str"
        return re.sub(r"\s+", "", re.sub(rf": ({names})(?=[,)]| =)", "", text).replace(" = None", "=None"))

    assert bare(blocks("python")[0]) == bare(Path("docs/examples/my_worlds.py").read_text())


@pytest.mark.parametrize(
    ("code", "env", "explorer"),
    [(blocks("python")[1], "own:CartPole", "random"), (PENDULUM, "own.py:Pendulum", "e3b")],
    ids=["CartPole", "Pendulum"],
)
def test_worlds_of_gymnasium(code: str, env: str, explorer: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(code)
    words = (f"--env={env}", f"--explorer={explorer}", "--max_pure_expl_steps=10", "--experiment=run")
    call(tmp_path, "train", *words, *SHORT)
    call(tmp_path, "evaluate", f"--env={env}", "--experiment=run", "--episodes=4")
    played = rows(tmp_path / "train_dir/run")
    assert {split: row["episodes"] for split, row in played.items()} == {"train": "4", "test": "4"}
    assert played["train"]["mean_return"] != played["test"]["mean_return"]
    table = call(tmp_path, "report", "train_dir")
    assert "| 1 |" in table
    refused = sf_explore_go("coverage", f"--env={env}", "--experiment=run", cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "reports no positions" in refused.stderr
    call(tmp_path, "enjoy", f"--env={env}", "--experiment=run", "--episodes=1", "--save_video=film.gif")
    assert (tmp_path / "film.gif").stat().st_size > 1000


def test_a_world_that_renders_nothing_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(PENDULUM.replace(", render_mode=render_mode", ""))
    call(tmp_path, "train", "--env=own:Pendulum", "--experiment=run", *SHORT[1:], "--train_for_env_steps=500")
    words = ("--env=own:Pendulum", "--experiment=run", "--save_video=film.gif")
    refused = sf_explore_go("enjoy", *words, cwd=tmp_path)
    assert refused.returncode == 2, refused.stderr[-2000:]
    assert refused.stderr.splitlines()[-1].startswith(
        "sf-explore-go: --env=own:Pendulum@test: this world renders no pictures"
    )
    assert not (tmp_path / "film.gif").exists()


def test_a_configuration_alone_does_not_run_a_world(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("raise SystemExit('this code must not run')")
    (tmp_path / "train_dir/run").mkdir(parents=True)
    (tmp_path / "train_dir/run/config.json").write_text('{"env": "own:World", "seed": 1}')
    for verb in ("evaluate", "coverage", "enjoy"):
        words = ("--save_video=film.gif",) if verb == "enjoy" else ()
        refused = sf_explore_go(verb, "--experiment=run", *words, cwd=tmp_path)
        assert refused.returncode == 2
        assert "names a world from outside this package; pass --env=own:World to run its code" in refused.stderr


SWEEP = """
name = "corridors"
env = "my_worlds:Corridor"
preset = "corridor"
seeds = [0]
[flags]
train_for_env_steps = 2000
num_workers = 1
[arms.k0]
max_pure_expl_steps = 0
[arms.k10]
max_pure_expl_steps = 10
[evaluate]
episodes = 8
[resources]
cpus = 1
gpus = 0
memory_gb = 2
hours = 1
"""


@pytest.mark.slow
def test_a_sweep_in_a_world_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "my_worlds.py").write_text(blocks("python")[0])
    (tmp_path / "sweep.toml").write_text(SWEEP)
    call(tmp_path, "sweep", "sweep.toml", "--backend=local", "--with_report")
    for run in ("k0_seed0", "k10_seed0"):
        assert set(rows(tmp_path / "train_dir/corridors" / run)) == {"train", "test"}
    assert (tmp_path / "train_dir/corridors/report/index.html").is_file()


def test_another_world_than_the_runs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train_dir/run").mkdir(parents=True)
    (tmp_path / "train_dir/run/config.json").write_text('{"env": "illustrative_train", "seed": 1}')
    refused = sf_explore_go("evaluate", "--experiment=run", "--env=my_way_home_train", cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "--env=my_way_home_train: the run in" in refused.stderr


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        ("nowhere:World", "module 'nowhere' was not found"),
        ("nowhere.py:World", "nowhere.py does not exist"),
        ("json:World", "json has no 'World'"),
        ("json:JSONDecoder", "JSONDecoder: it must be a World"),
        ("sf_explore_go.worlds.grid.world:Illustrative@exam", "the split must be train or test"),
    ],
)
def test_what_is_no_world_is_one_sentence(env: str, sentence: str, tmp_path: Path) -> None:
    refused = sf_explore_go("train", f"--env={env}", "--experiment=run", cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert refused.stderr.startswith(f"sf-explore-go: --env={env}: ")
    assert sentence in refused.stderr


def test_a_world_has_flags_of_its_own(tmp_path: Path) -> None:
    code = PENDULUM.replace(
        "class Pendulum(World):",
        """class Pendulum(World):
    def add_arguments(self, group):
        group.add_argument("--test_mass", type=float, default=1.3, help="kg: mass of the pole in the test")

    def check(self, cfg):
        if not cfg.test_mass > 0:
            from sf_explore_go.core.errors import UsageError
            raise UsageError(f"--test_mass={cfg.test_mass}: it must be above 0")
""",
    ).replace("else 1.3", "else cfg.test_mass")
    (tmp_path / "own.py").write_text(code)
    assert "--test_mass" in call(tmp_path, "train", "--env=own:Pendulum", "--help")
    refused = sf_explore_go("train", "--env=own:Pendulum", "--test_mass=-1", "--experiment=run", cwd=tmp_path)
    assert (refused.returncode, refused.stderr) == (2, "sf-explore-go: --test_mass=-1.0: it must be above 0\n")
    call(tmp_path, "train", "--env=own:Pendulum", "--test_mass=2.5", "--experiment=run", *SHORT, "--serial_mode=True")
    assert json.loads((tmp_path / "train_dir/run/config.json").read_text())["test_mass"] == 2.5
