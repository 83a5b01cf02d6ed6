"""The scenario's data, the maps that are built from it, and the cache that keeps them."""

import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import warnings
import zipfile
from pathlib import Path

import pytest
import vizdoom

from sf_explore_go.cli import scenario as scenario_command
from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.doom import scenario as scenario_module
from sf_explore_go.worlds.doom.scenario import (
    SCENARIOS,
    SPLITS,
    Point,
    Scenario,
    build_wad,
    cache_dir,
    config_path,
    data_dir,
    ensure_wad,
    load_scenario,
    read_scenario,
    wad_path,
)
from sf_explore_go.worlds.doom.udmf import parse_textmap
from sf_explore_go.worlds.doom.wad import parse_wad, read_wad
from tests.disk import on_fsync

STOCK_DIR = Path(vizdoom.scenarios_path)
REPOSITORY = Path(__file__).resolve().parents[3]
GOALS = [(split, goal) for split in SPLITS for goal in load_scenario().goals(split)]


@pytest.fixture
def scenario() -> Scenario:
    return load_scenario()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a process that has checked nothing yet."""
    monkeypatch.setenv("SF_EXPLORE_GO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(scenario_module, "_verified", set())
    return tmp_path / "cache"


def things(textmap: bytes) -> list[dict[str, str]]:
    """The things of a TEXTMAP, by regular expressions: independent of the parser that built it."""
    blocks = re.findall(r"^thing[^{]*\{([^}]*)\}", textmap.decode(), re.MULTILINE)
    return [dict(re.findall(r"(\w+) = ([^;]+);", block)) for block in blocks]


def place(thing: dict[str, str]) -> tuple[float, float]:
    return float(thing["x"]), float(thing["y"])


# --- data -------------------------------------------------------------------------------------------------------------


def test_points_are_those_of_the_stock_map(scenario: Scenario) -> None:
    stock = things(read_wad(STOCK_DIR / scenario.stock_wad).lumps[1].data)
    spots = {int(thing["id"]): place(thing) for thing in stock if thing["type"] == "9001"}
    (vest,) = (place(thing) for thing in stock if thing["type"] == "2018")
    assert {point.id: (point.x, point.y) for point in scenario.points} == spots | {27: vest}
    assert vest == (1040.0, -352.0)


def test_goals_are_those_of_the_paper(scenario: Scenario) -> None:
    assert scenario.goals("train") == (10, 15, 20, 26)
    assert scenario.goals("test") == (11, 12, 13, 14, 16, 17, 18, 19, 21, 22, 23, 24, 25, 27)
    assert scenario.point(27) == Point(27, 1040.0, -352.0)
    assert [scenario.map_name("train", goal) for goal in scenario.train_goals] == ["map01", "map02", "map03", "map04"]
    assert scenario.map_name("test", 27) == "map14"


def test_what_does_not_exist_is_refused_in_one_sentence(scenario: Scenario) -> None:
    with pytest.raises(UsageError, match="split='eval': it must be train or test"):
        scenario.goals("eval")
    with pytest.raises(UsageError, match="split='eval': it must be train or test"):
        ensure_wad(scenario, "eval")
    with pytest.raises(UsageError, match="goal 11: it must be a train goal of my_way_home, 10, 15, 20, 26"):
        scenario.map_name("train", 11)
    with pytest.raises(UsageError, match="point 9: it must be a point of my_way_home, 10, 11"):
        scenario.point(9)
    with pytest.raises(UsageError, match="scenario 'deathmatch': it must be my_way_home or my_way_home_small"):
        load_scenario("deathmatch")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("points = [", "points = [[", "not a scenario file"),
        ("stock_wad =", "other =", "the entry 'stock_wad' is missing"),
        ("x = 240.000", "z = 240.000", "the entry 'x' is missing"),
        ("x = 240.000", 'x = "far"', "not a scenario file"),
        ("{ id = 10,", "{ id = 9,", "the points are 9, 11"),
        ("{ id = 10,", "{ id = 12,", "the points are 12, 11"),
        ("train = [10,", "train = [11,", "each point must be a goal of exactly one split"),
        ("train = [10,", "train = 10 # [", "not a scenario file"),
    ],
)
def test_bad_toml_is_refused_in_one_sentence(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = (data_dir() / "my_way_home.toml").read_text()
    path = tmp_path / "bad.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match=re.escape(reason)) as caught:
        read_scenario(path)
    assert str(caught.value).startswith(f"{path}: ")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not a scenario file"):
        read_scenario(path)


@pytest.mark.parametrize("split", SPLITS)
def test_configs_differ_from_sample_factorys_only_where_meant(scenario: Scenario, split: str) -> None:
    import sf_examples.vizdoom.doom as sample_factory

    def settings(path: Path) -> dict[str, str]:
        text = re.sub(r"#.*", "", path.read_text())
        found = re.findall(r"^\s*(\w+)\s*=\s*(\{[^}]*\}|\S+)", text, re.MULTILINE)
        return {key: " ".join(value.split()) for key, value in found}

    ours = settings(config_path(scenario, split))
    stock = settings(Path(sample_factory.__file__).parent / "scenarios" / "my_way_home.cfg")
    changed = {key for key in ours | stock if ours.get(key) != stock.get(key)}
    assert changed == {"doom_scenario_path", "screen_resolution", "available_game_variables"}
    assert ours["available_buttons"] == "{ TURN_LEFT TURN_RIGHT MOVE_FORWARD MOVE_BACKWARD }"
    assert ours["screen_resolution"] == "RES_160X120"


# --- built maps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("split", "goal"), GOALS)
def test_vest_stands_at_the_goal_and_the_17_spots_at_the_other_points(split: str, goal: int) -> None:
    scenario = load_scenario()
    stock = read_wad(STOCK_DIR / scenario.stock_wad)
    built = parse_wad(build_wad(scenario, split))
    assert len(built.lumps) == 7 * len(scenario.goals(split))
    first = 7 * scenario.goals(split).index(goal)
    marker, textmap, *rest = built.lumps[first : first + 7]
    assert marker == (scenario.map_name(split, goal).upper(), b"")
    assert rest == list(stock.lumps[2:])  # BEHAVIOR and ZNODES among them, to the byte

    found = things(textmap.data)
    assert [thing["type"] for thing in found] == ["2018", "1"] + ["9001"] * 17  # the order decides what id 22 means
    assert found[0]["id"] == "22"
    points = {point.id: (point.x, point.y) for point in scenario.points}
    assert place(found[0]) == points[goal]
    spots = found[2:]
    assert sorted(int(spot["id"]) for spot in spots) == list(range(10, 27))
    assert sorted(map(place, spots)) == sorted(points[id] for id in points if id != goal)

    changed = zip(stock.lumps[1].data.splitlines(), textmap.data.splitlines(), strict=True)
    assert sum(old != new for old, new in changed) <= 4  # x and y of the vest and of one spot
    assert len(parse_textmap(textmap.data).blocks) == len(parse_textmap(stock.lumps[1].data).blocks)


@pytest.mark.parametrize("split", SPLITS)
def test_two_builds_in_two_processes_are_identical_and_have_the_committed_hash(scenario: Scenario, split: str) -> None:
    code = (
        "import sys, hashlib; from sf_explore_go.worlds.doom.scenario import *; "
        f"print(hashlib.sha256(build_wad(load_scenario(), {split!r})).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    ours = hashlib.sha256(build_wad(scenario, split)).hexdigest()
    assert ours == other.stdout.strip() == scenario.built_sha256[split]


@pytest.mark.parametrize("damage", ["missing", "truncated", "one byte", "another file"])
def test_another_stock_wad_is_refused(scenario: Scenario, tmp_path: Path, cache: Path, damage: str) -> None:
    path = tmp_path / scenario.stock_wad
    data = bytearray((STOCK_DIR / scenario.stock_wad).read_bytes())
    if damage == "truncated":
        path.write_bytes(data[:20_000])
    elif damage == "one byte":
        data[5_000] ^= 1
        path.write_bytes(data)
    elif damage == "another file":
        shutil.copy(STOCK_DIR / "basic.wad", path)
    with pytest.raises(UsageError) as caught:
        ensure_wad(scenario, "train", stock_dir=tmp_path)
    assert str(path) in str(caught.value)
    if damage != "missing":
        assert hashlib.sha256(path.read_bytes()).hexdigest() in str(caught.value)
        assert scenario.stock_sha256 in str(caught.value)
    assert not cache.exists() or not any(cache.iterdir())


def test_a_build_that_differs_from_the_committed_hash_is_not_kept(scenario: Scenario, cache: Path) -> None:
    other = dataclasses.replace(scenario, built_sha256={"train": "0" * 64, "test": "0" * 64})
    with pytest.raises(UsageError, match=f"{scenario.built_sha256['train']}, but built_sha256 is 000"):
        ensure_wad(other, "train")
    assert not cache.exists()


# --- cache ------------------------------------------------------------------------------------------------------------


def test_first_use_builds_and_later_uses_only_check(
    scenario: Scenario, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ensure_wad(scenario, "test")
    assert path == cache / f"my_way_home_test_{scenario.built_sha256['test'][:12]}.wad"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == scenario.built_sha256["test"]
    assert [entry.name for entry in cache.iterdir()] == [path.name]  # no temporary file is left
    monkeypatch.setattr(scenario_module, "build_wad", None)  # building again would fail
    monkeypatch.setattr(scenario_module, "_verified", set())
    assert ensure_wad(scenario, "test") == path
    monkeypatch.setattr(scenario_module, "read_file", None)  # so would reading it again in the same process
    assert ensure_wad(scenario, "test") == path


@pytest.mark.parametrize("damage", [b"", b"PWAD", None])
def test_a_damaged_file_is_built_again_with_a_warning(scenario: Scenario, damage: bytes | None) -> None:
    path = wad_path(scenario, "train")
    path.parent.mkdir(parents=True)
    sound = build_wad(scenario, "train")
    path.write_bytes(sound[:-1] + b"x" if damage is None else damage)
    with pytest.warns(UserWarning, match=re.escape(f"{path} is damaged")):
        assert ensure_wad(scenario, "train") == path
    assert path.read_bytes() == sound


def test_a_file_that_vanishes_is_built_again(scenario: Scenario) -> None:
    path = ensure_wad(scenario, "train")
    path.unlink()
    assert ensure_wad(scenario, "train").is_file()


def test_a_read_only_cache_with_the_right_file_works(
    scenario: Scenario, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ensure_wad(scenario, "train")
    monkeypatch.setattr(scenario_module, "_verified", set())
    monkeypatch.setattr(scenario_module, "_write_atomically", None)  # permissions do not stop root, so forbid writing
    path.chmod(0o444)
    cache.chmod(0o555)
    try:
        assert ensure_wad(scenario, "train") == path
    finally:
        cache.chmod(0o755)


def test_a_cache_that_cannot_be_written_is_named(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SF_EXPLORE_GO_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UsageError, match=re.escape(f"{tmp_path / 'file' / 'cache'}: ") + ".*set SF_EXPLORE_GO_CACHE"):
        ensure_wad(scenario, "train")


def test_a_failed_write_leaves_no_temporary_file(
    scenario: Scenario, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk() -> None:
        raise OSError(28, "No space left on device")

    on_fsync(monkeypatch, full_disk)
    with pytest.raises(UsageError, match=r"No space left on device.*SF_EXPLORE_GO_CACHE"):
        ensure_wad(scenario, "train")
    assert list(cache.iterdir()) == []


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_dir() == tmp_path / "cache"
    monkeypatch.setenv("SF_EXPLORE_GO_CACHE", "~/wads")
    assert cache_dir() == Path("/home/someone/wads")
    monkeypatch.setenv("SF_EXPLORE_GO_CACHE", "")
    assert cache_dir() == Path("/xdg/sf_explore_go")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the XDG specification: to be ignored
    assert cache_dir() == Path("/home/someone/.cache/sf_explore_go")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path("/home/someone/.cache/sf_explore_go")


def test_16_processes_at_once_on_an_empty_cache_all_work(scenario: Scenario, cache: Path, tmp_path: Path) -> None:
    # Each imports all it needs, says so, waits for the signal, and only then asks for the file.
    code = """
