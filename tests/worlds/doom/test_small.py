"""The small labyrinth: its data, its maps, the doorways that are walled up, and its plan."""

import dataclasses
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import vizdoom
from scipy import ndimage

from sf_explore_go.core.contexts import Context
from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.doom.env import MyWayHomeEnv
from sf_explore_go.worlds.doom.geometry import free_cells, geometry_of, make_grid, scenario_geometry
from sf_explore_go.worlds.doom.mapview import map_figure, map_image
from sf_explore_go.worlds.doom.scenario import (
    SPLITS,
    build_wad,
    config_path,
    data_dir,
    ensure_wad,
    load_scenario,
    read_scenario,
    script_with_starts,
)
from sf_explore_go.worlds.doom.udmf import parse_textmap, replace_values
from sf_explore_go.worlds.doom.wad import Lump, Wad, parse_wad, read_wad, wad_bytes
from tests.worlds.doom.navigator import FORWARD, TURN_LEFT, TURN_RIGHT, Navigator
from tests.worlds.doom.test_mapview import pixel_at, shoelace
from tests.worlds.doom.test_scenario import place, things

SMALL, BIG = load_scenario("my_way_home_small"), load_scenario("my_way_home")
STOCK = read_wad(Path(vizdoom.scenarios_path) / "my_way_home.wad")
GOALS = [(split, goal) for split in SPLITS for goal in SMALL.goals(split)]
DOORWAYS = [(22, 0.0), (11, 270.0)]  # the point before a walled-up doorway, and where the doorway lies from there


# --- data -------------------------------------------------------------------------------------------------------------


