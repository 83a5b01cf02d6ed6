"""The Gymnasium wrapper: an episode begins where k steps of an explorer lead, as in a training."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers.frame_stack import FrameStack
from gymnasium.wrappers.record_episode_statistics import RecordEpisodeStatistics
from gymnasium.wrappers.time_limit import TimeLimit
from sample_factory.algo.utils.env_info import extract_env_info
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.envs.env_utils import register_env
from sample_factory.utils.attr_dict import AttrDict
from sample_factory.utils.gpu_utils import set_global_cuda_envvars
from sample_factory.utils.timing import Timing
from scipy.stats import chisquare

from sf_explore_go import ExploreGo
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import env_seed
from sf_explore_go.explorers.base import ActorExplorer
from sf_explore_go.explorers.random import RandomExplorer
from sf_explore_go.explorers.sticky import StickyExplorer
from sf_explore_go.phases.schedule import PhaseSchedule
from sf_explore_go.training.buffers import ExploreGoBufferMgr
from sf_explore_go.training.environments import register_worlds
from sf_explore_go.training.vector_env import ExploreGoVectorEnvRunner
from sf_explore_go.worlds.grid.illustrative import IllustrativeEnv
from tests.training.recording import make_cfg
from tests.training.test_hand_made_episode import answer

ROOT = Path(__file__).parents[2]


class Walk(gym.Env):
    """Its observation counts the steps of the episode. Episodes have the given lengths, one after the other."""

    def __init__(self, *lengths: int) -> None:
        self.lengths = lengths or (10**9,)
        self.observation_space = gym.spaces.Box(0, 1e9, (1,), np.float32)
        self.action_space = gym.spaces.Discrete(3)
        self.episode = -1
        self.unseen = False
        self.log: list[Any] = []  # options of resets, actions
        self.looked: list[bool] = []

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.episode += 1
        self.t = 0
        self.log.append(options)
        return self._obs(), {"first": True, "t": 0}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.action_space.contains(action)
        self.t += 1
        self.log.append(int(action))
        self.looked.append(not self.unseen)
        ended = self.t == self.lengths[self.episode % len(self.lengths)]
        return self._obs(), float(self.t), ended, False, {"t": self.t}

    def _obs(self) -> np.ndarray:
        return np.array([self.t], np.float32)


def starts(env: gym.Env, count: int) -> list[int]:
    return [env.reset()[1]["explore_steps"] for _ in range(count)]


def drawn(max_steps: int, seed: int, count: int, env_index: int = 0) -> list[int]:
    """k, from the schedule of a training."""
    schedule = PhaseSchedule(max_steps, env_seed(seed, "phase", env_index))
    return [schedule.explore_steps for _ in range(count) if schedule.begin_episode() is not None]


# --- the explore phase ------------------------------------------------------------------------------------------------


def test_k_is_uniform_with_both_ends() -> None:
    counts = np.bincount(starts(ExploreGo(Walk(), 12, seed=3), 6000), minlength=13)
    assert len(counts) == 13
    assert chisquare(counts).pvalue > 0.001


def test_reset_leads_where_k_steps_of_the_explorer_lead() -> None:
    env = ExploreGo(inner := Walk(), 9, seed=4)
    for k in drawn(9, 4, 200):
        obs, info = env.reset()
        assert obs.tolist() == [k]
        assert info == {"first": True, "t": k, "explore_steps": k}
        assert inner.t == k
        obs, reward, terminated, truncated, info = env.step(1)
        assert (obs.tolist(), reward, terminated, truncated, info) == ([k + 1], k + 1, False, False, {"t": k + 1})


def test_an_episode_that_ends_while_exploring_is_followed_by_another_with_another_k() -> None:
    lengths = (4, 1, 6, 2, 9, 3)
    env = ExploreGo(inner := Walk(*lengths), 8, seed=1)
    found = [(env.reset()[1]["explore_steps"], inner.episode) for _ in range(60)]
    expected = [(k, number) for number, k in enumerate(drawn(8, 1, 1000)) if k < lengths[number % 6]]
    assert found == expected[:60]
    assert inner.episode > 80  # so more than twenty ended before the agent had its turn
    played = [k if k < lengths[n % 6] else lengths[n % 6] for n, k in enumerate(drawn(8, 1, inner.episode + 1))]
    assert env.total_explore_steps == sum(played)


def test_counters_hold_both_phases() -> None:
    env = ExploreGo(inner := Walk(5, 11), 6, seed=2)
    env.reset()
    went = 0
    for _ in range(500):
        ended = env.step(0)[2]
        went += 1
        if ended:
            env.reset()
    made = sum(isinstance(entry, int) for entry in inner.log)
    assert (env.total_go_steps, env.total_explore_steps, env.total_env_steps) == (went, made - went, made)
    assert env.total_explore_steps > 100


def test_options_are_passed_on_also_when_an_episode_is_begun_anew() -> None:
    env = ExploreGo(inner := Walk(1, 3), 5, seed=5)
    for number in range(50):
        env.reset(options={"number": number})
    options = [entry for entry in inner.log if isinstance(entry, dict)]
    assert len(options) == inner.episode + 1 > 60
    assert [entry["number"] for entry in options] == sorted(entry["number"] for entry in options)
    assert None not in inner.log


def play(env: gym.Env, steps: int) -> list[Any]:
    """Everything that an agent sees of it."""
    generator = np.random.default_rng(0)
    obs, info = env.reset(seed=7)
    seen: list[Any] = [(obs.tolist(), info)]
    for _ in range(steps):
        obs, *rest = env.step(int(generator.integers(4)))
        seen.append((obs.tolist(), *rest))
        if rest[1] or rest[2]:
            obs, info = env.reset()
            seen.append((obs.tolist(), info))
    return seen


def test_k_zero_is_the_bare_environment() -> None:
    wrapped = ExploreGo(IllustrativeEnv(), max_explore_steps=0)
    seen = play(wrapped, 400)
    for entry in seen:
        if len(entry) == 2:
            assert entry[1].pop("explore_steps") == 0
    assert seen == play(IllustrativeEnv(), 400)
    assert (wrapped.total_explore_steps, wrapped.total_env_steps) == (0, 400)


# --- the same as a training -------------------------------------------------------------------------------------------


class WrittenDown(IllustrativeEnv):
    """Keeps its contexts and all actions."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict]:
        result = super().reset(**kwargs)
        self.log.append(f"context {self.context}")
        return result

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.log.append(str(int(action)))
        return super().step(action)

    def agents_action(self) -> int:
        """What the agent does, here as there."""
        return (self.steps + self.context) % 4


