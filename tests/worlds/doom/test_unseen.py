"""Steps that nobody looks at, in real ViZDoom: whatever is not shown happens as if it were."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import numpy as np
import pytest

from sf_explore_go.worlds.doom.env import WALKS, MyWayHomeEnv
from sf_explore_go.worlds.doom.reach import Reach
from tests.worlds.doom.navigator import FORWARD, IDLE, Navigator
from tests.worlds.doom.test_env import LIVING_REWARD, TICS, kill_engine

EXPLORE_TICS = 800
LAST_SEEN = ("position", "angle")  # at an episode's end; nobody has seen the last step before it


@contextmanager
def pair(**options: Any) -> Iterator[tuple[MyWayHomeEnv, MyWayHomeEnv]]:
    """Two equal environments: one that is looked at all the time, and one for steps that are not."""
    with ExitStack() as stack:
        seen, unseen = (stack.enter_context(closing(MyWayHomeEnv(num_contexts=0, **options))) for _ in range(2))
        yield seen, unseen


def both_step(seen: MyWayHomeEnv, unseen: MyWayHomeEnv, action: int) -> tuple[bool, bool]:
    """The same step in both, compared; returns whether it ended the episode, and whether it was shown."""
    picture, *outcome, info = seen.step(action)
    before = unseen._observation
    other, *other_outcome, other_info = unseen.step(action)
    ended = bool(outcome[1] or outcome[2])
    shown = "position" in other_info
    assert other_outcome == outcome
    hidden = LAST_SEEN if ended or not shown else ()
    assert {k: v for k, v in other_info.items() if k not in hidden} == {
        k: v for k, v in info.items() if k not in hidden
    }
    if not shown:
        assert other is before
    elif not ended:
        np.testing.assert_array_equal(other, picture)
    return ended, shown


def play_phase(seen: MyWayHomeEnv, unseen: MyWayHomeEnv, seed: int) -> tuple[int, int, bool]:
    """Random actions, the last of them shown, and two more; returns decisions, shown ones, and whether it ended."""
    rng = np.random.default_rng(seed)
    unseen.unseen = True  # a reset shows its picture in any case
    (first, info), (other, other_info) = seen.reset(seed=seed), unseen.reset(seed=seed)
    np.testing.assert_array_equal(first, other)
    assert info == other_info
    decisions = int(rng.integers(1, EXPLORE_TICS // seen.frameskip + 1))
    shown_ones = 0
    for decision in range(decisions + 2):
        unseen.unseen = decision < decisions - 1
        ended, shown = both_step(seen, unseen, int(rng.integers(5)))
        shown_ones += shown
        if ended:
            return decision + 1, shown_ones, True
    return decisions + 2, shown_ones, False


def play_phases(phases: int, **options: Any) -> tuple[float, int]:
    """Share of the decisions that were shown, and how many of the phases ended their episode."""
    with pair(**options) as (seen, unseen):
        decisions, shown, ended = np.array([play_phase(seen, unseen, seed) for seed in range(phases)]).sum(axis=0)
    return shown / decisions, int(ended)


SMALL = {"scenario": "my_way_home_small", "frameskip": 8, "pixel_format": "CHW", "res_w": 64, "res_h": 36}


def test_forty_phases() -> None:
    for options in (SMALL, {"split": "test"}):
        shown, _ = play_phases(20, **options)
        assert shown < 0.35


@pytest.mark.slow
def test_a_thousand_phases() -> None:
    found = 0
    for phases, options in (
        (600, SMALL),
        (250, SMALL | {"split": "test"}),
        (75, {}),
        (75, {"split": "test"}),
    ):
        shown, ended = play_phases(phases, **options)
        assert shown < 0.3
        found += ended
    assert found > 20


@pytest.mark.parametrize("frameskip", [1, 3, 8])
def test_the_vest_is_found_by_a_player_that_nobody_sees(frameskip: int) -> None:
    """The map ends one tic after the reward: with one tic per decision, always in the next one."""
    with pair(scenario="my_way_home_small", frameskip=frameskip) as (seen, unseen):
        shown_ones = decisions = 0
        for goal, seed in ((10, 2), (20, 3), (17, 6)):
            for env in (seen, unseen):
                env.reset(options={"context": (goal, seed)})
            unseen.unseen, navigator = True, Navigator(goal, "my_way_home_small")
            ended = False
            while not ended:
                x, y, angle = seen._variables.tolist()
                action = navigator.action((x, y), angle) if decisions % 5 else FORWARD  # gets out of a turn to and fro
                ended, shown = both_step(seen, unseen, action)
                shown_ones, decisions = shown_ones + shown, decisions + 1
    assert 0 < shown_ones < 0.6 * decisions


def test_the_time_limit_in_steps_that_nobody_sees() -> None:
    with closing(MyWayHomeEnv(frameskip=11)) as env:
        env.reset(options={"context": (10, 1)})
        env.unseen = True
        steps = [env.step(IDLE)[1:]]
        while not (steps[-1][1] or steps[-1][2]):
            steps.append(env.step(IDLE)[1:])
        assert len(steps) == 191
        assert steps[-1][1:3] == (False, True)
        assert [info["num_frames"] for *_, info in steps] == [11] * 190 + [10]
        assert sum(reward for reward, *_ in steps) == pytest.approx(TICS * LIVING_REWARD, abs=1e-9)
        assert ["position" in info for *_, info in steps] == [False] * 190 + [True]
        assert env.total_frames == 191 * 11


def test_an_engine_killed_while_nobody_looks_is_replaced() -> None:
    with closing(MyWayHomeEnv()) as env:
        picture, start = env.reset(options={"context": (10, 3)})
        env.unseen = True
        assert "position" not in env.step(FORWARD)[-1]
        pid = kill_engine(env)
        with pytest.warns(UserWarning, match=rf"engine \(process {pid}\) died in Context\(goal=10, seed=3\)"):
            after, reward, terminated, truncated, info = env.step(FORWARD)
        np.testing.assert_array_equal(after, picture)
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert info["engine_failed"] is True
        assert info["position"] == start["position"], "as last seen"
        again, _ = env.reset(options={"context": (10, 3)})
        np.testing.assert_array_equal(again, picture)
        assert "position" not in env.step(FORWARD)[-1]


@pytest.mark.parametrize("tics", [1, 8])
def test_a_player_never_comes_further_than_its_reach(tics: int) -> None:
    """Long walks along walls and round corners; far from walls the bound is what is walked."""
    reach, closest = Reach(tics), np.inf
    rng = np.random.default_rng(0)
    with closing(MyWayHomeEnv(num_contexts=0, frameskip=tics)) as env:
        for seed in range(12):
            _, info = env.reset(seed=seed)
            reach.rest()
            for action in rng.choice([1, 2, 3, 3, 3, 4], 40):
                reach.seen()
                start = np.array(info["position"])
                for _ in range(int(rng.integers(1, 60 // tics + 2))):
                    *_, terminated, truncated, info = env.step(int(action))
                    reach.decide(WALKS[action])
                    if terminated or truncated:
                        break
                if terminated or truncated:
                    break
                way = float(np.hypot(*(np.array(info["position"]) - start)))
                assert way <= reach.way + 0.05
                if way > 50:
                    closest = min(closest, reach.way / way)
    assert closest < 1.01
