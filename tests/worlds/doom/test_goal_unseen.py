"""A goal that is out of sight leaves no trace in the picture: no map's title, no other text, no other light."""

from contextlib import closing
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from sf_explore_go.worlds.doom.env import MyWayHomeEnv
from sf_explore_go.worlds.doom.geometry import scenario_geometry
from sf_explore_go.worlds.doom.scenario import load_scenario
from tests.worlds.doom.navigator import IDLE

DECISIONS = 3  # after the first picture, for text that comes late
SEEDS = 12
WIDTH = 48.0  # of the vest, generously

Point = tuple[float, float]
Start = tuple[Point, float]  # where, and the angle


def first_pictures(env: MyWayHomeEnv, goal: int, seed: int) -> tuple[Start, NDArray[np.uint8]]:
    picture, info = env.reset(options={"context": (goal, seed)})
    pictures = [picture, *(env.step(IDLE)[0] for _ in range(DECISIONS))]
    return (info["position"], info["angle"]), np.stack(pictures)


def sides(a: NDArray, b: NDArray, points: NDArray) -> NDArray:
    """On which side of the line from a to b the points lie: a positive number, a negative one, or 0."""
    along, to = b - a, points - a
    return along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0]


def is_behind_walls(walls: NDArray, eye: NDArray, target: NDArray) -> bool:
    """Whether a wall, [n, end, coordinate], crosses the straight line between the two."""
    a, b = walls[:, 0], walls[:, 1]
    apart = sides(eye, target, a) * sides(eye, target, b) < 0
    return bool((apart & (sides(a, b, eye) * sides(a, b, target) < 0)).any())


def is_out_of_sight(walls: NDArray, start: Start, vest: Point) -> bool:
    """Far outside the field of view, which is 45 degrees to each side, or behind walls over its whole width."""
    eye, target = np.array(start[0]), np.array(vest)
    way = target - eye
    distance = float(np.hypot(*way))
    turn = (np.degrees(np.arctan2(way[1], way[0])) - start[1] + 180) % 360 - 180
    if abs(turn) > 70 and distance > 60:
        return True
    across = np.array([-way[1], way[0]]) / distance
    return all(is_behind_walls(walls, eye, target + s * across) for s in np.linspace(-WIDTH / 2, WIDTH / 2, 9))


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("name", ["my_way_home", "my_way_home_small"])
def test_goals_out_of_sight_give_the_same_pictures(name: str, split: str) -> None:
    scenario = load_scenario(name)
    walls, goals = scenario_geometry(scenario).walls, scenario.goals(split)
    vests = {goal: (scenario.point(goal).x, scenario.point(goal).y) for goal in goals}
    compared: set[int] = set()
    different = 0
    with closing(MyWayHomeEnv(split=split, scenario=name, num_contexts=0)) as env:
        for seed in range(SEEDS):
            shown = {goal: first_pictures(env, goal, seed) for goal in goals}
            for a, b in combinations(goals, 2):
                start, pictures = shown[a]
                if shown[b][0] != start:
                    continue  # the start is another point where it would be the goal
                if all(is_out_of_sight(walls, start, vests[goal]) for goal in (a, b)):
                    np.testing.assert_array_equal(pictures, shown[b][1], err_msg=f"goals {a} and {b}, seed {seed}")
                    compared |= {a, b}
                else:
                    different += not np.array_equal(pictures, shown[b][1])
    assert compared == set(goals)
    assert different, "a vest in sight is seen"