Episodes = tuple[list[list[str]], list[list[int]]]  # of each environment: what was done, k of each go phase


def trained(folder: Path, explorer: str, steps: int) -> Episodes:
    """The engine's own environments, played by its actors; only the network is missing."""
    flags = ("--serial_mode=True", f"--explorer={explorer}", "--num_workers=1", "--num_envs_per_worker=3")
    sticky = ("--sticky_tail=1", "--sticky_longest", "8", "--sticky_weights", "1", "1", "1", "1")  # what is the default
    cfg = make_cfg(folder, *flags, *sticky, "--worker_num_splits=1", "--max_pure_expl_steps=8")
    set_global_cuda_envvars(cfg)
    made: list[WrittenDown] = []
    register_worlds()
    register_env(cfg.env, lambda *args, **kwargs: made.append(WrittenDown()) or made[-1])  # type: ignore[func-returns-value]
    asked = make_env_func_non_batched(cfg, AttrDict(worker_index=0, vector_index=0, env_id=0))
    env_info = extract_env_info(asked, cfg)
    envs = made  # the first was made only to ask for its spaces
    buffers = ExploreGoBufferMgr(cfg, env_info)
    runner = ExploreGoVectorEnvRunner(cfg, env_info, 3, 0, 0, buffers, "cpu", [None])
    runner.init(Timing())
    lengths: list[list[int]] = [[], [], []]
    for _ in range(steps):
        assert runner.update_trajectory_buffers(Timing())
        runner.generate_policy_request()
        for actor, env, ks in zip(runner.actors, envs[1:], lengths, strict=True):
            if actor.acting is not None:
                answer(actor, env.agents_action())
                if actor.schedule.step == actor.schedule.explore_steps:
                    ks.append(actor.schedule.explore_steps)
        for rollout in runner.advance_rollouts(0, Timing())[0]:
            runner.traj_buffer_queue.put(rollout["traj_buffer_idx"])
    return [env.log for env in envs[1:]], lengths


