"""Sweep files: what they become, and how bad ones are refused."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from sf_explore_go.cli.sweep import main
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.arguments import flag_words
from sf_explore_go.core.errors import UsageError
from sf_explore_go.sweep.plan import parse_seeds, read_sweep
from tests.sweep.sweeps import GRID, small_sweep, write

SHIPPED = {
    "my_way_home": 40, "my_way_home_laptop": 15, "laptop_search": 6, "explorer_search": 11, "illustrative": 40,
    "illustrative_k": 60, "four_rooms": 40, "four_rooms_k": 60, "four_rooms_contexts": 100, "four_rooms_paper": 40,
    "four_rooms_dqn": 60, "smoke": 4,
}  # fmt: skip
NOT_SETTINGS = ("experiment", "train_dir", "arm", "cli_args", "command_line")


def printed(capsys: pytest.CaptureFixture[str], name: str) -> list[list[str]]:
    """The words after `sf-explore-go train` of every printed command of a shipped sweep."""
    assert main([f"launch/{name}.toml", "--backend=print", "--train_dir=some/where"]) == 0
    commands = []
    for line in capsys.readouterr().out.splitlines():
        words = shlex.split(line)
        begin = words.index("sf-explore-go")
        assert all("=" in variable for variable in words[:begin])
        assert words[begin + 1] == "train"
        commands.append(words[begin + 2 :])
    return commands


def test_every_shipped_sweep_is_listed_here() -> None:
    assert {path.stem for path in Path("launch").glob("*.toml")} == set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_print_shows_commands_that_parse(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    configs = [parse_train_args(words) for words in printed(capsys, name)]
    assert len(configs) == SHIPPED[name]
    assert {c.train_dir for c in configs} == {f"some/where/{name}"}
    assert len({c.experiment for c in configs}) == SHIPPED[name]
    assert [c.experiment for c in configs] == [f"{c.arm}_seed{c.seed}" for c in configs]  # reports know the arm
    settings = [json.dumps({key: value for key, value in c.items() if key not in NOT_SETTINGS}) for c in configs]
    assert len(set(settings)) == SHIPPED[name]
    assert not Path("some").exists()
    if name == "my_way_home":  # the paper's experiment, section 5.3
        arms = {(c.max_pure_expl_steps, c.seed) for c in configs}
        assert arms == {(steps, seed) for steps in (0, 200) for seed in range(20)}
        shared = {(c.env, c.num_contexts, c.train_for_env_steps, c.milestone_step_freq) for c in configs}
        assert shared == {("my_way_home_train", 10, 500_000_000, 25_000_000)}
        assert {(c.num_workers, c.num_envs_per_worker) for c in configs} == {(16, 16)}
        assert {c.explorer for c in configs if c.max_pure_expl_steps} == {"e3b"}


def test_the_papers_sweep_can_do_as_the_authors_did_with_contexts(tmp_path: Path) -> None:
    """One line and one arm to take the `#` from."""
    shipped = Path("launch/my_way_home.toml").read_text()
    assert {c.context_seed == c.seed for c in configs_of(shipped, tmp_path / "ours.toml")} == {True}
    theirs = configs_of(shipped.replace("# context_seed = 0 #", "context_seed = 0 #"), tmp_path / "theirs.toml")
    assert {c.context_seed for c in theirs} == {0}
    assert {c.seed for c in theirs} == set(range(20))
    more = re.sub(r"^# (\[arms|max_pure|explorer)", r"\1", shipped, flags=re.MULTILINE)
    arms = {(c.max_pure_expl_steps, c.explorer) for c in configs_of(more, tmp_path / "more.toml")}
    assert arms >= {(200, "e3b"), (200, "random")}


def configs_of(text: str, file: Path) -> list[Any]:
    file.write_text(text)
    return [parse_train_args([*run.flags, "--experiment=none"]) for run in read_sweep(file, file.parent).runs]


def test_arms_of_a_seed_stand_together_and_seeds_can_be_chosen(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    assert [run.experiment for run in sweep.runs] == ["k0_seed0", "k8_seed0", "k0_seed1", "k8_seed1"]
    assert {run.budget for run in sweep.runs} == {600}
    chosen = read_sweep(sweep.file, tmp_path, seeds="3,7")
    assert [run.experiment for run in chosen.runs] == ["k0_seed3", "k8_seed3", "k0_seed7", "k8_seed7"]


def test_values_become_words() -> None:
    flags = {"a": 1, "b": 1e-4, "c": "x y", "d": True, "e": [64, 32], "f": -1}
    assert flag_words(flags, "flags") == ["--a=1", "--b=0.0001", "--c=x y", "--d=True", "--e", "64", "32", "--f=-1"]


def test_seeds() -> None:
    assert parse_seeds("3..5") == [3, 4, 5]
    assert parse_seeds([4, 2]) == [4, 2]
    assert parse_seeds("4,2") == [4, 2]


BAD = {
    "seeds": {
        "seeds = []": "the grid is empty",
        "seeds = [0, 1, 0]": "0 is there 2 times, so its runs would collide",
        'seeds = [0, "one"]': "'one' is not a seed",
        "seeds = [0.5]": "0.5 is not a seed",
        "seeds = [true]": "True is not a seed",
        "seeds = [-1]": "-1 is not a seed",
        'seeds = "5..3"': "the grid is empty",
        'seeds = "all"': "'all' is not a seed",
        "seeds = 3": "it must be a list",
        'seeds = "0..99999999999"': "too many",
        "": "the key seeds is missing",
    },
    "name": {
        "nam = 1": "unknown key nam",
        'name = "../up"': "it must be made of letters",
        "name = 3": "it must be a word",
        "name = ": "cannot be read as a sweep file",
    },
    "env": {'env = "no_such_env"': "--env=no_such_env: it must be"},
    "preset": {'preset = "papers"': "papers"},
    "train_for_env_steps": {
        "train_for_env_stepz = 5": "--train_for_env_stepz=5",
        "train_for_env_steps = -5": "--train_for_env_steps=-5: it must be above 0",
        "seed = 5": "leave it out; the sweep sets it",
        'arm = "mine"': "leave it out; the sweep sets it",
        'restart_behavior = "overwrite"': "leave it out; the sweep sets it",
        "train_for_env_steps = {a = 1}": "it must be a number, a word",
    },
    "[arms.k8]": {"[arms.'a/b']": "arms.a/b"},
    "episodes": {'experiment = "x"': "leave it out; the sweep sets it", "episode = 3": "--episode=3"},
    "cpus": {
        "": "resources.cpus is missing",
        "cpus = 0": "resources.cpus = 0: it must be a whole number, at least 1",
        "cpus = 1.5": "resources.cpus = 1.5",
        "cpu = 1": "unknown key resources.cpu",
    },
    "hours": {"hours = 0": "it must be a number, above 0", 'hours = 1\nsbatch_options = ["qos"]': "sbatch_options"},
}


@pytest.mark.parametrize(
    ("key", "line", "complaint"), [(key, line, text) for key, cases in BAD.items() for line, text in cases.items()]
)
def test_a_bad_file_is_refused_in_one_sentence(key: str, line: str, complaint: str, tmp_path: Path) -> None:
    file = write(tmp_path, **{key: line})
    with pytest.raises(UsageError) as error:
        main([str(file), "--backend=local", f"--train_dir={tmp_path / 'runs'}"])
    assert complaint in str(error.value)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value).replace(line, "")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GRID.replace("[arms.k0]\nmax_pure_expl_steps = 0\n\n[arms.k8]\nmax_pure_expl_steps = 8\n", "[arms]"), "empty"),
        (GRID.replace("max_pure_expl_steps = 8", "max_pure_expl_steps = 0"), "arms k0 and k8 are the same experiment"),
        (GRID.replace("[arms.k8]", "[arms.k0]"), "cannot be read as a sweep file"),
        (GRID[: GRID.index("[resources]")], "the key resources is missing"),
        ("\x00", "cannot be read as a sweep file"),
    ],
)
def test_a_bad_grid_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_sweep(write(tmp_path, text), tmp_path)


def test_bad_flags_of_the_command_are_refused(tmp_path: Path) -> None:
    file = str(write(tmp_path))
    for argv, complaint in (
        ([file, "--backend=cloud"], "cloud"),
        ([file, "--max_parallel=0"], "--max_parallel=0: it must be a whole number, at least 1"),
        ([file, "--seeds=a"], "--seeds: 'a' is not a seed"),
        ([file, "--backend=local", "--gpus=-1"], "--gpus=-1"),
        ([str(tmp_path / "none.toml")], "none.toml cannot be read as a sweep file"),
        ([], "the following arguments are required: FILE"),
        (["status"], "the following arguments are required: FILE"),
    ):
        with pytest.raises(UsageError) as error:
            main([*argv, f"--train_dir={tmp_path / 'runs'}"])
        assert complaint in str(error.value)
    assert not (tmp_path / "runs").exists()
