"""`--explore_schedule` in whole runs: the k of every episode, when exploring begins, and what a resume keeps."""

import random
import shutil
from collections import deque
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sample_factory.algo.utils.misc import ExperimentStatus

from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.monitoring.summaries import Summaries
from sf_explore_go.phases.schedule import Phase
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.names import checkpoints_in
from sf_explore_go.training.accounting import FrameCounter, Frames
from sf_explore_go.training.explore_length import begin_exploring_if_solved, max_explore_steps
from sf_explore_go.training.runner import ExploreGoRunner
from tests.e2e.cli import scalars
from tests.training.recording import CountingEnv, Recording, drive, make_cfg

K, SEED, ENVS = 19, 11, 4
SOLVED_FROM = 20  # the episode of each environment from which on all succeed
LEARNED = "--explorer=tests.training.recording:PolicyExplorer"
SERIAL = ("--serial_mode=True", "--num_workers=1", f"--num_envs_per_worker={ENVS}", "--worker_num_splits=1")
PARALLEL = ("--num_workers=2", "--num_envs_per_worker=2", "--worker_num_splits=1")
SUCCESS = ("--explore_schedule=success", "--explore_when=0.8", "--stats_avg=20")


class LearningEnv(CountingEnv):
    """Fails at first and succeeds later, whoever acts."""

    def step(self, action: int) -> Any:
        obs, reward, terminated, truncated, info = super().step(action)
        if terminated or truncated:
            info["episode_extra_stats"] = {"success": float(self.episode >= SOLVED_FROM)}
        return obs, reward, terminated, truncated, info


def make_learning_env(env_name: str, cfg: Any, env_config: Any, render_mode: str | None = None) -> LearningEnv:
    return LearningEnv(env_config.env_id if env_config else -1, Path(cfg.record_dir))


def train(folder: Path, *flags: str) -> ExploreGoRunner:
    status, runner = drive(make_cfg(folder, *flags), make_learning_env, observers=[Summaries()])
    assert status == ExperimentStatus.SUCCESS
    return runner


# --- the k of every episode -------------------------------------------------------------------------------------------


def starts_of(recording: Recording, env: int) -> list[int]:
    """The total of frames at which each episode of an environment began, in a serial run: all environments make one
    step after another, in turn."""
    episodes = recording.made[env][:, 0].tolist()
    ends = [n for n in range(len(episodes) - 1) if episodes[n + 1] != episodes[n]]
    return [0] + [ENVS * n + env + 1 for n in ends]


def ramp_by_hand(frames: int, budget: int, begin: float, end: float) -> int:
    if frames < begin * budget:
        return 0
    return min(K, int(K * (frames - begin * budget) / ((end - begin) * budget) + 0.5))


def expected_steps(recording: Recording, env: int, lengths: list[int], policy_id: int, seed: int) -> list[Any]:
    """(episode, step) of a policy's steps if K was `lengths` at the starts of the episodes."""
    rng = random.Random(seed)
    ks = [rng.randint(0, length) for length in lengths]
    return [(e, s) for e, s, *_ in recording.made[env].tolist() if (s < ks[e]) == (policy_id == 1)]


@cache
def received_steps(recording: Recording, policy_id: int) -> dict[int, list[Any]]:
    """environment -> (episode, step) of the steps that the policy's learner got."""
    received = recording.steps_received(policy_id).items()
    return {env: [(step["episode"], step["step"]) for step in steps] for env, steps in received}


def follows(recording: Recording, env: int, lengths: list[int], start_frames: int = 0) -> bool:
    """Whether both learners got the steps that they should get with these K; the last may be on their way."""
    seed = derive_seed(SEED, "phase", env, start_frames)
    for policy_id in (0, 1):
        steps = received_steps(recording, policy_id).get(env, [])
        expected = expected_steps(recording, env, lengths, policy_id, seed)
        if steps != expected[: len(steps)] or len(expected) - len(steps) > 40 * 8:
            return False
    return True


def test_a_ramp_in_serial_mode_is_exact(tmp_path: Path) -> None:
    flags = ("--explore_schedule=linear", "--explore_ramp", "0.25", "0.75", "--train_for_env_steps=8000")
    train(tmp_path, *SERIAL, LEARNED, *flags)
    recording = Recording(tmp_path)
    assert len(recording.made) == ENVS
    for env in recording.made:
        lengths = [ramp_by_hand(frames, 8000, 0.25, 0.75) for frames in starts_of(recording, env)]
        assert lengths[0] == 0
        assert lengths[-1] == K
        assert len(set(lengths)) > K / 2
        assert follows(recording, env, lengths)
    logged = scalars(tmp_path / "run")["phases/max_explore_steps"]
    assert len(logged) > 5
    assert all(value == ramp_by_hand(frames, 8000, 0.25, 0.75) for frames, value in logged)
    assert {logged[0][1], logged[-1][1]} == {0, K}


