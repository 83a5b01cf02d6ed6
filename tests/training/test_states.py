"""What a training of Four Rooms has met, against a record of every step of its environments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sf_explore_go.cli.train import main
from sf_explore_go.phases.schedule import Phase
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.names import checkpoints_in, milestones, policy_folder
from sf_explore_go.runs.scores import read_scores
from sf_explore_go.training.states import Met, StateMemory
from sf_explore_go.worlds.grid.four_rooms import FourRoomsEnv

SMALL = (
    "--env=four_rooms_train", "--num_contexts=3", "--num_envs_per_worker=4", "--rollout=8", "--batch_size=32",
    "--num_batches_per_epoch=1", "--room_channels=4", "--encoder_conv_mlp_layers", "16", "--quiet",
)  # fmt: skip


def test_marks_stamps_and_windows_by_hand() -> None:
    memory = StateMemory(4, 2, window=3, share=False)
    pen = memory.recorder(groups=1, begun_at=0)
    for state, action, phase in ((0, 1, Phase.EXPLORE), (1, 0, Phase.GO), (2, 0, Phase.GO), (2, 0, Phase.GO)):
        pen.note(state, action, phase)
    assert memory.share() == Met(3 / 8, 2 / 4)  # the explorer's state 0 is met, but no sample of the agent's
    pen.note(3, 1, Phase.GO)
    assert memory.share() == Met(4 / 8, 2 / 4)  # the last three are 2, 2 and 3
    other = StateMemory(4, 2, window=3, share=False)
    other.load_state_dict(memory.state_dict())
    assert other.share() == memory.share()
    assert torch.equal(other.met, memory.met)


class Recorded(FourRoomsEnv):
    """Writes down every state and action."""

    played: list[tuple[int, int]] = []  # noqa: RUF012 - of the run of this test, which is serial

    def reset(self, **how: Any) -> Any:
        obs, info = super().reset(**how)
        self._key = info["state"]
        return obs, info

    def step(self, action: Any) -> Any:
        self.played.append((self._key, int(action)))
        result = super().step(action)
        self._key = result[-1]["state"]
        return result


@pytest.mark.parametrize("flags", [("--max_pure_expl_steps=0", "--agent_bonus=0"), ("--max_pure_expl_steps=20",)])
def test_what_a_run_has_met_is_what_its_environments_have_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    """The baseline on Sample Factory's own actors, and Explore-Go on ours."""
    monkeypatch.setattr("sf_explore_go.worlds.grid.four_rooms_world.FourRoomsEnv", Recorded)
    Recorded.played.clear()
    words = (*SMALL, *flags, f"--train_dir={tmp_path}", "--experiment=run", "--seed=1", "--train_for_env_steps=3000")
    assert main([*words, "--milestone_step_freq=3000"]) == 0
    state = read_checkpoint(checkpoints_in(policy_folder(tmp_path / "run", 0))[-1], "cpu")
    met = np.unpackbits(state["states"]["met"].numpy(), count=3 * 156 * 3).reshape(3 * 156, 3)
    expected = np.zeros_like(met)
    for key, action in Recorded.played:
        expected[key, action] = 1
    np.testing.assert_array_equal(met, expected)
    assert state["met"]["explored"] == expected.mean()
    assert (state["states"]["last"].numpy() > 0).sum() <= (expected.sum(axis=1) > 0).sum()


def test_a_resumed_run_goes_on_with_what_it_had_met(tmp_path: Path) -> None:
    words = (*SMALL, f"--train_dir={tmp_path}", "--experiment=run", "--seed=1", "--milestone_step_freq=1000")
    assert main([*words, "--train_for_env_steps=1000"]) == 0
    before = read_checkpoint(milestones(tmp_path / "run")[-1], "cpu")["met"]
    assert main([*words, "--train_for_env_steps=1200"]) == 0
    state = read_checkpoint(checkpoints_in(policy_folder(tmp_path / "run", 0))[-1], "cpu")
    assert state["met"]["explored"] >= before["explored"] > 0
    assert sum(state["agents_counts"]["visits"]) > 300  # more than what the second part alone can have made


def test_a_milestone_is_scored_with_exact_numbers(tmp_path: Path) -> None:
    words = (*SMALL, f"--train_dir={tmp_path}", "--experiment=run", "--seed=1", "--train_for_env_steps=1000")
    evaluated = ("--milestone_step_freq=1000", "--eval_in_background=True", "--eval_episodes=6", "--test_contexts=6")
    assert main([*words, *evaluated]) == 0
    rows = {row.split: row for row in read_scores(tmp_path / "run" / "evaluation.csv")}
    assert set(rows) == {"train", "test", "reachable", "validation"}
    assert {row.actions for row in rows.values()} == {"greedy"}
    met = read_checkpoint(milestones(tmp_path / "run")[-1], "cpu")["met"]
    assert (rows["train"].explored, rows["train"].recent) == (met["explored"], met["recent"])
    for split in ("train", "test"):
        assert 0 < (rows[split].value_error or 0) < 1
        assert 0 <= (rows[split].optimal or 0) <= 1
    assert rows["reachable"].value_error is None
    assert not (tmp_path / "run" / "evaluation_goals.csv").exists()