def wrapped(explorer: str, steps: int) -> Episodes:
    """The same with the wrapper."""
    logs, lengths = [], []
    for index in range(3):
        env = ExploreGo(inner := WrittenDown(), 8, explorer, seed=11, env_index=index)
        ks = starts(env, 1)
        while env.total_env_steps < steps:
            *_, terminated, truncated, _ = env.step(inner.agents_action())
            if terminated or truncated:
                ks += starts(env, 1)
        logs.append(inner.log)
        lengths.append(ks)
    return logs, lengths


@pytest.mark.parametrize("explorer", ["random", "sticky"])
def test_phases_are_those_of_a_training(explorer: str, tmp_path: Path) -> None:
    there, here = trained(tmp_path, explorer, 1500), wrapped(explorer, 1500)
    for (log, ks), (our_log, our_ks) in zip(zip(*there, strict=True), zip(*here, strict=True), strict=True):
        assert sum(entry.isdigit() for entry in log) == 1500
        assert our_log[: len(log)] == log
        assert our_ks[: len(ks)] == ks
        assert len(ks) > 50
    assert len({tuple(log) for log in there[0]}) == 3


# --- seeds ------------------------------------------------------------------------------------------------------------


def test_the_seed_fixes_everything() -> None:
    def played(seed: int | None, env_index: int = 0) -> list[str]:
        env = ExploreGo(inner := WrittenDown(), 8, seed=seed, env_index=env_index)
        starts(env, 30)
        return inner.log

    assert played(1) == played(1)
    others = [played(1), played(2), played(1, env_index=1), played(None), played(None)]
    assert len({tuple(log) for log in others}) == 5


def test_reset_with_a_seed_begins_anew() -> None:
    env = ExploreGo(inner := WrittenDown(), 8)

    def played(seed: int) -> list[str]:
        inner.log.clear()
        env.reset(seed=seed)
        starts(env, 20)
        return list(inner.log)

    first = played(5)
    assert played(6) != first
    assert played(5) == first
    other = ExploreGo(WrittenDown(), 8, seed=99)
    other.reset(seed=5)
    starts(other, 20)
    assert other.unwrapped.log == first  # type: ignore[attr-defined]
    bare = IllustrativeEnv()
    bare.reset(seed=5)
    assert first[0] == f"context {bare.context}"  # the environment gets the seed as it is


def test_the_generator_of_the_action_space_is_left_alone() -> None:
    inner = Walk()
    inner.action_space.seed(3)
    expected = [int(gym.spaces.Discrete(3, seed=3).sample())]
    starts(ExploreGo(inner, 8, seed=1), 20)
    assert [int(inner.action_space.sample())] == expected


# --- who explores -----------------------------------------------------------------------------------------------------


class Right(ActorExplorer):
    """Always the last action."""

    phases = 0

    def begin_phase(self, obs: dict[str, Any]) -> None:
        assert obs["obs"].tolist() == [0]
        self.phases += 1

    def act(self, obs: dict[str, Any]) -> Any:
        return self.action_space.n - 1  # type: ignore[attr-defined]


def actions(explorer: Any, options: dict[str, Any] | None = None, count: int = 40) -> list[int]:
    env = ExploreGo(inner := Walk(), 6, explorer, seed=1, options=options)
    starts(env, count)
    return [entry for entry in inner.log if entry is not None]


