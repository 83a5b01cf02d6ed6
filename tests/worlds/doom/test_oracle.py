"""The oracle: its arithmetic against the engine, ways drawn by hand, and what it sees of the labyrinth."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.doom.env import MyWayHomeEnv
from sf_explore_go.worlds.doom.geometry import scenario_geometry
from sf_explore_go.worlds.doom.motion import BACKWARD, FORWARD, IDLE, SQUARE, TURN_LEFT, TURN_RIGHT, Motion, one_player
from sf_explore_go.worlds.doom.oracle import Oracle, squares_of
from sf_explore_go.worlds.doom.scenario import SCENARIOS, load_scenario
from sf_explore_go.worlds.doom.ways import find_ways
from sf_explore_go.worlds.registry import world_of

SCENARIO = load_scenario()
TICS = 8


@pytest.fixture(scope="module")
def env() -> Iterator[MyWayHomeEnv]:
    world = world_of("my_way_home_train")
    made = world.make_env("train", SimpleNamespace(env_frameskip=TICS, res_w=64, res_h=36, num_contexts=10, seed=0))
    assert isinstance(made, MyWayHomeEnv)
    yield made
    made.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_walls_lie_where_the_arithmetic_wants_them(name: str) -> None:
    assert (scenario_geometry(load_scenario(name)).walls % SQUARE == 0).all()


def test_the_arithmetic_is_the_engines(env: MyWayHomeEnv) -> None:
    """Turns, runs, slides and rubs along walls, for a few seconds each, without looking at where the player is."""
    motion, off = Motion(squares_of(SCENARIO), TICS), []
    script = [TURN_LEFT, TURN_LEFT, FORWARD, FORWARD, TURN_RIGHT, IDLE, BACKWARD, BACKWARD, TURN_RIGHT, FORWARD]
    for seed in range(10):
        _, info = env.reset(seed=seed)
        x, y = info["position"]
        me = one_player(x, y, info["angle"])
        for action in script:
            me = motion.after(me, np.array([action]))
            *_, info = env.step(action)
            assert me.angle[0] == pytest.approx(info["angle"], abs=1e-4)
            off.append(np.hypot(me.x[0] - info["position"][0], me.y[0] - info["position"][1]))
    assert np.quantile(off, 0.7) < 0.1
    assert np.quantile(off, 0.9) < 3.0


def test_two_players_move_as_they_would_alone() -> None:
    motion = Motion(squares_of(SCENARIO), TICS)
    one, other = one_player(464.0, -176.0, 90.0), one_player(686.0, -173.0, 10.0)
    both = replace(one, **{name: np.concatenate([value, vars(other)[name]]) for name, value in vars(one).items()})
    for action in (FORWARD, FORWARD, TURN_LEFT, FORWARD):
        one, other = (motion.after(player, np.array([action])) for player in (one, other))
        both = motion.after(both, np.array([action, action]))
    for name, values in vars(both).items():
        assert values.tolist() == [vars(one)[name][0], vars(other)[name][0]]


def test_ways_round_a_wall() -> None:
    """Three cells in a row above three others, with a wall between the rows that leaves a gap on the right."""
    squares = np.ones((5, 6), bool)
    squares[2, :4] = False
    squares = np.concatenate([squares[:2], squares[2:3], squares[2:3], squares[3:]])  # the wall is one cell thick
    cells = CellGrid(np.array([[True] * 3, [False, False, True], [True] * 3]), (0.0, 0.0), 32.0)
    ways = find_ways(cells, CellGrid(squares, (0.0, 0.0), 16.0))
    below, above = ways.cells_at(np.array([16.0, 16.0]), np.array([16.0, 80.0]))
    assert (below, above) == (0, 4)
    assert ways.lengths[below, above] == 6 * 32
    step, path = below, []
    while step != above:
        step = ways.following[step, above]
        path.append(int(step))
    assert path == [1, 2, 3, 6, 5, 4]
    assert np.isinf(ways.lengths[below, 7])  # which is no cell


def test_the_oracle_sees_a_third_of_the_labyrinth(env: MyWayHomeEnv) -> None:
    """In a hundred decisions, each of which shows one new cell of 248 at most; random actions see 7 %."""
    cells, oracle, shares = world_of("my_way_home_train").cells(), Oracle(SCENARIO, TICS), []
    assert cells is not None
    for seed in range(4):
        _, info = env.reset(seed=seed)
        oracle.begin(info, seed)
        positions = [info["position"]]
        for _ in range(100):
            *_, terminated, truncated, info = env.step(oracle.act(info))
            assert not terminated
            assert not truncated
            positions.append(info["position"])
        shares.append(np.count_nonzero(cells.visit_counts(positions) * cells.free) / cells.free.sum())
    assert np.mean(shares) > 0.28
    assert min(shares) > 0.2