import sys, time, hashlib, pathlib, vizdoom
from sf_explore_go.worlds.doom.scenario import ensure_wad, load_scenario
folder = pathlib.Path(sys.argv[1]); (folder / f"ready{sys.argv[2]}").touch()
while not (folder / "go").exists(): time.sleep(0.001)
path = ensure_wad(load_scenario(), "train")
print(hashlib.sha256(path.read_bytes()).hexdigest())
"""
    command = [sys.executable, "-W", "error", "-c", code, str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    processes = [subprocess.Popen([*command, str(i)], text=True, **pipes) for i in range(16)]  # type: ignore[call-overload]
    while len(list(tmp_path.glob("ready*"))) < 16 and all(process.poll() is None for process in processes):
        time.sleep(0.01)
    (tmp_path / "go").touch()
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [(out.strip(), error) for out, error in outputs] == [(scenario.built_sha256["train"], "")] * 16
    assert [entry.name for entry in cache.iterdir()] == [wad_path(scenario, "train").name]


# --- command line and wheel -------------------------------------------------------------------------------------------


def test_command_builds_checks_and_reports(scenario: Scenario, cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="is missing; `sf-explore-go scenario` builds it"):
        scenario_command.main(["--check"])
    assert not cache.exists()
    assert scenario_command.main([]) == 0
    text = capsys.readouterr().out
    for split in SPLITS:
        assert str(wad_path(scenario, split)) in text
        assert scenario.built_sha256[split] in text
    assert "map14 (vest at 27)" in text
    assert "my_way_home_small_train" in text
    assert "map06 (vest at 22)" in text
    assert scenario_command.main(["--check", "--json"]) == 0
    wads = json.loads(capsys.readouterr().out)["wads"]
    assert [(wad["scenario"], wad["split"]) for wad in wads] == [
        (name, split) for name in SCENARIOS for split in SPLITS
    ]
    wad_path(scenario, "test").write_bytes(b"PWAD")
    with pytest.raises(UsageError, match="is damaged"):
        scenario_command.main(["--check"])
    assert wad_path(scenario, "test").read_bytes() == b"PWAD"


def test_bad_flag_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="scenario: unknown flag --chek; did you mean --check"):
        scenario_command.main(["--chek"])


@pytest.mark.slow
def test_an_installed_wheel_finds_its_data_and_builds(scenario: Scenario, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(
        REPOSITORY, source, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "tests")
    )
    # the sdist first, then the wheel from what it holds
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    code = """
from sf_explore_go.worlds.doom.scenario import *
from sf_explore_go.runs.pretrained import SOURCE
print(data_dir()); print(config_path(load_scenario(), "test").is_file()); print(ensure_wad(load_scenario(), "test"))
print((SOURCE / "config.json").is_file() and len(list(SOURCE.glob("checkpoint_p*/*.pth"))))
"""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    run = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    expected = [installed / "sf_explore_go" / "doom_scenarios", True, wad_path(scenario, "test"), 2]
    assert run.stdout.split() == [str(part) for part in expected]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ensure_wad(scenario, "test") == wad_path(scenario, "test")