@pytest.mark.parametrize(
    "explorer",
    [
        Right,
        Right(gym.spaces.Discrete(3), 0, None),
        "tests.phases.test_wrapper:Right",
        lambda obs: 2,
        lambda obs: np.int64(2 + 0 * obs[0]),
    ],
    ids=["class", "instance", "name", "function", "function that looks"],
)
def test_an_explorer_may_be_given_in_many_ways(explorer: Any) -> None:
    assert set(actions(explorer)) == {2}


def test_a_phase_begins_once_and_only_if_there_is_one() -> None:
    explorer = Right(gym.spaces.Discrete(3), 0, None)
    ks = starts(ExploreGo(Walk(), 3, explorer, seed=1), 100)
    assert explorer.phases == sum(k > 0 for k in ks) < 100


def test_a_function_gets_observations_as_they_are() -> None:
    seen: list[Any] = []

    def policy(obs: Any) -> int:
        seen.append(obs)
        return 0

    ks = starts(ExploreGo(Walk(), 5, policy, seed=1), 30)
    assert [obs.tolist() for obs in seen] == [[t] for k in ks for t in range(k)]


class Pair(gym.ObservationWrapper):
    """Observations that are dictionaries already."""

    def __init__(self) -> None:
        super().__init__(Walk())
        self.observation_space = gym.spaces.Dict({"a": self.env.observation_space, "b": self.env.observation_space})

    def observation(self, observation: Any) -> Any:
        return {"a": observation, "b": -observation}


def test_observations_that_are_dictionaries_stay_so() -> None:
    seen: list[Any] = []

    class Looking(ActorExplorer):
        def act(self, obs: dict[str, Any]) -> Any:
            seen.append(obs)
            return 0

    starts(ExploreGo(Pair(), 5, Looking, seed=1), 5)
    starts(ExploreGo(Pair(), 5, lambda obs: seen.append(obs) or 0, seed=1), 5)  # type: ignore[func-returns-value]
    assert len(seen) > 10
    assert all(set(obs) == {"a", "b"} for obs in seen)


def test_flags_of_an_explorer_have_their_defaults_and_can_be_set() -> None:
    assert actions("sticky") == actions("sticky", {"sticky_tail": 1, "sticky_longest": [8]})
    assert actions("sticky") == actions(StickyExplorer)
    assert set(actions("sticky", {"sticky_weights": [1.0, 0.0, 1.0]})) == {0, 2}
    assert actions("random") == actions(RandomExplorer) != actions("sticky")


def test_continuous_actions() -> None:
    env = ExploreGo(gym.make("Pendulum-v1"), 20, seed=1)
    assert max(starts(env, 20)) > 10


def test_an_explorer_that_does_not_look_leaves_all_but_the_last_step_unseen() -> None:
    for env in (Walk(), TimeLimit(RecordEpisodeStatistics(Walk()), 100)):
        ks = starts(ExploreGo(env, 6, seed=1), 200)
        assert env.unwrapped.looked == [step == k - 1 for k in ks for step in range(k)]  # type: ignore[attr-defined]


def test_the_agent_is_always_shown_where_it_is() -> None:
    env = ExploreGo(inner := Walk(3), 6, seed=1)
    for _ in range(100):  # often after an episode that ended unseen
        env.reset()
        assert not inner.unseen


def test_whoever_looks_is_shown_everything() -> None:
    for env, explorer in ((Walk(), lambda obs: 0), (FrameStack(Walk(), 2), "random")):  # a stack keeps all observations
        starts(ExploreGo(env, 6, explorer, seed=1), 50)
        assert len(env.unwrapped.looked) > 50  # type: ignore[attr-defined]
        assert all(env.unwrapped.looked)  # type: ignore[attr-defined]


class LookingRandomExplorer(RandomExplorer):
    looks: ClassVar[bool] = True


