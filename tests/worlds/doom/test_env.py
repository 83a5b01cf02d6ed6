"""My Way Home in real ViZDoom: what it shows, what it rewards, how it ends, and that contexts mean what they say."""

import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sf_explore_go.core.contexts import Context
from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.doom.env import MyWayHomeEnv
from sf_explore_go.worlds.doom.scenario import config_path, ensure_wad, load_scenario
from tests.worlds.doom.navigator import BACKWARD, FORWARD, IDLE, TURN_LEFT, Navigator

LIVING_REWARD = -0.0001
TICS = 2100
ROOT = Path(__file__).parents[3]

Step = tuple[float, bool, bool, dict[str, Any]]  # what a step returns, without the picture


@pytest.fixture(scope="module")
def env() -> Iterator[MyWayHomeEnv]:
    env = MyWayHomeEnv(num_contexts=0)
    yield env
    env.close()


@pytest.fixture(scope="module")
def test_split_env() -> Iterator[MyWayHomeEnv]:
    env = MyWayHomeEnv(split="test", num_contexts=0)
    yield env
    env.close()


def walk(env: MyWayHomeEnv, context: Context) -> list[Step]:
    """Walk to the vest."""
    _, info = env.reset(options={"context": context})
    navigator = Navigator(context.goal)
    steps: list[Step] = []
    while not (steps and (steps[-1][1] or steps[-1][2])):
        _, reward, terminated, truncated, info = env.step(navigator.action(info["position"], info["angle"]))
        steps.append((reward, terminated, truncated, info))
    return steps


def idle_until_end(env: MyWayHomeEnv) -> list[Step]:
    steps: list[Step] = []
    while not (steps and (steps[-1][1] or steps[-1][2])):
        steps.append(env.step(IDLE)[1:])
    return steps


def kill_engine(env: MyWayHomeEnv) -> int:
    assert env._engine is not None
    assert env._engine.pid is not None
    os.kill(env._engine.pid, signal.SIGKILL)
    return env._engine.pid


