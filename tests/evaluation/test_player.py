"""A policy's answers do not depend on who else is asked, and scripted agents score what they must."""

import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.model.actor_critic import create_actor_critic

from sf_explore_go.cli import evaluate, report
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.evaluation import arena as arenas
from sf_explore_go.evaluation import evaluate as evaluate_library
from sf_explore_go.evaluation.arena import Arena
from sf_explore_go.evaluation.episodes import plan_episodes
from sf_explore_go.evaluation.player import Player, play
from sf_explore_go.runs.checkpoints import FORMAT, save_atomically
from sf_explore_go.runs.scores import read_scores
from sf_explore_go.training.environments import register_worlds
from tests.monitoring.events import scalars_of
from tests.worlds.doom.navigator import Navigator


def make_player(greedy: bool = False) -> Player:
    """A recurrent policy on pictures with random weights."""
    register_worlds()
    cfg = parse_train_args(["--env=my_way_home_train", "--preset=smoke", "--rnn_size=96"])
    space = gymnasium.spaces.Dict({"obs": gymnasium.spaces.Box(0, 255, (3, 36, 64), np.uint8)})
    spaces: Any = SimpleNamespace(observation_space=space, action_space=gymnasium.spaces.Discrete(5))
    torch.manual_seed(1)
    state = create_actor_critic(cfg, spaces.observation_space, spaces.action_space).state_dict()
    return Player(cfg, spaces, {"model": state}, greedy=greedy)


@pytest.mark.parametrize("together", [2, 8, 12])
def test_an_answer_is_the_same_to_the_last_bit_whoever_else_asks(together: int) -> None:
    player = make_player()
    rng = np.random.default_rng(0)
    obs = [{"obs": rng.integers(0, 256, (3, 36, 64), dtype=np.uint8)} for _ in range(together)]
    states = torch.from_numpy(rng.normal(size=(together, player.rnn_size)).astype(np.float32))
    draws = rng.random((together, 1))
    actions, new_states = player.act(obs, states, draws)
    for i in range(together):
        action, new_state = player.act([obs[i]], states[i : i + 1], draws[i : i + 1])
        assert action[0] == actions[i]
        assert torch.equal(new_state[0], new_states[i])


@pytest.mark.slow
def test_engines_and_threads_change_no_number() -> None:
    """Real engines, a recurrent network: one environment, and eight in two threads."""
    player = make_player()
    cfg = parse_train_args(["--env=my_way_home_train", "--preset=smoke", "--rnn_size=96", "--seed=0"])
    with Arena(cfg, 1) as one, Arena(cfg, 8) as eight:
        plan, other = (plan_episodes(cfg, "test", 6, eval_seed) for eval_seed in (5, 6))
        alone = play(player, one.envs("test"), plan)
        assert play(player, eight.envs("test"), plan, threads=2) == alone
        assert play(player, eight.envs("test"), plan, threads=2) == alone
        assert play(player, eight.envs("test"), other, threads=2) != alone


def test_actions_follow_the_probabilities() -> None:
    player, greedy = make_player(), make_player(greedy=True)
    obs = [{"obs": np.full((3, 36, 64), 90, np.uint8)}]
    state = torch.zeros((1, player.rnn_size))
    with torch.no_grad():
        normalised = player.model.normalize_obs({"obs": torch.from_numpy(obs[0]["obs"])[None].float()})
        probabilities = torch.softmax(player.model(normalised, state)["action_logits"], dim=1)[0].numpy()
    draws = (np.arange(1000) + 0.5) / 1000
    picked, _ = player.act(obs * 1000, state.repeat(1000, 1), draws[:, None])
    assert np.bincount(picked, minlength=5) / 1000 == pytest.approx(probabilities, abs=0.002)
    assert greedy.act(obs, state, np.array([[0.999]]))[0][0] == int(probabilities.argmax())


# --- scripted agents, through the whole pipeline ------------------------------------------------------------------