def test_constant_draws_as_it_always_has(tmp_path: Path) -> None:
    """With the flag and without it, whatever the other two say."""
    others = ("--explore_schedule=constant", "--explore_ramp", "0.9", "1", "--explore_when=1")
    for name, flags in (("plain", ()), ("named", others)):
        (tmp_path / name).mkdir()
        train(tmp_path / name, *SERIAL, LEARNED, "--train_for_env_steps=3000", *flags)
    one, other = Recording(tmp_path / "plain"), Recording(tmp_path / "named")
    for env, made in one.made.items():
        assert made.tolist() == other.made[env].tolist()
        assert follows(one, env, [K] * (int(made[-1, 0]) + 1))
    assert scalars(tmp_path / "plain/run") == scalars(tmp_path / "named/run")


def solved_at(recording: Recording) -> int:
    """The total at which 16 of 20 episodes in full rounds have succeeded; rounds as docs/metrics.md describes them."""
    ends = sorted((end, env, e) for env in recording.made for e, end in enumerate(starts_of(recording, env)[1:]))
    counts, ended = set(recording.made), dict[int, int]()
    window: deque[bool] = deque(maxlen=20)
    for end, env, episode in ends:
        if env in counts:
            ended.setdefault(env, episode)
        counts.add(env)
        if len(ended) == ENVS:
            window += [episode >= SOLVED_FROM for episode in ended.values()]
            counts, ended = {env}, {}
            if sum(window) >= 16:
                return end
    raise AssertionError("never")


def test_success_in_serial_mode(tmp_path: Path) -> None:
    runner = train(tmp_path, *SERIAL, LEARNED, *SUCCESS, "--train_for_env_steps=6000")
    began, recording = runner.buffer_mgr.frames.explore_began, Recording(tmp_path)
    assert began is not None
    assert 0 <= began - solved_at(recording) < ENVS * 8  # a few steps are made before the main loop hears of it
    for env in recording.made:
        assert follows(recording, env, [K if frames > began else 0 for frames in starts_of(recording, env)])
    logged = scalars(tmp_path / "run")["phases/max_explore_steps"]
    assert {value for frames, value in logged if frames < began} == {0}
    assert {value for frames, value in logged if frames > began} == {K}
    assert runner.final_frames.explore > 0


