"""The agent's own bonus: what its learner is given, against a count made here from what the agent saw and did."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sample_factory.algo.learning.learner import Learner

from sf_explore_go.cli.train import main
from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.counts import CountsReward, rule_of
from sf_explore_go.explorers.intrinsic import ExploreBatch
from sf_explore_go.training import learner
from sf_explore_go.worlds.grid.rooms import draw_contexts, table_of
from tests.training.test_states import SMALL


class Recording(CountsReward):
    """Keeps every batch and what it earned."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.seen: list[tuple[ExploreBatch, torch.Tensor]] = []

    def rewards(self, batch: ExploreBatch) -> torch.Tensor:
        earned = super().rewards(batch)
        copies = {name: getattr(batch, name).clone() for name in ("actions", "env", "phase", "step", "state")}
        kept = ExploreBatch({}, {"obs": batch.raw_obs["obs"].clone()}, copies["actions"], batch.dones, copies["env"],
                            copies["phase"], copies["step"], 0.0, copies["state"])  # fmt: skip
        self.seen.append((kept, earned.clone()))
        return earned


@pytest.mark.parametrize("steps", [0, 20])
def test_it_is_the_papers_with_counts_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    made: list[Recording] = []

    def make(cfg: Any) -> Recording:
        made.append(Recording(rule_of(cfg), cfg.agent_bonus))
        return made[-1]

    given: list[np.ndarray] = []
    prepare = Learner._prepare_batch

    def prepared(self: Any, batch: Any) -> Any:
        if self.policy_id == 0:
            given.append(batch["rewards"].clone().numpy())
        return prepare(self, batch)

    monkeypatch.setattr(learner, "make_agents_bonus", make)
    monkeypatch.setattr(Learner, "_prepare_batch", prepared)
    words = (*SMALL, f"--max_pure_expl_steps={steps}", f"--train_dir={tmp_path}", "--experiment=run", "--seed=1")
    assert main([*words, "--train_for_env_steps=2000", "--milestone_step_freq=0"]) == 0
    (bonus,) = [one for one in made if one.seen]
    table = table_of(draw_contexts("train", 9, 3, 3, seed=1), 9)
    ever: Counter[tuple[int, int]] = Counter()
    episodes: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for (batch, earned), rewards in zip(bonus.seen, given, strict=True):
        assert batch.state is not None
        flat = [part.flatten().tolist() for part in (batch.env, batch.phase, batch.state, batch.actions)]
        pictures = batch.raw_obs["obs"][:, :-1].flatten(0, 1).numpy()
        np.testing.assert_array_equal(pictures, table.observe(batch.state.flatten().numpy()))
        expected = []
        for env, phase, state, action in zip(*flat, strict=True):
            pair, so_far = (state, int(action)), episodes.setdefault((env, phase), set())
            ever[pair] += 1
            expected.append(0.0 if pair in so_far else 0.01 / np.sqrt(ever[pair]))
            so_far.add(pair)
        np.testing.assert_allclose(earned.flatten(), expected, rtol=1e-6)
        world = rewards - earned.numpy()
        assert np.isclose(world, 0, atol=1e-6).sum() + np.isclose(world, 1, atol=1e-6).sum() == world.size
    assert len(bonus.seen) > 10


def test_bad_values_are_refused(tmp_path: Path) -> None:
    words = [f"--train_dir={tmp_path}"]
    with pytest.raises(UsageError, match=r"^--agent_bonus=-1\.0: it must be at least 0$"):
        main(["--env=four_rooms_train", "--agent_bonus=-1", *words])
    with pytest.raises(UsageError, match=r"^--async_rl=False: it must be True with --agent_bonus=0\.01; "):
        main(["--env=four_rooms_train", "--max_pure_expl_steps=0", "--async_rl=False", *words])
    with pytest.raises(UsageError, match=r"^--max_pure_expl_steps=100: an episode of four_rooms_train lasts 100 dec"):
        main(["--env=four_rooms_train", "--max_pure_expl_steps=100", *words])
    with pytest.raises(UsageError, match=r"^--num_contexts=81: it must be from 1 to 80; a grid of 9 x 9 has 81"):
        main(["--env=four_rooms_train", "--num_contexts=81", *words])
    with pytest.raises(UsageError, match=r"^--grid_size=8: it must be an odd number, at least 5, so that there are"):
        main(["--env=four_rooms_train", "--grid_size=8", *words])
    with pytest.raises(UsageError, match=r"^--test_contexts=0: it must be a whole number, at least 1$"):
        main(["--env=four_rooms_train", "--test_contexts=0", *words])
    assert not list(tmp_path.iterdir())