def test_points_goals_and_doorways() -> None:
    assert [point.id for point in SMALL.points] == [10, 11, 16, 17, 18, 19, 20, 21, 22]
    assert all(point == BIG.point(point.id) for point in SMALL.points)
    assert SMALL.train_goals == (10, 20, 17)
    assert SMALL.test_goals == (11, 16, 18, 19, 21, 22)
    assert SMALL.walled_up == (((768.0, 80.0), (768.0, 16.0)), ((496.0, -256.0), (432.0, -256.0)))
    assert BIG.walled_up == ()
    assert (SMALL.title, SMALL.stock_sha256) == ("My Way Home Small", BIG.stock_sha256)
    assert config_path(SMALL, "test") == config_path(BIG, "test")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[[768.000, 80.000],", "[[768.000],", "not a scenario file"),
        ("[[768.000, 80.000],", '[["east", 80.000],', "not a scenario file"),
        ("[[768.000, 80.000], ", "[", "not a scenario file"),
        ("{ id = 16,", "{ id = 28,", "the points are 10, 11, 28, 17"),
        ("{ id = 16,", "{ id = 11,", "the points are 10, 11, 11, 17"),
        ("train = [10,", "train = [11,", "each point must be a goal of exactly one split"),
    ],
)
def test_bad_toml_is_refused_in_one_sentence(tmp_path: Path, old: str, new: str, reason: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text((data_dir() / "my_way_home_small.toml").read_text().replace(old, new, 1))
    with pytest.raises(UsageError, match=re.escape(reason)) as caught:
        read_scenario(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_doorway_that_is_not_there_is_refused() -> None:
    wall = dataclasses.replace(SMALL, walled_up=(((160.0, -256.0), (160.0, -96.0)),))  # the western wall
    with pytest.raises(
        UsageError, match=r"my_way_home_small.toml: walled_up has .*160.*my_way_home.wad has no doorway"
    ):
        build_wad(wall, "train")


# --- built maps -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_the_build_has_the_committed_hash(split: str) -> None:
    assert hashlib.sha256(build_wad(SMALL, split)).hexdigest() == SMALL.built_sha256[split]


@pytest.mark.parametrize(("split", "goal"), GOALS)
def test_vest_at_the_goal_and_eight_spots_at_the_other_points(split: str, goal: int) -> None:
    first = 7 * SMALL.goals(split).index(goal)
    marker, textmap, behavior, *rest = parse_wad(build_wad(SMALL, split)).lumps[first : first + 7]
    assert marker == (SMALL.map_name(split, goal).upper(), b"")
    assert rest == list(STOCK.lumps[3:])  # ZNODES among them, to the byte

    found = things(textmap.data)
    assert [thing["type"] for thing in found] == ["2018", "1"] + ["9001"] * 17
    assert found[0]["id"] == "22"  # what the script ends the episode by; no start has this id
    points = {point.id: (point.x, point.y) for point in SMALL.points}
    assert place(found[0]) == points[goal]
    drawn = {int(spot["id"]): place(spot) for spot in found[2:] if int(spot["id"]) < 18}
    assert sorted(drawn) == list(range(10, 18))
    assert sorted(drawn.values()) == sorted(points[id] for id in points if id != goal)

    stock = STOCK.lumps[2].data
    changed = [(i, old, new) for i, (old, new) in enumerate(zip(stock, behavior.data, strict=True)) if old != new]
    assert changed == [(stock.index(b"MINI") + 24, 17, 8)]  # map_points, the last of the initial values


def test_two_doorways_block_and_show_a_wall() -> None:
    stock, built = (
        parse_textmap(data) for data in (STOCK.lumps[1].data, parse_wad(build_wad(SMALL, "train")).lumps[1].data)
    )
    lines = [i for i, line in enumerate(built.linedefs) if line.values != stock.linedefs[i].values]
    assert lines == [47, 78]
    textures = []
    for line in (built.linedefs[i] for i in lines):
        assert line.values["blocking"] is line.values["wrapmidtex"] is line.values["twosided"] is True
        textures.append(
            [built.sidedefs[line.index(key, 110)].values["texturemiddle"] for key in ("sidefront", "sideback")]
        )
    assert textures == [["TLITE6_1", "BIGBRIK1"], ["CEIL4_2", "BIGBRIK1"]]  # the room's, and the passage's
    assert sum(a.values != b.values for a, b in zip(stock.sidedefs, built.sidedefs, strict=True)) == 4
    assert [a.values for a in stock.sectors + stock.vertices] == [b.values for b in built.sectors + built.vertices]


def test_another_script_is_refused() -> None:
    behavior = STOCK.lumps[2].data
    assert script_with_starts(behavior, 17) == behavior
    for other in (behavior.replace(b"MINI", b"MINT"), behavior + behavior, b""):
        with pytest.raises(UsageError, match="BEHAVIOR: the script's variables"):
            script_with_starts(other, 8)


# --- in the engine ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def envs() -> Iterator[dict[str, MyWayHomeEnv]]:
    envs = {split: MyWayHomeEnv(split=split, num_contexts=0, scenario=SMALL.name) for split in SPLITS}
    yield envs
    for env in envs.values():
        env.close()


@pytest.mark.parametrize(("split", "goal"), GOALS)
def test_walking_to_the_vest(envs: dict[str, MyWayHomeEnv], split: str, goal: int) -> None:
    env, navigator = envs[split], Navigator(goal, SMALL.name)
    for seed in range(3):
        _, info = env.reset(options={"context": Context(goal, seed)})
        over = False
        while not over:
            _, reward, terminated, truncated, info = env.step(navigator.action(info["position"], info["angle"]))
            over = terminated or truncated
        assert terminated
        assert info["success"]
        assert reward > 0.999


def run_from(env: MyWayHomeEnv, goal: int, start: int, angle: float, decisions: int = 60) -> np.ndarray:
    """Start at a point, turn to an angle and hold forward; returns the positions."""
    for seed in range(300):
        _, info = env.reset(options={"context": Context(goal, seed)})
        point = env.scenario.point(start)
        if np.hypot(info["position"][0] - point.x, info["position"][1] - point.y) < 1:
            break
    else:
        raise AssertionError(f"no start at {start}")
    positions = []
    for _ in range(decisions):
        turn = (angle - info["angle"] + 180) % 360 - 180
        action = FORWARD if abs(turn) < 8 else TURN_LEFT if turn > 0 else TURN_RIGHT
        info = env.step(action)[-1]
        positions.append(info["position"])
    return np.array(positions)


@pytest.mark.parametrize(("start", "angle"), DOORWAYS)
def test_a_player_that_runs_at_a_walled_up_doorway_stays_inside(
    envs: dict[str, MyWayHomeEnv], start: int, angle: float
) -> None:
    path = run_from(envs["train"], 10, start, angle)
    if start == 22:
        assert 750 < path[:, 0].max() < 752.1  # the wall at 768, less the player's 16 units
    else:
        assert -240.1 < path[:, 1].min() < -238
    assert not np.any(free_cells(SMALL).visit_counts(path)[~free_cells(SMALL).free])
    big = MyWayHomeEnv(num_contexts=0)
    try:
        path = run_from(big, 10, start, angle)
    finally:
        big.close()
    assert path[:, 0].max() > 800 if start == 22 else path[:, 1].min() < -300, "the same run, where there is a doorway"


def views(wad: Path, scenario: str, folder: Path) -> list[np.ndarray]:
    """What a player sees on a turn at the points before the doorways."""
    game = vizdoom.DoomGame()
    game.load_config(str(config_path(load_scenario(scenario), "train")))
    game.set_doom_scenario_path(str(wad))
    game.set_doom_config_path(str(folder / "engine.ini"))
    game.add_game_args("+sv_cheats 1")  # for `warp`
    game.init()
    pictures = []
    try:
        for id, _ in DOORWAYS:
            game.set_seed(1)
            game.new_episode()
            game.send_game_command(f"warp {SMALL.point(id).x:.0f} {SMALL.point(id).y:.0f}")
            for _ in range(40):
                game.make_action([1, 0, 0, 0], 4)
                pictures.append(np.array(game.get_state().screen_buffer))
    finally:
        game.close()
    return pictures


@pytest.mark.parametrize("name", ["my_way_home", "my_way_home_small"])
def test_what_lies_behind_cannot_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Lights out in the two passages behind the doorways: in the big labyrinth one sees it, in the small one not."""
    monkeypatch.chdir(tmp_path)
    lit = ensure_wad(load_scenario(name), "train")
    lumps = list(read_wad(lit).lumps)
    textmap = parse_textmap(lumps[1].data)
    sectors = [i for i, block in enumerate(textmap.blocks) if block.kind == "sector"]
    dark = {sectors[passage]: {"lightlevel": "0"} for passage in (10, 14)}
    lumps[1] = Lump("TEXTMAP", replace_values(textmap, dark))
    (tmp_path / "dark.wad").write_bytes(wad_bytes(Wad("PWAD", tuple(lumps))))
    pairs = zip(views(lit, name, tmp_path), views(tmp_path / "dark.wad", name, tmp_path), strict=True)
    differ = [not np.array_equal(a, b) for a, b in pairs]
    assert len(differ) == 80
    if name == "my_way_home":
        assert any(differ[:40])
        assert any(differ[40:])
    else:
        assert not any(differ)


# --- plan -------------------------------------------------------------------------------------------------------------


def test_the_plan_ends_at_the_walled_up_doorways() -> None:
    plan = scenario_geometry(SMALL)
    assert plan.bounds == (160.0, -256.0, 768.0, 128.0)
    assert (len(plan.rooms), len(plan.openings)) == (10, 10)
    area = sum(shoelace(loop) for room in plan.rooms for loop in room)
    assert area == 5 * 160 * 160 + 5 * 64 * 64
    walls = {frozenset(map(tuple, wall)) for wall in plan.walls.tolist()}
    assert all(frozenset(line) in walls for line in SMALL.walled_up)
    assert len(walls) == 5 + 8 + 6 + 6 + 7 + 11 + 2  # rooms 10, 11, 17, 20, 22, the passages, the doorways
    outside = [point for point in BIG.points if point not in SMALL.points]
    assert plan.contains([(point.x, point.y) for point in SMALL.points]).all()
    assert not plan.contains([(point.x, point.y) for point in outside]).any()


def test_a_whole_map_with_a_walled_up_doorway_has_both_its_sides() -> None:
    textmap = parse_textmap(parse_wad(build_wad(SMALL, "train")).lumps[1].data)
    whole = geometry_of(textmap)
    assert (len(whole.rooms), len(whole.walls), len(whole.openings)) == (18, 78, 16)
    assert whole.contains([(point.x, point.y) for point in BIG.points]).all()
    assert whole.walkable([(752.0, 48.0), (760.0, 48.0), (776.0, 48.0), (784.0, 48.0)]).tolist() == [
        True,
        False,
        False,
        True,
    ]


def test_free_cells_are_those_of_the_big_labyrinth_up_to_the_walls() -> None:
    small, big = (make_grid(scenario_geometry(scenario), 8.0) for scenario in (SMALL, BIG))
    rows, columns = small.free.shape
    # The small plan is the upper left part of the big one; two cells before the eastern and southern wall are not free.
    part = big.free[-rows:, :columns].copy()
    part[:2] = part[:, -2:] = False
    assert np.array_equal(small.free, part)
    assert ndimage.label(small.free)[1] == 1
    grid = free_cells(SMALL)
    assert grid.free.sum() == 135
    assert grid.free.sum() == small.free.reshape(12, 4, 19, 4).any(axis=(1, 3)).sum()
    assert all(grid.free[grid.cell_of(point.x, point.y)] for point in SMALL.points)


def test_pictures_show_the_small_plan_only() -> None:
    figure = map_figure(SMALL)
    assert figure.axes[0].get_xlim()[1] < 800
    assert figure.axes[0].get_ylim()[0] > -300
    paper, floor = pixel_at(figure, 560.0, -60.0), pixel_at(figure, 200.0, -230.0)  # between the rooms, and in one
    assert paper.tolist() == [255, 255, 255]
    assert floor.tolist() == [245, 241, 232]
    plain = map_image(SMALL, width=360)
    assert plain.shape == (264, 360, 3)
    heat = free_cells(SMALL).visit_counts([(240.0, -176.0)])
    for options in (
        {"heat": heat},
        {"rates": {11: 0.5, 22: 1.0}},
        {"trajectories": [[(240.0, -176.0), (300.0, -176.0)]]},
    ):
        assert not np.array_equal(map_image(SMALL, width=360, **options), plain)