def test_unseen_or_not_doom_begins_with_the_same_pictures() -> None:
    pictures: list[list[np.ndarray]] = []
    for explorer in ("random", LookingRandomExplorer):
        env = ExploreGo(gym.make("SfExploreGo/MyWayHomeSmall-v0", frameskip=8), 30, explorer, seed=1)
        try:
            pictures.append([env.reset()[0] for _ in range(6)])
            assert env.total_explore_steps > 60
        finally:
            env.close()
    np.testing.assert_array_equal(pictures[0], pictures[1])


# --- Gymnasium's own tools --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*WARN")
@pytest.mark.parametrize("make", [IllustrativeEnv, lambda: gym.make("CartPole-v1"), lambda: gym.make("Pendulum-v1")])
def test_the_environment_checker_is_content(make: Callable[[], gym.Env]) -> None:
    check_env(ExploreGo(make(), 8, seed=1), skip_render_check=True)


def test_it_can_be_made_again_from_its_spec() -> None:
    env = ExploreGo(gym.make("CartPole-v1"), 8, "sticky", seed=1, env_index=2, options={"sticky_longest": [4]})
    assert env.spec is not None
    again = gym.make(env.spec)
    np.testing.assert_array_equal(again.reset()[0], env.reset()[0])
    assert again.get_wrapper_attr("total_env_steps") == env.total_env_steps > 0


def test_it_can_be_pickled() -> None:
    env = ExploreGo(WrittenDown(), 8, "sticky", seed=1)
    env.reset()
    again = pickle.loads(pickle.dumps(env))
    assert starts(again, 10) == starts(env, 10)
    assert again.unwrapped.log == env.unwrapped.log  # type: ignore[attr-defined]


def make_walk(index: int) -> Callable[[], gym.Env]:
    return lambda: ExploreGo(Walk(10), 4, seed=1, env_index=index)


def test_vectors_of_environments_begin_their_episodes_explored() -> None:
    expected = [drawn(4, 1, 8, index) for index in range(2)]
    for kind in (gym.vector.SyncVectorEnv, gym.vector.AsyncVectorEnv):
        envs = kind([make_walk(0), make_walk(1)])
        try:
            obs, infos = envs.reset()
            found = [[k] for k in infos["explore_steps"].tolist()]
            assert obs[:, 0].tolist() == infos["explore_steps"].tolist()
            went = 0
            while min(map(len, found)) < 8:
                obs, _, terminated, _, infos = envs.step(np.zeros(2, int))
                went += 2
                for index in np.flatnonzero(terminated):
                    assert infos["final_observation"][index].tolist() == [10]
                    found[index].append(int(infos["explore_steps"][index]))
                    assert obs[index].tolist() == found[index][-1:]
            assert [ks[:8] for ks in found] == expected
            assert sum(envs.get_attr("total_go_steps")) == went
            assert sum(envs.get_attr("total_explore_steps")) == sum(map(sum, found))
        finally:
            envs.close()


def test_seeds_of_a_vector_differ() -> None:
    envs = gym.vector.SyncVectorEnv([lambda: ExploreGo(Walk(), 1000, lambda obs: 0)] * 3)
    _, infos = envs.reset(seed=5)
    assert len(set(infos["explore_steps"].tolist())) == 3
    _, again = envs.reset(seed=5)
    assert infos["explore_steps"].tolist() == again["explore_steps"].tolist()


def go_lengths(env: gym.Env, count: int) -> tuple[list[int], list[int], list[dict]]:
    """k, length of the go phase and last info of some episodes that only a time limit ends."""
    ks, lengths, infos = [], [], []
    for _ in range(count):
        ks += starts(env, 1)
        length, truncated = 0, False
        while not truncated:
            *_, truncated, info = env.step(0)
            length += 1
        lengths.append(length)
        infos.append(info)
    return ks, lengths, infos


def test_a_time_limit_inside_covers_both_phases_and_one_outside_the_go_phase() -> None:
    ks, lengths, _ = go_lengths(ExploreGo(TimeLimit(Walk(), 10), 4, seed=1), 30)
    assert lengths == [10 - k for k in ks]
    ks, lengths, _ = go_lengths(TimeLimit(ExploreGo(Walk(), 4, seed=1), 10), 30)
    assert set(lengths) == {10}
    assert set(ks) == {0, 1, 2, 3, 4}