class Posed:
    """An environment whose observation also tells where the player stands: (x, y, angle, goal)."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def reset(self, **options: Any) -> Any:
        observations, infos = self.env.reset(**options)
        return [self._add(observations[0], infos[0])], infos

    def step(self, actions: list[int]) -> Any:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return [self._add(observations[0], infos[0])], rewards, terminated, truncated, infos

    def _add(self, obs: dict, info: dict) -> dict:
        return obs | {"pose": (*info["position"], info["angle"], info["goal"])}

    def close(self) -> None:
        self.env.close()


class Walker:
    """Walks to the goal."""

    draws = 1
    rnn_size = 1

    def act(self, obs: list[dict], rnn_states: torch.Tensor, draws: Any) -> tuple[list[int], torch.Tensor]:
        actions = [Navigator(int(o["pose"][3])).action(o["pose"][:2], o["pose"][2]) for o in obs]
        return actions, rnn_states


class Idler:
    draws = 1
    rnn_size = 1

    def act(self, obs: list[dict], rnn_states: torch.Tensor, draws: Any) -> tuple[list[int], torch.Tensor]:
        return [0] * len(obs), rnn_states


def make_run(folder: Path, seed: int, steps: int) -> None:
    flags = ["--env=my_way_home_train", "--preset=smoke", f"--seed={seed}", "--context_seed=0"]
    cfg = parse_train_args([*flags, f"--max_pure_expl_steps={steps}"])
    (folder / "checkpoint_p0/milestones").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(dict(cfg)))
    state = {"model": {}, "frames": [400, 600], "env_steps": 600, "format": FORMAT}
    save_atomically(state, folder / "checkpoint_p0/milestones/milestone_000000001000.pth")


def test_walker_and_idler_from_the_engine_to_the_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arenas, "make_env_func_non_batched", lambda *a, **k: Posed(make_env_func_non_batched(*a, **k)))
    for name, steps, player in (("idler", 0, Idler()), ("walker", 50, Walker())):
        make_run(tmp_path / "runs" / name, 0, steps)
        monkeypatch.setattr(evaluate_library, "make_player", lambda *a, player=player, **k: player)
        flags = [f"--train_dir={tmp_path / 'runs'}", f"--experiment={name}", "--checkpoint=all", "--episodes=4"]
        assert evaluate.main([*flags, "--num_envs=2"]) == 0
        expected = 1.0 if name == "walker" else 0.0
        rows = read_scores(tmp_path / "runs" / name / "evaluation.csv")
        assert [(row.split, row.success_rate, row.episodes, row.frames) for row in rows] == [
            ("test", expected, 4, 1000),
            ("train", expected, 4, 1000),
        ]
        goals = read_scores(tmp_path / "runs" / name / "evaluation_goals.csv")
        assert {row.success_rate for row in goals} == {expected}
        assert sum(row.episodes for row in goals if row.split == "test") == 4
        shown = scalars_of(tmp_path / "runs" / name)
        assert shown["eval/test_success"] == shown["eval/train_success"] == [(1000, expected)]
        assert shown["eval/generalisation_gap"] == [(1000, 0.0)]
    # idle for 2100 tics costs 0.21; a walker earns 1 minus its tics
    idler, walker = (read_scores(tmp_path / "runs" / name / "evaluation.csv")[0] for name in ("idler", "walker"))
    assert idler.mean_return == pytest.approx(-0.21, abs=1e-6)
    assert idler.mean_length == 525
    assert walker.mean_return == pytest.approx(1 - 0.0004 * walker.mean_length, abs=5e-4)
    assert report.main([str(tmp_path / "runs"), f"--out={tmp_path / 'out'}"]) == 0
    table = (tmp_path / "out/final.md").read_text().splitlines()
    assert table[2].startswith("| baseline (K = 0) | 1 | 4 | 0.000 | 0.000 |")
    assert table[3].startswith("| Explore-Go, K = 50, random | 1 | 4 | 1.000 | 1.000 |")
    assert table[3].endswith("| 1.000 | +1.000 |")  # and no chance to win, of one seed each
    for name in ("figure.png", "figure.pdf", "goals_1.png", "goals_2.png", "index.html"):
        assert (tmp_path / "out" / name).stat().st_size > 5_000


# --- engines that die ---------------------------------------------------------------------------------------------


class Deadly(Posed):
    """Kills the engine of its environment at the tenth decision of the first `deaths` attempts."""

    def __init__(self, env: Any, deaths: int) -> None:
        super().__init__(env)
        self.deaths, self.killed, self.decisions = deaths, 0, 0

    def reset(self, **options: Any) -> Any:
        self.decisions = 0
        return super().reset(**options)

    def step(self, actions: list[int]) -> Any:
        self.decisions += 1
        if self.decisions == 10 and self.killed < self.deaths:
            os.kill(self.env.unwrapped._engine.pid, signal.SIGKILL)
            self.killed += 1
        return super().step(actions)


@pytest.mark.filterwarnings("ignore:ViZDoom's engine")
def test_an_episode_whose_engine_dies_is_played_again() -> None:
    register_worlds()
    cfg = parse_train_args(["--env=my_way_home_train", "--preset=smoke", "--seed=0"])
    plan = plan_episodes(cfg, "train", 3, 0)
    with Arena(cfg, 1) as arena:
        env = arena.envs("train")[0]
        undisturbed = play(Walker(), [Posed(env)], plan)
        deadly = Deadly(env, deaths=2)
        assert play(Walker(), [deadly], plan) == undisturbed
    assert deadly.killed == 2
    assert [episode.success for episode in undisturbed] == [True] * 3


@pytest.mark.filterwarnings("ignore:ViZDoom's engine")
def test_engines_that_always_die_are_one_sentence_and_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        arenas, "make_env_func_non_batched", lambda *a, **k: Deadly(make_env_func_non_batched(*a, **k), deaths=99)
    )
    monkeypatch.setattr(evaluate_library, "make_player", lambda *a, **k: Walker())
    make_run(tmp_path / "run", 0, 0)
    flags = [f"--train_dir={tmp_path}", "--experiment=run", "--checkpoint=all", "--episodes=2", "--num_envs=1"]
    assert evaluate.main(flags) == 1
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("sf-explore-go:")]
    assert len(said) == 1
    assert "the environment's engine died in each of 3 attempts at episode 0" in said[0]
    assert not (tmp_path / "run/evaluation.csv").exists()
