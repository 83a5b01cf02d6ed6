"""What `report --export` writes: one experiment, from which a report is the same as from the runs' own folders."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from sf_explore_go.cli.report import main
from sf_explore_go.core.errors import run as run_verb
from sf_explore_go.reporting.arms import group
from sf_explore_go.reporting.export import export
from sf_explore_go.reporting.records import TABLES, find_records
from sf_explore_go.reporting.runs import find_runs
from sf_explore_go.runs.folder import OF_THIS_MACHINE
from sf_explore_go.runs.scores import merge_scores
from tests.disk import on_fsync
from tests.reporting.test_report import make_measured_run, make_run, make_score

RATES = {"train": 1.0, "test": 0.5}


def report(*words: str | Path) -> int:
    return run_verb(main, [str(word) for word in words])


def export_to(target: Path, *folders: Path) -> None:
    """As `report --export`, without the figures."""
    export(group(find_runs(folders)), target)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def make_experiment(folder: Path) -> None:
    """Runs with and without the sweep's name of their arm, with goals, measured explorers and a greedy evaluation."""
    for seed in range(2):
        make_run(folder / f"k0_seed{seed}", 0, seed, RATES, env="my_way_home_train", train_dir="/home/someone")
        make_measured_run(folder / f"k100_seed{seed}", 100, seed, {"none": 0.004, "random": 0.1 + 0.1 * seed})
        for split in RATES:
            row = make_score(400 + seed, split, 0.5 + 0.1 * seed, "11", 4 + seed)
            merge_scores(folder / f"k100_seed{seed}/evaluation_goals.csv", [row])
    make_run(folder / "a_named", 8, 7, RATES, env="my_way_home_train", arm='the "named" one, ü', command_line="secret")
    merge_scores(folder / "a_named/evaluation.csv", [replace(make_score(400, "test", 0.125), actions="greedy")])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    make_experiment(tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def published(runs: Path) -> Path:
    folder = runs.parent / "results/published"
    export_to(folder, runs)
    return folder


def test_an_experiment_is_one_file_per_table_and_one_per_arm(published: Path) -> None:
    arms = ["arm_baseline_k_0.json", "arm_explore_go_k_100_random.json", "arm_the_named_one.json"]
    assert sorted(contents(published)) == sorted([*arms, *TABLES])
    with (published / "evaluation.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:5] == ["run", "arm", "seed", "frames", "split"]
    assert {(row["run"], row["arm"], row["seed"]) for row in rows} == {
        ("k0_seed0", "baseline (K = 0)", "0"), ("k0_seed1", "baseline (K = 0)", "1"),
        ("k100_seed0", "Explore-Go, K = 100, random", "0"), ("k100_seed1", "Explore-Go, K = 100, random", "1"),
        ("a_named", 'the "named" one, ü', "7"),
    }  # fmt: skip
    arm = json.loads((published / arms[0]).read_text())
    assert arm["runs"] == {"k0_seed0": {"seed": 0}, "k0_seed1": {"seed": 1}}
    assert arm["config"]["gamma"] == 0.9
    for content in contents(published).values():
        assert b"someone" not in content
        assert b"secret" not in content
    assert list(published.parent.iterdir()) == [published]  # nothing is left of how it was written


def test_runs_are_found_in_the_same_order(runs: Path, published: Path) -> None:
    """By their names, not by their arms."""
    found = [[run.folder.name for run in find_runs([folder])] for folder in (runs, published)]
    assert found[0] == found[1] == ["a_named", "k0_seed0", "k0_seed1", "k100_seed0", "k100_seed1"]


def test_a_report_from_it_is_the_same(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, first, second = (runs.parent / name for name in ("one", "two", "first", "second"))
    assert report(runs, f"--out={one}", f"--export={first}") == 0
    printed = capsys.readouterr()
    assert report(first, f"--out={two}", f"--export={second}") == 0
    again = capsys.readouterr()
    assert contents(one) == contents(two)  # page, figures and tables
    assert contents(first) == contents(second)
    assert printed.out.replace(str(one), str(two)) == again.out
    assert printed.err == again.err


def test_configurations_and_rows_come_back_to_the_letter(tmp_path: Path) -> None:
    """In an arm whose runs differ in whether they have a flag, and in its type."""
    values: list[dict[str, Any]] = [{}, {"flag": None}, {"flag": 1}, {"flag": 1.0}, {"flag": True}, {"flag": [1, "a"]}]
    for seed, own in enumerate(values):
        make_run(tmp_path / f"runs/{seed}", 0, seed, RATES, experiment=str(seed), alike=(1, 1.0, True)[seed % 3], **own)
    make_run(tmp_path / "runs/6", 0, 6, RATES, env="my_way_home_train", alike=1)
    flags = ("--arm_by=max_pure_expl_steps", "--mixed")
    assert report(tmp_path / "runs", f"--out={tmp_path / 'out'}", f"--export={tmp_path / 'published'}", *flags) == 0
    assert len(list((tmp_path / "published").glob("arm_*"))) == 1
    for own_folder, shared in zip(*(find_records(tmp_path / name) for name in ("runs", "published")), strict=True):
        config = {name: value for name, value in own_folder.config.items() if name not in OF_THIS_MACHINE}
        assert json.dumps(shared.config, sort_keys=True) == json.dumps(config, sort_keys=True)
        assert shared.tables == own_folder.tables
        assert shared.folder.name == own_folder.folder.name


def test_what_earlier_versions_left_out_is_filled_in(tmp_path: Path) -> None:
    make_run(tmp_path / "runs/old", 0, 0, RATES)
    path = tmp_path / "runs/old/evaluation.csv"
    later = ("goal", "actions", "eval_seed", "contexts")
    with path.open(newline="") as file:
        rows = [{name: cell for name, cell in row.items() if name not in later} for row in csv.DictReader(file)]
    path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n")
    export_to(tmp_path / "published", tmp_path / "runs")
    with (tmp_path / "published/evaluation.csv").open(newline="") as file:
        for row, old in zip(csv.DictReader(file), rows, strict=True):
            assert [row[name] for name in later] == ["all", "sampled", "0", "shared"]
            assert {name: row[name] for name in old} == old


def test_runs_of_the_same_name_are_told_apart_by_the_folders_above(tmp_path: Path) -> None:
    for seed, sweep in enumerate(("one", "two")):
        make_run(tmp_path / f"runs/{sweep}/k0", 0, seed, RATES)
    export_to(tmp_path / "published", tmp_path / "runs")
    arm = json.loads((tmp_path / "published/arm_baseline_k_0.json").read_text())
    assert list(arm["runs"]) == ["one/k0", "two/k0"]
    export_to(tmp_path / "again", tmp_path / "published")
    assert contents(tmp_path / "again") == contents(tmp_path / "published")


def test_arms_whose_names_make_the_same_file_name_have_files_of_their_own(tmp_path: Path) -> None:
    for seed, arm in enumerate(("a b", "A/B", "a_b", "é", "ü", "x" * 300)):
        make_run(tmp_path / f"runs/{seed}", 0, seed, RATES, arm=arm)
    export_to(tmp_path / "published", tmp_path / "runs")
    assert len(list((tmp_path / "published").glob("arm_*.json"))) == 6
    names = [[arm.name for arm in group(find_runs([tmp_path / name]))] for name in ("runs", "published")]
    assert names[0] == names[1]


def test_two_experiments_are_reported_and_exported_as_one(runs: Path) -> None:
    here = runs.parent
    export_to(here / "a", *runs.glob("k0_*"))
    export_to(here / "b", *runs.glob("k100_*"))
    assert report(*runs.glob("k*"), f"--out={here / 'one'}", f"--export={here / 'direct'}") == 0
    assert report(here / "a", here / "b", f"--out={here / 'two'}", f"--export={here / 'merged'}") == 0
    assert contents(here / "one") == contents(here / "two")
    assert contents(here / "merged") == contents(here / "direct")
    # an export grows by what is reported with it
    export_to(here / "a", here / "a", *runs.glob("k100_*"))
    assert contents(here / "a") == contents(here / "direct")


def test_an_experiment_and_a_run_that_it_holds_are_not_counted_twice(
    runs: Path, published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(published, runs / "k0_seed0", f"--out={runs.parent / 'twice'}") == 2
    assert "are both seed 0 of arm baseline (K = 0)" in capsys.readouterr().err
    assert len(find_runs([published, published.parent])) == 5


@pytest.mark.parametrize("holds", ["runs", "a run", "a note", "other runs", "a file"])
def test_an_export_overwrites_nothing_but_an_earlier_one(
    runs: Path, published: Path, holds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = {"runs": runs, "a run": runs / "a_named", "a file": runs / "a_named/config.json"}.get(holds, published)
    if holds == "a note":
        (published / "README.md").write_text("mine")
    before = contents(runs / "a_named"), contents(published)
    out = runs.parent / "more"
    assert report(runs / "a_named", f"--out={out}", f"--export={target}") == 2
    error = capsys.readouterr().err
    assert len(error.strip().splitlines()) == 1
    assert f"--export={target}" in error
    assert (contents(runs / "a_named"), contents(published)) == before
    assert not out.exists()
    if holds == "other runs":
        assert "holds runs that this report leaves out" in error
        assert "k0_seed0" in error


def test_an_earlier_export_of_the_same_runs_is_renewed(runs: Path, published: Path) -> None:
    merge_scores(runs / "a_named/evaluation.csv", [make_score(400 + 7, "test", 0.375)])
    (runs / "k100_seed0/go_starts.csv").unlink()
    (runs / "k100_seed1/go_starts.csv").unlink()
    export_to(published, runs)
    assert "0.375" in (published / "evaluation.csv").read_text()
    assert not (published / "go_starts.csv").exists()
    assert list(published.parent.iterdir()) == [published]


@pytest.mark.parametrize("step", ["write", "swap"])
def test_an_export_that_fails_leaves_the_earlier_one(
    runs: Path, published: Path, step: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(published)
    merge_scores(runs / "a_named/evaluation.csv", [make_score(400 + 7, "test", 0.375)])
    rename, written = Path.rename, count(1)

    def full_disk() -> None:
        if next(written) == 3:
            raise OSError(28, "No space left on device")

    def fail_to_swap(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    if step == "write":
        on_fsync(monkeypatch, full_disk)
    else:
        monkeypatch.setattr(Path, "rename", fail_to_swap)
    assert report(runs, f"--out={runs.parent / 'more'}", f"--export={published}") == 2
    assert f"--export={published} cannot be written" in capsys.readouterr().err
    assert contents(published) == before
    assert list(published.parent.iterdir()) == [published]


Damage = Callable[[Path], object]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def replace_in(old: str, new: str) -> Damage:
    return lambda path: path.write_text(path.read_text().replace(old, new, 1))


def with_json(change: Callable[[Any], Any]) -> Damage:
    return lambda path: path.write_text(json.dumps(change(json.loads(path.read_text()))))


ARM = "arm_baseline_k_0.json"
DAMAGES: dict[str, tuple[str, Damage, str]] = {
    "cut": ("evaluation.csv", cut, "has not as many cells as the header"),
    "cut in a word": ("evaluation_goals.csv", lambda path: path.write_text(path.read_text()[:-3]), "contexts=per_se"),
    "empty": ("coverage.csv", lambda path: path.write_text(""), "it is empty"),
    "not a number": ("go_starts.csv", replace_in("464.0", "east"), "line 2: could not convert string to float: 'east'"),
    "no column": ("evaluation.csv", replace_in("mean_return", "other"), "it has no column 'mean_return'"),
    "a run's own table": ("evaluation.csv", replace_in("run,", "other,"), "it has no column 'run'"),
    "not text": ("evaluation.csv", lambda path: path.write_bytes(b"\xff\xfe\x00" * 9), "can't decode"),
    "unknown run": ("evaluation.csv", replace_in("\nk0_seed0", "\nk9"), "has run k9, seed 0 of baseline (K = 0)"),
    "another seed": ("coverage.csv", replace_in('random",0', 'random",5'), "has run k100_seed0, seed 5"),
    "no table": ("evaluation.csv", Path.unlink, "no evaluation.csv"),
    "cut arm": (ARM, cut, "cannot be read as an arm of an experiment"),
    "no arm": (ARM, Path.unlink, "has run k0_seed0"),
    "a list": (ARM, with_json(lambda arm: [arm]), "cannot be read as an arm"),
    "runs in a list": (ARM, with_json(lambda arm: arm | {"runs": list(arm["runs"])}), "cannot be read as an arm"),
    "no name": (ARM, with_json(lambda arm: {**arm, "arm": 1}), "no arm_*.json beside it has run k0_seed0"),
    "no config": (ARM, with_json(lambda arm: {"arm": arm["arm"], "runs": arm["runs"]}), "(no config)"),
    "no seed": (ARM, with_json(lambda arm: arm | {"runs": {"k0_seed0": {}}}), "(no seed)"),
    "a way out": (ARM, with_json(lambda arm: arm | {"runs": {"../x": {"seed": 0}}}), "'../x' is no name for a run"),
    "run twice": (ARM, with_json(lambda arm: arm | {"runs": {"a_named": {"seed": 0}}}), "has the run a_named, which"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_experiment_is_refused_in_one_sentence(
    published: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, break_it, reason = DAMAGES[damage]
    break_it(published / name)
    capsys.readouterr()
    out = published.parent.parent / "more"
    before = contents(published)
    for more in ((), (f"--export={published}",)):
        assert report(published, f"--out={out}", *more) == 2
        error = capsys.readouterr().err
        assert len(error.strip().splitlines()) == 1
        assert str(published) in error
        assert reason in error
        assert not out.exists()
    assert contents(published) == before