@pytest.mark.parametrize("flags", [("--explore_schedule=linear", "--explore_ramp", "0.5", "0.5"), SUCCESS])
def test_every_worker_learns_when_to_begin(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """Nobody knows the total at an episode's start in other processes, but K is 0 up to some episode, and K after."""
    runner = train(tmp_path, *PARALLEL, LEARNED, *flags, "--train_for_env_steps=8000")
    recording = Recording(tmp_path)
    assert len(recording.made) == 4
    for env, made in recording.made.items():
        episodes = int(made[-1, 0]) + 1
        fitting = [j for j in range(episodes + 1) if follows(recording, env, [0] * j + [K] * (episodes - j))]
        assert fitting
        assert min(fitting) > 0
        assert max(fitting) < episodes
        if flags is not SUCCESS:
            steps_before = made[:, 0].tolist().index(fitting[0])
            assert 0.3 < steps_before / len(made) < 0.7
        else:
            assert min(fitting) > SOLVED_FROM
    assert runner.final_frames.explore > 0
    assert (runner.buffer_mgr.frames.explore_began is not None) == (flags is SUCCESS)


# --- resume -----------------------------------------------------------------------------------------------------------


def forget_recorded(folder: Path) -> None:
    for path in (*folder.glob("env_*.json"), *folder.glob("batch_*.npz")):
        path.unlink()


@pytest.mark.parametrize("mode", [SERIAL, PARALLEL], ids=["serial", "parallel"])
def test_exploring_that_has_begun_goes_on_after_a_resume(tmp_path: Path, mode: tuple[str, ...]) -> None:
    """Although the environments of the second part fail again."""
    first = train(tmp_path, *mode, LEARNED, *SUCCESS, "--train_for_env_steps=5000")
    began = first.buffer_mgr.frames.explore_began
    assert began is not None
    forget_recorded(tmp_path)
    second = train(tmp_path, *mode, LEARNED, *SUCCESS, f"--train_for_env_steps={first.final_frames.total + 600}")
    assert second.buffer_mgr.frames.explore_began == began
    recording = Recording(tmp_path)
    for env, made in recording.made.items():
        assert int(made[-1, 0]) < SOLVED_FROM
        assert follows(recording, env, [K] * (int(made[-1, 0]) + 1), first.final_frames.total)


@pytest.mark.parametrize("explorer_is_gone", [False, True])
def test_exploring_that_has_not_begun_waits_on_after_a_resume(tmp_path: Path, explorer_is_gone: bool) -> None:
    """Also where the explorer, which has learned nothing yet, has no checkpoint."""
    never = (*SERIAL, LEARNED, "--explore_schedule=success", "--stats_avg=1000")
    first = train(tmp_path, *never, "--train_for_env_steps=1000")
    assert first.final_frames.explore == 0
    (newest,) = checkpoints_in(tmp_path / "run/checkpoint_p0")[-1:]
    assert read_checkpoint(newest, "cpu")["explore_began"] is None
    if explorer_is_gone:
        shutil.rmtree(tmp_path / "run/checkpoint_p1")
    second = train(tmp_path, *never, "--train_for_env_steps=2000")
    assert second.final_frames.total >= 2000
    assert second.final_frames.explore == 0


# --- the parts --------------------------------------------------------------------------------------------------------


def test_k_as_it_stands() -> None:
    frames = FrameCounter(2, share=False)
    options = {"max_pure_expl_steps": 10, "train_for_env_steps": 1000, "explore_ramp": [0.1, 0.6]}
    constant, linear, success = (
        SimpleNamespace(**options, explore_schedule=name) for name in ("constant", "linear", "success")
    )
    frames.restore(Frames(50, 50))
    assert [max_explore_steps(cfg, frames) for cfg in (constant, linear, success)] == [10, 0, 0]
    frames.restore(Frames(50, 300))
    assert [max_explore_steps(cfg, frames) for cfg in (constant, linear, success)] == [10, 5, 0]
    frames.note_explore_began()
    assert frames.explore_began == 350
    frames.restore(Frames(0, 600), frames.explore_began)
    assert [max_explore_steps(cfg, frames) for cfg in (constant, linear, success)] == [10, 10, 10]
    assert frames.explore_began == 350


def fake_runner(successes: list[float], **changed: Any) -> Any:
    options = {"max_pure_expl_steps": 8, "explore_schedule": "success", "explore_when": 0.75, "env": "any"} | changed
    return SimpleNamespace(
        cfg=SimpleNamespace(**options),
        buffer_mgr=SimpleNamespace(frames=FrameCounter(1, share=False)),
        policy_avg_stats={"success": [deque(successes, maxlen=4)]},
        end_because=lambda reason: pytest.fail(reason),
    )


@pytest.mark.parametrize(
    ("successes", "begins"),
    [([], False), ([1, 1, 1], False), ([1, 1, 0, 0], False), ([0, 1, 1, 1], True), ([0, 0, 0, 1, 1, 1], True)],
)
def test_a_full_window_of_episodes_must_succeed(successes: list[float], begins: bool) -> None:
    runner = fake_runner(successes)
    begin_exploring_if_solved(runner)
    assert (runner.buffer_mgr.frames.explore_began is not None) == begins


def test_once_begun_it_stays() -> None:
    runner = fake_runner([1.0] * 4)
    begin_exploring_if_solved(runner)
    runner.buffer_mgr.frames.row(0).add(Phase.GO, 100)
    runner.policy_avg_stats["success"][0].extend([0.0] * 4)
    begin_exploring_if_solved(runner)
    assert runner.buffer_mgr.frames.explore_began == 0


@pytest.mark.parametrize("changed", [{"max_pure_expl_steps": 0}, {"explore_schedule": "constant"}])
def test_who_does_not_wait_needs_no_success(changed: dict[str, Any]) -> None:
    runner = fake_runner([1.0] * 4, **changed)
    runner.policy_avg_stats = {}
    begin_exploring_if_solved(runner)
    assert runner.buffer_mgr.frames.explore_began is None


def test_a_world_that_reports_no_success_ends_the_run_with_a_sentence() -> None:
    runner, reasons = fake_runner([]), list[str]()
    runner.policy_avg_stats, runner.end_because = {"reward": []}, reasons.append
    begin_exploring_if_solved(runner)
    (reason,) = reasons
    assert reason.startswith("--explore_schedule=success: the episodes of --env=any do not report success")