def test_statistics_inside_cover_both_phases_and_those_outside_the_go_phase() -> None:
    ks, lengths, infos = go_lengths(ExploreGo(RecordEpisodeStatistics(TimeLimit(Walk(), 10)), 4, seed=1), 30)
    assert {int(info["episode"]["l"]) for info in infos} == {10}
    assert {float(info["episode"]["r"]) for info in infos} == {55.0}
    ks, lengths, infos = go_lengths(RecordEpisodeStatistics(ExploreGo(TimeLimit(Walk(), 10), 4, seed=1)), 30)
    assert [int(info["episode"]["l"]) for info in infos] == lengths
    assert [float(info["episode"]["r"]) for info in infos] == [55 - k * (k + 1) / 2 for k in ks]


# --- bad input --------------------------------------------------------------------------------------------------------


class NotAnExplorer:
    made: ClassVar[int] = 0


WHO = r"it must be random, sticky, module:Class, .*such as a trained policy$"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"max_explore_steps": -1}, r"^max_explore_steps=-1: it must be a whole number, at least 0$"),
        ({"max_explore_steps": 2.5}, r"^max_explore_steps=2.5: it must be a whole number, at least 0$"),
        ({"max_explore_steps": True}, r"^max_explore_steps=True: it must be a whole number, at least 0$"),
        ({"seed": "one"}, r"^seed='one': it must be a whole number, at least 0$"),
        ({"env_index": -3}, r"^env_index=-3: it must be a whole number, at least 0$"),
        ({"explorer": "randon"}, r"^explorer=randon: it must be random, .*; did you mean random\?$"),
        ({"explorer": "e3b"}, rf"^explorer=e3b: it has to be trained, which only `sf-explore-go train` does; {WHO}"),
        ({"explorer": "counts"}, rf"^explorer=counts: it has to be trained, .*; {WHO}"),
        ({"explorer": None}, rf"^explorer=None: {WHO}"),
        ({"explorer": NotAnExplorer}, rf"^explorer=<class .*NotAnExplorer'>: {WHO}"),
        ({"explorer": "no.such:Thing"}, r"^explorer=no.such:Thing: module 'no' was not found$"),
        (
            {"explorer": "sticky", "options": {"sticky_tale": 1}},
            r"flag --sticky_tale=1; did you mean --sticky_t",
        ),
        ({"explorer": "sticky", "options": {"sticky_longest": [0]}}, r"^--sticky_longest=0: it must be at least 1$"),
        ({"explorer": "sticky", "options": {"sticky_weights": [1, 1]}}, r"one for each of the 3 actions$"),
        ({"explorer": lambda obs: 0, "options": {"a": 1}}, r"^options={'a': 1}: only an explorer that is given by its"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        ExploreGo(Walk(), **({"max_explore_steps": 5} | arguments))


def test_a_vector_cannot_be_wrapped() -> None:
    with pytest.raises(UsageError, match=r"wrap each one before a vector is made of them$"):
        ExploreGo(gym.vector.SyncVectorEnv([Walk, Walk]), 5)
    with pytest.raises(UsageError, match=r"^env=3: it must be a Gymnasium environment$"):
        ExploreGo(3, 5)  # type: ignore[arg-type]


def test_importing_and_using_it_loads_neither_torch_nor_sample_factory() -> None:
    program = """
import sys, gymnasium
from sf_explore_go import ExploreGo
for explorer in ("random", "sticky"):
    ExploreGo(gymnasium.make("CartPole-v1"), 5, explorer).reset()
print([name for name in ("torch", "sample_factory", "vizdoom") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_importing_the_package_does_not_load_it() -> None:
    program = "import sys, sf_explore_go; print('sf_explore_go.phases' in sys.modules, hasattr(sf_explore_go, 'Other'))"
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "False False\n"
