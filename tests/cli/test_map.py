"""`sf-explore-go map` as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sf_explore_go.cli import map as map_command
from sf_explore_go.cli.main import main as cli
from sf_explore_go.core.contexts import draw_context_set
from sf_explore_go.worlds.doom.scenario import load_scenario
from tests.worlds.doom.test_starts import engine, point_at, reset


def test_json_holds_the_set_with_the_starts_that_the_engine_gives(tmp_path: Path) -> None:
    picture = tmp_path / "map.png"
    flags = ["--split=both", "--num_contexts=3", "--context_seed=5", f"--out={picture}", "--json"]
    command = [sys.executable, "-m", "sf_explore_go", "map", *flags]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    answer = json.loads(run.stdout)  # nothing but JSON on stdout
    assert answer | {"contexts": []} == {
        "scenario": "my_way_home",
        "split": "both",
        "num_contexts": 3,
        "context_seed": 5,
        "context_goals": "random",
        "picture": str(picture),
        "contexts": [],
    }
    assert picture.read_bytes().startswith(b"\x89PNG")
    scenario = load_scenario()
    rows = answer["contexts"]
    for split, shown in (("train", rows[:3]), ("test", rows[3:])):
        drawn = draw_context_set(scenario.goals(split), 3, 5).contexts
        assert [(row["split"], row["index"]) for row in shown] == [(split, 0), (split, 1), (split, 2)]
        assert [(row["goal"], row["seed"]) for row in shown] == [(context.goal, context.seed) for context in drawn]
        for row in shown:
            with engine(scenario, split, row["goal"]) as game:
                x, y, angle = reset(game, row["seed"])
            assert (row["x"], row["y"], row["angle"]) == pytest.approx((x, y, angle), abs=0.001)
            assert row["start"] == point_at(scenario, x, y) != row["goal"]


def test_table_has_a_line_per_context(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["map", "--num_contexts=4", f"--out={tmp_path / 'map.svg'}"]) == 0
    heading, *lines, last = capsys.readouterr().out.splitlines()
    assert heading.split() == ["split", "index", "goal", "engine", "seed", "start", "x", "y", "angle"]
    assert [line.split()[:2] for line in lines] == [["train", str(i)] for i in range(4)]
    assert len({len(line) for line in (heading, *lines)}) == 1
    assert last == f"picture: {tmp_path / 'map.svg'}"


def test_whole_distribution_needs_no_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sf_explore_go.worlds.doom.env", None)  # importing it would fail
    assert cli(["map", "--split=both", "--num_contexts=0", f"--out={tmp_path / 'map.png'}"]) == 0
    assert "train: any start, goals 10 15 20 26\n" in capsys.readouterr().out


def test_the_small_labyrinth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--scenario=my_way_home_small", "--num_contexts=3", "--context_goals=balanced", "--json"]
    flags.append(f"--out={tmp_path / 'map.png'}")
    assert cli(["map", *flags]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["scenario"] == "my_way_home_small"
    scenario = load_scenario("my_way_home_small")
    drawn = draw_context_set(scenario.goals("train"), 3, 0, "balanced").contexts
    assert {context.goal for context in drawn} == set(scenario.goals("train"))
    assert [(row["goal"], row["seed"]) for row in answer["contexts"]] == [(c.goal, c.seed) for c in drawn]
    for row in answer["contexts"]:
        assert row["start"] == point_at(scenario, row["x"], row["y"]) != row["goal"]
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_plan_of_any_wad(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import vizdoom

    wad = Path(vizdoom.scenarios_path) / "my_way_home.wad"
    assert cli(["map", f"--wad={wad}", f"--out={tmp_path / 'plan.png'}", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts == {"wad": str(wad), "rooms": 18, "walls": 76, "picture": str(tmp_path / "plan.png")}
    assert (tmp_path / "plan.png").is_file()


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--scenario=deathmatch"], "argument --scenario: 'deathmatch' must be one of my_way_home, my_way_home_small"),
        (["--split=eval"], "argument --split: 'eval' must be one of train, test, both"),
        (["--num_contexts=-3"], "--num_contexts=-3: it must be positive, or 0"),
        (["--num_contexts=many"], "argument --num_contexts: 'many' must be a whole number"),
        (["--num_context=3"], "unknown flag --num_context=3; did you mean --num_contexts?"),
        (["--out=nowhere/map.png"], "nowhere/map.png: the folder nowhere does not exist"),
        (["--out=map.gif"], "map.gif: a picture's name must end in"),
        (["--wad=missing.wad"], "missing.wad: no such file"),
        (["--wad=damaged.wad"], "damaged.wad: it is not a WAD"),
        (["--wad=."], ".: not a regular file"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    reason: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "damaged.wad").write_bytes(b"PK\3\4" + bytes(100))
    assert cli(["map", *flags]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert reason in captured.err
    assert [path.name for path in tmp_path.iterdir()] == ["damaged.wad"]


def test_help_explains_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        map_command.main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for flag in ("--scenario", "--split", "--num_contexts", "--context_seed", "--out", "--wad", "--json"):
        assert flag in text
