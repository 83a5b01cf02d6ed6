"""The cross, cell by cell, against a map drawn by hand."""

import pytest
from gymnasium.utils.env_checker import check_env

from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.grid.illustrative import DOWN, LEFT, RIGHT, UP, IllustrativeEnv, next_cell
from sf_explore_go.worlds.grid.oracle import Oracle

CROSS = [
    "..N..",
    "..a..",
    "WbGcE",
    "..d..",
    "..S..",
]
CELLS = {CROSS[r][c]: (r, c) for r in range(5) for c in range(5) if CROSS[r][c] != "."}
# by hand: cell -> where up, down, left, right lead
LEADS = {
    "N": "NaWE",
    "E": "NScE",
    "S": "dSWE",
    "W": "NSWb",
    "a": "NGaa",
    "b": "bbWG",
    "c": "ccGE",
    "d": "GSdd",
}


@pytest.mark.parametrize("cell", LEADS)
def test_every_transition(cell: str) -> None:
    names = {position: name for name, position in CELLS.items()}
    assert "".join(names[next_cell(CELLS[cell], a)] for a in (UP, DOWN, LEFT, RIGHT)) == LEADS[cell]


def test_gymnasium_checker() -> None:
    for split in ("train", "test"):
        check_env(IllustrativeEnv(split=split), skip_render_check=True)


def test_observations_pixel_by_pixel() -> None:
    env = IllustrativeEnv("train")
    backgrounds = [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1)]
    for context, (background, start) in enumerate(zip(backgrounds, "NESW", strict=True)):
        obs, info = env.reset(options={"context": context})
        assert info["position"] == CELLS[start][::-1]  # x, y
        for row in range(5):
            for column in range(5):
                colour = {CELLS[start]: (0.5, 0, 0), (2, 2): (0, 0.5, 0)}.get((row, column), background)
                assert tuple(obs[:, row, column]) == colour


def test_test_contexts_are_white_with_the_same_starts() -> None:
    env = IllustrativeEnv("test")
    starts = []
    for context in range(4):
        obs, info = env.reset(options={"context": context})
        starts.append(info["position"][::-1])
        assert tuple(obs[:, 1, 1]) == (1, 1, 1)
    assert starts == [CELLS[name] for name in "NESW"]


def test_goal_terminates_with_reward_one_and_time_out_truncates() -> None:
    env = IllustrativeEnv()
    env.reset(options={"context": 0})
    assert env.step(DOWN)[1:4] == (0.0, False, False)
    *_, info = outcome = env.step(DOWN)
    assert outcome[1:4] == (1.0, True, False)
    assert info["success"] is True
    env.reset(options={"context": 0})
    flags = [env.step(UP)[2:4] for _ in range(20)]
    assert flags == [(False, False)] * 19 + [(False, True)]


def test_goal_in_the_last_step_is_success_not_time_out() -> None:
    env = IllustrativeEnv()
    env.reset(options={"context": 0})
    for _ in range(18):
        env.step(UP)
    env.step(DOWN)
    assert env.step(DOWN)[1:4] == (1.0, True, False)


def test_reset_with_a_seed_is_reproducible_and_covers_all_contexts() -> None:
    env = IllustrativeEnv()

    def contexts(seed: int) -> list[int]:
        first = env.reset(seed=seed)[1]["context"]
        return [first] + [env.reset()[1]["context"] for _ in range(50)]

    assert contexts(3) == contexts(3)
    assert contexts(3) != contexts(4)
    assert set(contexts(3)) == {0, 1, 2, 3}


@pytest.mark.parametrize("bad", [-1, 4, "north", 1.0])
def test_unknown_context_is_refused(bad: object) -> None:
    with pytest.raises(UsageError, match="it must be from 0 to 3"):
        IllustrativeEnv().reset(options={"context": bad})


def test_unknown_split_is_refused() -> None:
    with pytest.raises(UsageError, match="split='valid': it must be train or test"):
        IllustrativeEnv(split="valid")


def test_render() -> None:
    env = IllustrativeEnv(render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (160, 160, 3)


@pytest.mark.parametrize("context", range(4))
def test_the_oracle_sees_every_cell_and_the_goal_last(context: int) -> None:
    env, oracle = IllustrativeEnv(), Oracle()
    _, info = env.reset(options={"context": context})
    oracle.begin(info, 0)
    seen, over = {info["position"]}, False
    while not over:
        action = oracle.act(info)
        assert action is not None
        _, _, over, truncated, info = env.step(action)
        assert not truncated
        assert not over or len(seen) == 8
        seen.add(info["position"])
    assert len(seen) == 9
