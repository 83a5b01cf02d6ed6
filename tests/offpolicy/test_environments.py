"""Steps from the table are those of the real environments, and streams those of the engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sf_explore_go.cli.train import main
from sf_explore_go.core.seeding import env_seed
from sf_explore_go.offpolicy.environments import TableEnvs
from sf_explore_go.offpolicy.trainer import training_table
from sf_explore_go.phases.schedule import PhaseSchedule
from sf_explore_go.worlds.grid.four_rooms import FourRoomsEnv
from sf_explore_go.worlds.registry import world_of
from sf_explore_go.worlds.states import GOAL
from tests.offpolicy.small import small_cfg


def make(cfg: Any) -> TableEnvs:
    envs = TableEnvs(cfg, training_table(cfg), cfg.num_envs_per_worker)
    envs.begin()
    return envs


def play(envs: TableEnvs, count: int, seed: int, on_step: Callable[[Any], None] = lambda _: None) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        steps = envs.step(rng.integers(3, size=len(envs)))
        on_step(steps)
        for index in np.flatnonzero(steps.ended).tolist():
            envs.begin_episode(index)


def test_every_step_is_that_of_the_real_environment() -> None:
    cfg = small_cfg("--max_pure_expl_steps=30")
    world = world_of(cfg.env)
    real = [world.make_env("train", cfg) for _ in range(cfg.num_envs_per_worker)]
    envs = make(cfg)
    keys = [world.state_key(env.reset(seed=env_seed(cfg.seed, "env", i))[1]) for i, env in enumerate(real)]
    assert keys == envs.state.tolist()
    seen = {"goal": 0, "time": 0}

    def compare(steps: Any) -> None:
        assert steps.state.tolist() == keys
        for i, env in enumerate(real):
            _, reward, terminated, truncated, info = env.step(int(steps.action[i]))
            assert (reward, terminated) == (steps.reward[i], steps.next_state[i] == GOAL)
            assert steps.ended[i] == (terminated or truncated)
            if not terminated:
                assert steps.next_state[i] == world.state_key(info)
            seen["goal"] += terminated
            seen["time"] += truncated
            keys[i] = world.state_key(env.reset()[1] if steps.ended[i] else info)

    play(envs, 800, seed=0, on_step=compare)
    assert min(seen.values()) > 3


def test_k_and_contexts_are_those_of_a_training_with_appo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[int, list[int]] = {}
    begun: dict[int, list[int]] = {}
    begin, reset = PhaseSchedule.begin_episode, FourRoomsEnv.reset

    def noted_begin(self: PhaseSchedule) -> Any:
        phase = begin(self)
        drawn.setdefault(id(self), []).append(self.explore_steps)
        return phase

    def noted_reset(self: FourRoomsEnv, **how: Any) -> Any:
        obs, info = reset(self, **how)
        begun.setdefault(id(self), []).append(info["context"])
        return obs, info

    kept: list[Any] = []  # so that no id is used twice
    monkeypatch.setattr(PhaseSchedule, "__init__", keeping(PhaseSchedule.__init__, kept))
    monkeypatch.setattr(FourRoomsEnv, "__init__", keeping(FourRoomsEnv.__init__, kept))
    monkeypatch.setattr(PhaseSchedule, "begin_episode", noted_begin)
    monkeypatch.setattr(FourRoomsEnv, "reset", noted_reset)
    flags = (
        "--env=four_rooms_train", "--seed=1", "--num_contexts=3", "--num_envs_per_worker=4", "--rollout=8",
        "--batch_size=32", "--num_batches_per_epoch=1", "--room_channels=4", "--encoder_conv_mlp_layers", "16",
        "--max_pure_expl_steps=20", "--train_for_env_steps=4000", "--quiet",
    )  # fmt: skip
    assert main([*flags, f"--train_dir={tmp_path}", "--experiment=run"]) == 0
    engines = [list(drawn.values())[-4:], [of for of in begun.values() if len(of) > 3][-4:]]
    drawn.clear()
    begun.clear()
    play(make(small_cfg("--max_pure_expl_steps=20")), 1500, seed=0)
    for theirs, ours in zip(engines, (list(drawn.values()), list(begun.values())), strict=True):
        assert len(theirs) == len(ours) == 4
        for its, mine in zip(theirs, ours, strict=True):
            shared = min(len(its), len(mine))
            assert shared > 5
            assert its[:shared] == mine[:shared]


def keeping(init: Any, kept: list[Any]) -> Any:
    def noted(self: Any, *args: Any, **more: Any) -> None:
        kept.append(self)
        init(self, *args, **more)

    return noted


def test_the_explore_phase_has_k_steps_and_the_time_limit_covers_both() -> None:
    envs = make(small_cfg("--max_pure_expl_steps=60"))
    left = envs.explore_steps.copy()

    def check(steps: Any) -> None:
        nonlocal left
        assert (steps.exploring == (left > 0)).all()
        left = np.maximum(left - 1, 0)
        assert (steps.number < envs.limit).all()
        assert (steps.ended | (steps.number + 1 < envs.limit)).all()

    rng = np.random.default_rng(1)
    for _ in range(600):
        steps = envs.step(rng.integers(3, size=4))
        check(steps)
        for index in np.flatnonzero(steps.ended).tolist():
            envs.begin_episode(index)
            left[index] = envs.explore_steps[index]


def test_streams_come_back() -> None:
    cfg = small_cfg("--max_pure_expl_steps=30")
    one, other = make(cfg), TableEnvs(cfg, training_table(cfg), 4)
    play(one, 300, seed=2)
    other.load_state_dict(one.state_dict())
    for envs in (one, other):
        play(envs, 300, seed=3)
    for name in ("state", "number", "episodes", "explore_steps"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