# --- spaces and pictures ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, (72, 128, 3)),
        ({"pixel_format": "CHW"}, (3, 72, 128)),
        ({"res_w": 160, "res_h": 120}, (120, 160, 3)),
        ({"res_w": 64, "res_h": 36, "wide_aspect_ratio": True, "pixel_format": "CHW"}, (3, 36, 64)),
    ],
)
def test_pictures_have_the_shape_of_the_space(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    env = MyWayHomeEnv(**options)
    assert env._engine is None, "making an environment starts no engine"
    assert env.observation_space.shape == shape
    try:
        for picture in (env.reset(seed=0)[0], env.step(FORWARD)[0]):
            assert picture.dtype == np.uint8
            assert env.observation_space.contains(picture)
            assert picture.std() > 5, "a picture, not a blank screen"
    finally:
        env.close()


def stock_env(folder: Path, wide: bool) -> Any:
    """Stock Sample Factory's whole Doom pipeline, on the first training map instead of its own."""
    from sf_examples.vizdoom.doom.doom_params import default_doom_cfg
    from sf_examples.vizdoom.doom.doom_utils import DoomSpec, make_doom_env_impl

    scenario = load_scenario()
    config = Path(shutil.copy(config_path(scenario, "train"), folder))
    shutil.copy(ensure_wad(scenario, "train"), folder / "my_way_home_train.wad")  # where the config looks for it
    cfg = default_doom_cfg(env="stock")
    cfg.wide_aspect_ratio = wide
    return make_doom_env_impl(DoomSpec("stock", str(config), gymnasium.spaces.Discrete(5)), cfg=cfg)


@pytest.mark.parametrize("wide", [False, True])
def test_pictures_and_rewards_equal_stock_sample_factory(
    wide: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the stock engine writes into the working directory
    seed = 7
    context = Context(load_scenario().goals("train")[0], seed)
    stock = stock_env(tmp_path, wide)
    ours = [MyWayHomeEnv(pixel_format=layout, wide_aspect_ratio=wide) for layout in ("CHW", "HWC")]
    try:
        pictures = [stock.reset(seed=seed)[0]] + [env.reset(options={"context": context})[0] for env in ours]
        for action in np.random.default_rng(0).integers(5, size=40):
            np.testing.assert_array_equal(pictures[0], pictures[1])
            np.testing.assert_array_equal(pictures[0].transpose(1, 2, 0), pictures[2])
            steps = [env.step(action) for env in (stock, *ours)]
            pictures = [step[0] for step in steps]
            assert steps[0][1] == steps[1][1] == steps[2][1]
    finally:
        for env in (stock, *ours):
            env.close()


def test_gymnasium_is_content() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("SfExploreGo/MyWayHome-v0", split="test", render_mode="rgb_array")
        try:
            check_env(env.unwrapped)
            env.reset(seed=3)
            for action in range(5):
                env.step(action)
        finally:
            env.close()


def test_render_shows_the_picture_before_resizing() -> None:
    for layout in ("HWC", "CHW"):
        env = MyWayHomeEnv(render_mode="rgb_array", pixel_format=layout)
        try:
            assert env.render() is None
            env.reset(seed=0)
            picture = env.render()
            assert picture is not None
            assert picture.shape == (120, 160, 3)
            assert picture.flags.c_contiguous
        finally:
            env.close()


# --- rewards and ends -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", load_scenario().goals("train"))
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_walking_to_the_vest(env: MyWayHomeEnv, goal: int, seed: int) -> None:
    context = Context(goal, seed)
    steps = walk(env, context)
    for reward, terminated, truncated, info in steps[:-1]:
        assert not terminated
        assert not truncated
        assert reward == pytest.approx(4 * LIVING_REWARD, abs=1e-12)
        assert info["num_frames"] == 4
        assert info["success"] is False
    reward, terminated, truncated, info = steps[-1]
    assert terminated is True
    assert truncated is False
    assert info["success"] is True
    assert info["context"] == context
    assert info["episode_extra_stats"] == {"success": 1.0, "engine_failed": 0.0}
    assert 1 <= info["num_frames"] <= 4
    assert reward == pytest.approx(1 + LIVING_REWARD * info["num_frames"], abs=1e-12)
    vest = load_scenario().point(goal)
    assert np.hypot(info["position"][0] - vest.x, info["position"][1] - vest.y) < 80


def test_walking_to_every_test_goal(test_split_env: MyWayHomeEnv) -> None:
    for goal in load_scenario().goals("test"):
        reward, terminated, _, info = walk(test_split_env, Context(goal, 5))[-1]
        assert terminated, goal
        assert info["success"], goal
        assert reward > 0.999, goal


def test_idling_is_truncated_after_525_decisions(env: MyWayHomeEnv) -> None:
    env.reset(options={"context": (10, 1)})
    frames_before = env.total_frames
    steps = idle_until_end(env)
    assert len(steps) == 525
    reward, terminated, truncated, info = steps[-1]
    assert terminated is False
    assert truncated is True
    assert info["success"] is False
    assert info["episode_extra_stats"] == {"success": 0.0, "engine_failed": 0.0}
    assert reward == pytest.approx(4 * LIVING_REWARD, abs=1e-12)
    assert sum(step[0] for step in steps) == pytest.approx(TICS * LIVING_REWARD, abs=1e-9)
    assert sum(step[3]["num_frames"] for step in steps) == TICS
    assert env.total_frames - frames_before == 525 * 4


def test_a_frameskip_that_does_not_divide_the_time_limit() -> None:
    env = MyWayHomeEnv(frameskip=11)
    try:
        env.reset(seed=0)
        steps = idle_until_end(env)
    finally:
        env.close()
    assert len(steps) == 191
    assert steps[-1][1:3] == (False, True)
    assert steps[-1][3]["num_frames"] == TICS - 190 * 11 == 10
    assert env.total_frames == 191 * 11, "decisions times frameskip, as Sample Factory counts"


@pytest.mark.parametrize(("spare_tics", "success"), [(0, True), (-1, False), (1, True)])
def test_vest_and_time_limit_in_the_same_decision(spare_tics: int, success: bool) -> None:
    """The time limit is moved to the tic of the vest's reward, one before and one after it."""
    env = MyWayHomeEnv(frameskip=1)
    context = Context(20, 1)
    try:
        needed = len(walk(env, context))
        assert env._engine is not None
        env._engine._game.set_episode_timeout(needed + spare_tics)
        steps = walk(env, context)
    finally:
        env.close()
    reward, terminated, truncated, info = steps[-1]
    assert (terminated, truncated, info["success"]) == (success, not success, success)
    assert reward == pytest.approx(success + LIVING_REWARD, abs=1e-12)
    assert info["num_frames"] == 1
    assert len(steps) == needed + min(spare_tics, 0)


def test_the_end_repeats_the_last_picture_and_wants_a_reset(env: MyWayHomeEnv) -> None:
    picture, _ = env.reset(options={"context": (10, 1)})
    truncated = False
    while not truncated:
        last = picture
        picture, _, _, truncated, _ = env.step(IDLE)
    np.testing.assert_array_equal(picture, last)
    assert picture is not last
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(IDLE)
    env.reset(options={"context": (10, 1)})
    reward = env.step(IDLE)[1]
    assert reward == pytest.approx(4 * LIVING_REWARD, abs=1e-12), "nothing of the last episode is left"


def test_nothing_of_a_won_episode_is_left_in_the_next(env: MyWayHomeEnv) -> None:
    walk(env, Context(20, 1))
    for context in (Context(20, 1), Context(26, 1)):
        env.reset(options={"context": context})
        _, reward, terminated, _, info = env.step(IDLE)
        assert reward == pytest.approx(4 * LIVING_REWARD, abs=1e-12)
        assert not terminated
        assert not info["success"]


def test_actions_do_what_they_say(env: MyWayHomeEnv) -> None:
    def after(action: int) -> tuple[float, float]:
        _, info = env.reset(options={"context": (20, 3)})
        (x, y), angle = info["position"], info["angle"]
        for _ in range(3):
            _, _, _, _, info = env.step(action)
        ahead = (info["position"][0] - x) * np.cos(np.radians(angle))
        ahead += (info["position"][1] - y) * np.sin(np.radians(angle))
        return float(ahead), (info["angle"] - angle + 180) % 360 - 180

    assert after(IDLE) == pytest.approx((0, 0), abs=1e-3)
    assert after(FORWARD)[0] > 10
    assert after(BACKWARD)[0] < -10
    assert 10 < after(TURN_LEFT)[1] < 60
    assert -60 < after(2)[1] < -10


# --- contexts ---------------------------------------------------------------------------------------------------------

FRAMES_SCRIPT = """
import hashlib, sys
from sf_explore_go.worlds.doom.env import MyWayHomeEnv
env = MyWayHomeEnv()
for context in [(10, 3), (26, 4294967295), (10, 0), (20, 77), (10, 3)]:
    picture, info = env.reset(options={"context": context})
    env.step(int(sys.argv[1]))
    print(hashlib.sha256(picture.tobytes()).hexdigest(), *info["position"], info["angle"])
env.close()
"""


def test_a_context_gives_the_same_first_picture_in_two_processes() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", FRAMES_SCRIPT, action],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.split("\n")
        for action in ("0", "3")
    ]
    assert outputs[0] == outputs[1]
    assert len(set(outputs[0])) == 5, "four contexts and the empty last line"
    assert outputs[0][0] == outputs[0][4]


def test_a_context_gives_the_same_first_picture_whatever_was_played_before(env: MyWayHomeEnv) -> None:
    context = Context(15, 123)
    fresh = MyWayHomeEnv()
    expected, info = fresh.reset(options={"context": context})
    fresh.close()
    rng = np.random.default_rng(0)
    for steps in (0, 1, 30):
        env.reset(options={"context": (int(rng.choice([10, 15, 20, 26])), int(rng.integers(2**32)))})
        for action in rng.integers(5, size=steps):
            env.step(action)
        picture, again = env.reset(options={"context": context})
        np.testing.assert_array_equal(picture, expected)
        assert again == info
    walk(env, context)
    np.testing.assert_array_equal(env.reset(options={"context": context})[0], expected)


def test_whole_episodes_repeat(env: MyWayHomeEnv) -> None:
    def play() -> list[Any]:
        seen: list[Any] = [env.reset(options={"context": (26, 9)})]
        seen += [env.step(action) for action in np.random.default_rng(1).integers(5, size=100)]
        return seen

    for first, second in zip(play(), play(), strict=True):
        np.testing.assert_array_equal(first[0], second[0])
        assert first[1:] == second[1:]


def test_reset_with_a_seed_is_reproducible() -> None:
    def contexts(env: MyWayHomeEnv, seed: int) -> list[Context]:
        drawn = [env.reset(seed=seed)[1]["context"]]
        return drawn + [env.reset()[1]["context"] for _ in range(20)]

    one, other = MyWayHomeEnv(), MyWayHomeEnv()
    try:
        assert contexts(one, 5) == contexts(other, 5) == contexts(one, 5)
        assert contexts(one, 6) != contexts(one, 5)
        np.testing.assert_array_equal(one.reset(seed=8)[0], other.reset(seed=8)[0])
    finally:
        one.close()
        other.close()


@pytest.mark.parametrize("split", ["train", "test"])
def test_resets_draw_from_the_set_and_all_of_it(split: str) -> None:
    env = MyWayHomeEnv(split=split, num_contexts=5, context_seed=3)
    try:
        env.reset(seed=0)
        drawn = {env.reset()[1]["context"] for _ in range(60)}
    finally:
        env.close()
    assert drawn == set(env.contexts.contexts)
    assert len(drawn) == 5
    assert {context.goal for context in drawn} <= set(load_scenario().goals(split))


def test_each_reset_is_in_its_context_at_once(env: MyWayHomeEnv) -> None:
    """Not one episode late: the start that a context has when played twice is the start it has at first."""
    contexts = [Context(goal, seed) for seed in range(3) for goal in (10, 15, 20, 26)]
    starts = [env.reset(options={"context": context})[1] for context in contexts]
    for context, start in zip(contexts, starts, strict=True):
        env.reset(options={"context": context})
        assert env.reset(options={"context": context})[1] == start
    assert len({start["position"] for start in starts}) > 1


@pytest.mark.parametrize("value", [Context(20, 4), {"goal": 20, "seed": 4}, (20, 4), [np.int64(20), np.uint32(4)]])
def test_a_context_may_be_chosen_in_many_forms(env: MyWayHomeEnv, value: Any) -> None:
    info = env.reset(options={"context": value})[1]
    assert info["context"] == Context(20, 4)
    assert info["goal"] == 20


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"context": (11, 0)}, r"goal 11: it must be a train goal of my_way_home, 10, 15, 20, 26"),
        ({"context": (10, -1)}, r"context seed -1: it must be from 0 to 4294967295"),
        ({"context": (10, 2**32)}, r"context seed 4294967296: it must be from 0 to 4294967295"),
        ({"context": {"goal": 10}}, r"context=\{'goal': 10\}: it must be a Context, a mapping or a pair"),
        ({"context": (10, 1.5)}, r"context=\(10, 1.5\): it must be"),
        ({"context": "here"}, r"context='here': it must be"),
        ({"context": 3}, r"context=3: it must be"),
        ({"goal": 10}, r"reset options 'goal': the only option is 'context'"),
    ],
)
def test_a_context_that_does_not_exist_is_refused(env: MyWayHomeEnv, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{sentence}"):
        env.reset(options=options)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"split": "valid"}, "split='valid': it must be train or test"),
        ({"num_contexts": -3}, "num_contexts=-3: it must be a whole number, at least 0"),
        ({"num_contexts": 2.5}, "num_contexts=2.5: it must be a whole number, at least 0"),
        ({"frameskip": 0}, "frameskip=0: it must be a whole number, at least 1"),
        ({"res_w": 0}, "res_w=0: it must be a whole number, at least 1"),
        ({"res_h": -72}, "res_h=-72: it must be a whole number, at least 1"),
        ({"pixel_format": "WHC"}, "pixel_format='WHC': it must be HWC or CHW"),
        ({"render_mode": "ascii"}, "render_mode='ascii': it must be None or rgb_array"),
        ({"scenario": "nowhere"}, "scenario 'nowhere': it must be my_way_home or my_way_home_small"),
        ({"episodes_per_engine": 0}, "episodes_per_engine=0: it must be a whole number, at least 1"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        MyWayHomeEnv(**options)
    assert str(error.value) == sentence


@pytest.mark.parametrize("action", [-1, 5])
def test_a_bad_action_is_refused(env: MyWayHomeEnv, action: int) -> None:
    env.reset(seed=0)
    with pytest.raises(UsageError, match=f"^action={action}: it must be from 0 to 4$"):
        env.step(action)


# --- engines that die -------------------------------------------------------------------------------------------------


def test_an_engine_killed_mid_episode_is_replaced() -> None:
    env = MyWayHomeEnv()
    try:
        env.reset(options={"context": (10, 3)})
        picture, *_ = env.step(FORWARD)
        pid = kill_engine(env)
        with pytest.warns(UserWarning, match=rf"engine \(process {pid}\) died in Context\(goal=10, seed=3\)"):
            after, reward, terminated, truncated, info = env.step(FORWARD)
        np.testing.assert_array_equal(after, picture)
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert info["engine_failed"] is True
        assert info["success"] is False
        assert info["episode_extra_stats"] == {"success": 0.0, "engine_failed": 1.0}
        assert env.total_frames == 2 * 4
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step(FORWARD)
        env.reset(options={"context": (10, 3)})
        np.testing.assert_array_equal(env.step(FORWARD)[0], picture)
        assert kill_engine(env) != pid
    finally:
        env.close()


def test_an_engine_killed_between_episodes_is_replaced_during_reset() -> None:
    env = MyWayHomeEnv()
    try:
        expected, _ = env.reset(options={"context": (10, 3)})
        kill_engine(env)
        with pytest.warns(UserWarning, match=r"engine died at the start of Context\(goal=10, seed=3\)"):
            picture, _ = env.reset(options={"context": (10, 3)})
        np.testing.assert_array_equal(picture, expected)
        assert env.step(IDLE)[1] < 0
    finally:
        env.close()


def test_engines_are_recycled() -> None:
    env = MyWayHomeEnv(episodes_per_engine=2)
    pids, pictures = [], []
    try:
        for _ in range(5):
            pictures.append(env.reset(options={"context": (15, 2)})[0])
            assert env._engine is not None
            pids.append(env._engine.pid)
    finally:
        env.close()
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]
    for picture in pictures:
        np.testing.assert_array_equal(picture, pictures[0])


def test_close_twice_and_reset_after_close() -> None:
    env = MyWayHomeEnv()
    env.close()
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(IDLE)
    env.reset(seed=0)
    env.close()
