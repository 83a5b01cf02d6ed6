"""Four Rooms: its tables against MiniGrid, its sets of contexts, and the environment as Gymnasium sees it."""

from collections import Counter

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from minigrid.core.constants import DIR_TO_VEC
from minigrid.core.grid import Grid
from minigrid.core.world_object import Goal, Wall
from minigrid.envs.fourrooms import FourRoomsEnv as MiniGridRooms
from minigrid.wrappers import FullyObsWrapper

from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.grid.four_rooms import TIME_LIMIT, FourRoomsEnv
from sf_explore_go.worlds.grid.rooms import (
    DIRECTIONS,
    RoomContext,
    doors_of,
    draw_contexts,
    free_cells,
    layout_of,
    side,
    states_per_context,
    table_of,
    topologies,
)
from sf_explore_go.worlds.states import GOAL

SIZES = (9, 19)


class Reference(MiniGridRooms):
    """MiniGrid's own environment with walls, goal and agent put where a context says."""

    def __init__(self, context: RoomContext, size: int) -> None:
        self.context = context
        super().__init__(max_steps=10**9)
        self.width = self.height = size

    def _gen_grid(self, width: int, height: int) -> None:
        self.grid = Grid(self.width, self.height)
        for row, column in np.argwhere(~free_cells(self.context.doors, self.width)):
            self.grid.set(int(column), int(row), Wall())
        self.put_obj(Goal(), self.context.goal[1], self.context.goal[0])
        self.agent_pos, self.agent_dir, self.mission = (1, 1), 0, ""

    def put(self, cell: tuple[int, int], direction: int) -> None:
        self.agent_pos, self.agent_dir, self.step_count = np.array(cell[::-1]), direction, 0


