"""The explorer that counts states: its rewards by hand, and the keys that a real run gives it."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sf_explore_go.cli.train import main
from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.counts import ACTIONS, CountsExplorer, CountsReward, Rule
from sf_explore_go.explorers.intrinsic import ExploreBatch, IntrinsicReward, Setting
from sf_explore_go.worlds.grid.illustrative import AGENT_COLOUR, next_cell
from tests.monitoring.events import all_tags


def make_batch(
    env: list[list[int]], phase: list[list[int]], states: list[list[int]], actions: list[list[int]] | None = None
) -> ExploreBatch:
    """Rollouts [N, T]; `states` [N, T + 1] are those before each action, and the last one."""
    keys = torch.tensor(states)
    place = {"env": torch.tensor(env), "phase": torch.tensor(phase), "step": torch.zeros(keys[:, 1:].shape)}
    dones = torch.zeros(keys[:, 1:].shape, dtype=torch.bool)
    taken = dones if actions is None else torch.tensor(actions)
    return ExploreBatch({}, {}, taken, dones, **place, learning_rate=0.0, state=keys[:, :-1], next_state=keys[:, 1:])


def test_the_nth_visit_of_a_phase_earns_its_power() -> None:
    reward = CountsReward(Rule(power=0.5))
    found = reward.rewards(make_batch([[0] * 4], [[0] * 4], [[7, 8, 7, 8, 9]]))
    root = math.sqrt(0.5)
    np.testing.assert_allclose(found, [[1.0, root, root, 1.0]])  # 7 counts as visited by the start
    assert reward.metrics() == {"counts_new": 0.5}


def test_phases_go_on_from_batch_to_batch_and_environments_do_not_mix() -> None:
    reward = CountsReward(Rule(power=1.0))
    reward.rewards(make_batch([[0] * 2, [1] * 2], [[0] * 2, [0] * 2], [[7, 8, 9], [8, 8, 8]]))
    found = reward.rewards(make_batch([[0] * 2, [1] * 2], [[0, 0], [0, 1]], [[9, 8, 7], [8, 7, 8]]))
    # 0: 8 and 7 for the second time. 1: 7 is new; then a phase begins in 7 and goes to 8, which is new to it.
    np.testing.assert_allclose(found, [[0.5, 0.5], [1.0, 1.0]])


def test_the_global_factor_counts_all_phases() -> None:
    reward = CountsReward(Rule(power=0.5, with_global=True))
    reward.rewards(make_batch([[0] * 3], [[0] * 3], [[1, 2, 3, 2]]))
    found = reward.rewards(make_batch([[5] * 2], [[9] * 2], [[1, 2, 4]]))
    np.testing.assert_allclose(found, [[3**-0.5, 1]])


def test_the_papers_bonus_for_four_rooms() -> None:
    """Pairs of state and action: 1 / sqrt(N) the first time in an episode, nothing after that."""
    reward = CountsReward(Rule(ACTIONS, 0.5, with_global=True, first=True), coeff=0.1)
    batch = make_batch([[0] * 4], [[0] * 4], [[7, 8, 7, 8, 9]], actions=[[0, 1, 0, 2]])
    np.testing.assert_allclose(reward.rewards(batch), [[0.1, 0.1, 0.0, 0.1]])  # (7, 0) comes twice
    batch = make_batch([[0] * 3], [[1] * 3], [[7, 8, 7, 8]], actions=[[0, 0, 1]])
    np.testing.assert_allclose(reward.rewards(batch), [[0.1 / math.sqrt(3), 0.1, 0.1]], rtol=1e-6)


def test_the_authors_form_of_it() -> None:
    """1 / sqrt(earlier times + 1e-7), divided by the largest it can be."""
    reward = CountsReward(Rule(ACTIONS, 0.5, with_global=True, first=True, epsilon=1e-7))
    batches = [make_batch([[0]], [[phase]], [[7, 8]], actions=[[0]]) for phase in range(3)]
    found = [reward.rewards(batch).item() for batch in batches]
    largest = 1 / math.sqrt(1e-7)
    np.testing.assert_allclose(found, [1 / math.sqrt(times + 1e-7) / largest for times in range(3)], rtol=1e-5)
    assert found[1] == pytest.approx(3.16e-4, rel=1e-2)


def test_the_visits_of_all_phases_come_back_with_a_checkpoint(tmp_path: Path) -> None:
    before, after = (CountsReward(Rule(power=1.0, with_global=True)) for _ in range(2))
    before.rewards(make_batch([[0] * 3], [[0] * 3], [[1, 2, 3, 2]]))
    torch.save(before.state_dict(), tmp_path / "state.pth")
    after.load_state_dict(torch.load(tmp_path / "state.pth", weights_only=True))
    np.testing.assert_allclose(after.rewards(make_batch([[0]], [[1]], [[1, 2]])), [[1 / 3]])


class RecordingCounts(CountsExplorer):
    @classmethod
    def make_reward(cls, setting: Setting) -> IntrinsicReward:
        return RecordingReward(Rule(power=setting.options.counts_power))


class RecordingReward(CountsReward):
    batches: list[Any] = []  # noqa: RUF012 - of the run of this test, which is serial

    def rewards(self, batch: ExploreBatch) -> torch.Tensor:
        assert batch.state is not None
        assert batch.next_state is not None
        seen = (batch.raw_obs["obs"], batch.actions, batch.state, batch.next_state)
        self.batches.append([part.clone() for part in seen])
        return super().rewards(batch)


def test_keys_are_those_of_the_states_that_are_seen(tmp_path: Path) -> None:
    """The picture shows where the agent is, and the map says where an action leads."""
    RecordingReward.batches.clear()
    flags = (
        "--explorer=tests.explorers.test_counts:RecordingCounts",
        "--max_pure_expl_steps=8",
        "--train_for_env_steps=800",
        "--seed=1",
    )
    assert main(["--env=illustrative_train", f"--train_dir={tmp_path}", "--experiment=run", "--quiet", *flags]) == 0
    steps = 0
    for pictures, actions, states, next_states in RecordingReward.batches:
        agent = torch.tensor(AGENT_COLOUR).view(1, 1, 3, 1, 1)
        cells = (pictures[:, :-1] == agent).all(dim=2).flatten(2).float().argmax(-1)  # [N, T], row * 5 + column
        assert torch.equal(cells, states)
        for state, action, after in zip(
            *(part.flatten().tolist() for part in (states, actions, next_states)), strict=True
        ):
            row, column = next_cell(divmod(state, 5), int(action))
            assert row * 5 + column == after
            steps += 1
    assert steps > 100
    assert "explore/counts_new" in all_tags(tmp_path / "run")


def test_a_world_without_states_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("poles.py").write_text(
        "import gymnasium\nfrom sf_explore_go.worlds.base import World\n"
        "class Poles(World):\n"
        "    presets = {'poles': {'max_pure_expl_steps': 5}}\n"
        "    def make_env(self, split, cfg, render_mode=None):\n        return gymnasium.make('CartPole-v1')\n"
    )
    with pytest.raises(
        UsageError, match=r"--explorer=counts: it counts states, so the world of --env=poles.py:Poles must"
    ):
        main(["--env=poles.py:Poles", "--explorer=counts", f"--train_dir={tmp_path}"])
    with pytest.raises(UsageError, match=r"--counts_power=0\.0: it must be above 0"):
        main(["--env=illustrative_train", "--explorer=counts", "--counts_power=0", f"--train_dir={tmp_path}"])
