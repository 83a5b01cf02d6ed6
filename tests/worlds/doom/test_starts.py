"""The built maps in the real engine: where the vest lies, where the player starts, and what the player sees."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import hypot, sqrt
from pathlib import Path

import numpy as np
import pytest
import vizdoom

from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.worlds.doom.scenario import SCENARIOS, SPLITS, Scenario, config_path, ensure_wad, load_scenario

GOALS = [(name, split, goal) for name in SCENARIOS for split in SPLITS for goal in load_scenario(name).goals(split)]


@contextmanager
def engine(scenario: Scenario, split: str, goal: int) -> Iterator[vizdoom.DoomGame]:
    game = vizdoom.DoomGame()
    game.load_config(str(config_path(scenario, split)))
    game.set_doom_scenario_path(str(ensure_wad(scenario, split)))
    game.set_doom_map(scenario.map_name(split, goal))
    game.set_objects_info_enabled(True)
    game.init()
    try:
        yield game
    finally:
        game.close()


def point_at(scenario: Scenario, x: float, y: float) -> int:
    """The id of the point that stands here; the engine's fixed-point numbers are exact to 2^-16."""
    (id,) = (point.id for point in scenario.points if hypot(point.x - x, point.y - y) < 0.001)
    return id


def reset(game: vizdoom.DoomGame, seed: int) -> tuple[float, float, float]:
    game.set_seed(seed)
    game.new_episode()
    x, y, angle = game.get_state().game_variables
    return float(x), float(y), float(angle)


def vest_places(game: vizdoom.DoomGame) -> list[tuple[float, float]]:
    objects = game.get_state().objects
    return [(item.position_x, item.position_y) for item in objects if item.name == "GreenArmor"]


def count_starts(scenario: Scenario, split: str, goal: int, resets: int) -> tuple[Counter[int], list[float]]:
    """How often each point was the start, and all angles; the vest is checked at every reset."""
    starts, angles = Counter[int](), []
    with engine(scenario, split, goal) as game:
        for i in range(resets):
            x, y, angle = reset(game, derive_seed(0, "starts", goal, i))
            starts[point_at(scenario, x, y)] += 1
            angles.append(angle)
            assert [point_at(scenario, *place) for place in vest_places(game)] == [goal]
    return starts, angles


@pytest.mark.parametrize(("name", "split", "goal"), GOALS)
def test_vest_is_at_the_goal_and_the_player_never(name: str, split: str, goal: int) -> None:
    scenario = load_scenario(name)
    starts, _ = count_starts(scenario, split, goal, 7 * len(scenario.points))
    assert set(starts) == {point.id for point in scenario.points} - {goal}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "split", "goal"), GOALS)
def test_starts_are_uniform_over_the_other_points(name: str, split: str, goal: int) -> None:
    scenario = load_scenario(name)
    resets = {"my_way_home": 2000, "my_way_home_small": 400}[name]
    starts, angles = count_starts(scenario, split, goal, resets)
    assert set(starts) == {point.id for point in scenario.points} - {goal}
    share = 1 / (len(scenario.points) - 1)
    standard_error = sqrt(share * (1 - share) / resets)
    deviations = {id: (count / resets - share) / standard_error for id, count in starts.items()}
    assert max(map(abs, deviations.values())) < 4, deviations
    # Angles are uniform too: each eighth of the circle within 4 standard errors of 1/8.
    eighths = np.bincount((np.array(angles) // 45).astype(int) % 8, minlength=8) / resets
    assert np.all(np.abs(eighths - 1 / 8) < 4 * sqrt(1 / 8 * 7 / 8 / resets)), eighths


def test_the_same_seed_gives_the_same_start_in_any_order_and_in_a_fresh_engine() -> None:
    scenario = load_scenario()
    with engine(scenario, "train", 15) as game:
        forward = {seed: reset(game, seed) for seed in range(20)}
        backward = {seed: reset(game, seed) for seed in reversed(range(20))}
    with engine(scenario, "train", 15) as game:
        fresh = {seed: reset(game, seed) for seed in (7, 3)}
    assert forward == backward
    assert fresh == {seed: forward[seed] for seed in (7, 3)}
    assert len(set(forward.values())) == 20


def test_the_map_with_the_stock_goal_shows_the_stock_picture() -> None:
    scenario = load_scenario()

    def frames(game: vizdoom.DoomGame) -> list[np.ndarray]:
        pictures = []
        for seed in range(5):
            reset(game, seed)
            game.make_action([1, 0, 1, 0], 8)
            pictures.append(np.array(game.get_state().screen_buffer))
        return pictures

    with engine(scenario, "test", 27) as game:
        ours = frames(game)
        game.close()
        game.set_doom_scenario_path(str(Path(vizdoom.scenarios_path) / scenario.stock_wad))
        game.set_doom_map("map01")
        game.init()
        stock = frames(game)
    assert ours[0].shape == (3, 120, 160)
    assert all(np.array_equal(a, b) for a, b in zip(ours, stock, strict=True))
    assert not np.array_equal(ours[0], ours[1])