@pytest.mark.parametrize("size", SIZES)
def test_every_state_and_action_is_minigrids(size: int) -> None:
    """20 contexts: where each action leads, what it earns, and what is seen."""
    seen = 0
    for context in draw_contexts("train", size, 20, 1, seed=4):
        layout = layout_of(context.doors, context.goal, size)
        reference = Reference(context, size)
        reference.reset()
        full = FullyObsWrapper(reference)
        for state in range(len(layout.next_state)):
            cell, direction = layout.cells[state // 4], state % 4
            for action in range(3):
                reference.put(cell, direction)
                if action == 0:
                    picture = full.observation({})["image"] if seen % 7 == 0 else None
                    if picture is not None:  # [x, y, 3] there, [3, row, column] here
                        np.testing.assert_array_equal(layout.observe(state), picture.transpose(2, 1, 0))
                _, reward, terminated, _, _ = reference.step(action)
                after = layout.next_state[state, action]
                assert (after == GOAL) == terminated == (float(reward) > 0)
                if not terminated:
                    assert layout.cells[after // 4] == tuple(int(x) for x in reference.agent_pos[::-1])
                    assert after % 4 == reference.agent_dir
                seen += 1
    assert seen == 20 * 3 * states_per_context(size)


def test_directions_are_minigrids() -> None:
    assert [tuple(vector[::-1]) for vector in DIR_TO_VEC] == list(DIRECTIONS)


@pytest.mark.parametrize(("size", "expected"), [(9, 156), (19, 1036)])
def test_the_number_of_states_is_the_formulas(size: int, expected: int) -> None:
    """All of them can be reached from the start: counted by walking, not by listing."""
    assert states_per_context(size) == expected
    for context in draw_contexts("test", size, 5, 5, seed=1):
        layout = layout_of(context.doors, context.goal, size)
        found = {layout.state(context.start, context.direction)}
        edge = list(found)
        while edge:
            edge = [after for state in edge for after in layout.steps[state] if after >= 0 and after not in found]
            edge = list(dict.fromkeys(edge))
            found.update(edge)
        assert len(found) == expected


def test_topologies_are_all_different() -> None:
    assert topologies(9) == 81
    assert topologies(19) == 4096
    maps = {free_cells(doors_of(number, 9), 9).tobytes() for number in range(81)}
    assert len(maps) == 81
    for number in range(81):
        free = free_cells(doors_of(number, 9), 9)
        assert free.sum() == 4 * side(9) ** 2 + 4


def test_no_topology_of_a_test_set_occurs_in_training() -> None:
    """A thousand seeds of the small size, fifty of the paper's."""
    for size, count, seeds in ((9, 40, 1000), (19, 200, 50)):
        for seed in range(seeds):
            train = draw_contexts("train", size, count, count, seed)
            trained = {context.doors for context in train}
            assert len(trained) == count
            for split in ("test", "validation"):
                assert not trained & {context.doors for context in draw_contexts(split, size, count, 40, seed)}


def test_reachable_contexts_differ_in_where_the_agent_stands_and_looks() -> None:
    for seed in range(200):
        train, reachable = (draw_contexts(split, 9, 40, 40, seed) for split in ("train", "reachable"))
        for one, other in zip(train, reachable, strict=True):
            assert (one.doors, one.goal) == (other.doors, other.goal)
            assert one.start != other.start
            assert one.direction != other.direction
            assert other.start != other.goal


def test_the_test_set_does_not_change_with_the_training_set() -> None:
    assert draw_contexts("test", 9, 5, 40, 3) == draw_contexts("test", 9, 40, 40, 3)
    assert draw_contexts("train", 9, 40, 40, 3)[:5] == draw_contexts("train", 9, 5, 40, 3)
    assert len({one.doors for one in draw_contexts("test", 9, 80, 40, 3)}) == 1  # all that is left


def test_goals_and_starts_are_spread_evenly() -> None:
    """Goals over the 36 cells of the rooms; 4 000 draws, so 111 each, give or take five standard deviations."""
    drawn = [one for seed in range(100) for one in draw_contexts("train", 9, 40, 40, seed)]
    goals, directions = Counter(one.goal for one in drawn), Counter(one.direction for one in drawn)
    assert len(goals) == 36
    assert all(abs(count - 4000 / 36) < 5 * np.sqrt(4000 / 36) for count in goals.values())
    assert all(abs(count - 1000) < 5 * np.sqrt(1000) for count in directions.values())
    assert all(one.start != one.goal for one in drawn)


def test_the_table_of_a_set_holds_the_layouts_one_after_another() -> None:
    contexts = draw_contexts("train", 9, 3, 3, seed=2)
    table = table_of(contexts, 9)
    assert (table.states, table.actions) == (3 * 156, 3)
    for number, context in enumerate(contexts):
        layout = layout_of(context.doors, context.goal, 9)
        block = table.next_state[156 * number : 156 * (number + 1)]
        np.testing.assert_array_equal(block == GOAL, layout.next_state == GOAL)
        np.testing.assert_array_equal(block[block != GOAL] - 156 * number, layout.next_state[layout.next_state != GOAL])
        np.testing.assert_array_equal(table.observe(np.array([156 * number + 17]))[0], layout.observe(17))


def test_gymnasiums_checker_is_content() -> None:
    for size in SIZES:
        env = gymnasium.make("SfExploreGo/FourRooms-v0", grid_size=size, num_contexts=4, render_mode="rgb_array")
        check_env(env.unwrapped, skip_render_check=False)


def test_an_episode_by_hand() -> None:
    """Walk the shortest way by breadth-first search here, and be paid once, at the end."""
    env = FourRoomsEnv("test", grid_size=9, num_contexts=5, test_contexts=5, context_seed=3)
    for chosen in range(5):
        obs, info = env.reset(options={"context": chosen})
        context = env.contexts[chosen]
        assert (obs[0] == 10).sum() == (obs[0] == 8).sum() == 1
        assert obs[0][context.start] == 10
        assert obs[2][context.start] == context.direction
        assert info["state"] // 156 == chosen
        actions = shortest(env)
        rewards = [env.step(action) for action in actions]
        assert [reward for _, reward, *_ in rewards] == [0.0] * (len(actions) - 1) + [1.0]
        obs, _, terminated, truncated, info = rewards[-1]
        assert (terminated, truncated, info["success"]) == (True, False, True)
        assert info["state"] == -1 - chosen
        assert obs[0][context.goal] == 10


def shortest(env: FourRoomsEnv) -> list[int]:
    steps = env._layout.steps
    paths: dict[int, list[int]] = {env.state: []}
    edge = [env.state]
    while edge:
        following = []
        for state in edge:
            for action, after in enumerate(steps[state]):
                if after < 0:
                    return [*paths[state], action]
                if after not in paths:
                    paths[after] = [*paths[state], action]
                    following.append(after)
        edge = following
    raise AssertionError("no way")


def test_time_runs_out_after_a_hundred_steps() -> None:
    env = FourRoomsEnv("train", grid_size=9, num_contexts=3)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(TIME_LIMIT)]
    assert ends == [(False, False)] * (TIME_LIMIT - 1) + [(False, True)]


def test_contexts_are_cycled_in_an_order_of_the_seed() -> None:
    env = FourRoomsEnv("train", grid_size=9, num_contexts=40)
    env.reset(seed=1)
    first = [env.context] + [env.reset()[1]["context"] for _ in range(79)]
    assert sorted(first[:40]) == sorted(first[40:]) == list(range(40))
    assert first[:40] != first[40:]
    env.reset(seed=1)
    assert [env.context] + [env.reset()[1]["context"] for _ in range(79)] == first


def test_bad_values_are_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"^grid_size=4: it must be an odd number, at least 5, so that there are four"):
        FourRoomsEnv(grid_size=4)
    with pytest.raises(UsageError, match=r"^num_contexts=81: it must be from 1 to 80; a grid of 9 x 9 has 81 topolog"):
        FourRoomsEnv(grid_size=9, num_contexts=81)
    with pytest.raises(UsageError, match=r"^split='all': it must be train, test, reachable, validation$"):
        FourRoomsEnv(split="all")
    env = FourRoomsEnv(grid_size=9, num_contexts=3)
    with pytest.raises(UsageError, match=r"^context=3: it must be from 0 to 2$"):
        env.reset(options={"context": 3})


def test_a_picture_shows_agent_and_goal() -> None:
    env = FourRoomsEnv("train", grid_size=9, num_contexts=3, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (216, 216, 3)
    context = env.contexts[env.context]
    goal = picture[24 * context.goal[0] + 12, 24 * context.goal[1] + 12]
    agent = picture[24 * context.start[0] + 12, 24 * context.start[1] + 12]
    assert tuple(goal) == (60, 160, 60)
    assert tuple(agent) == (200, 40, 40)
