"""What each arm puts into its buffer, against the steps that its environments made."""

from typing import Any

import numpy as np
import pytest

from sf_explore_go.offpolicy.environments import Steps
from sf_explore_go.offpolicy.trainer import Trainer
from sf_explore_go.worlds.states import GOAL
from tests.offpolicy.small import small_cfg

LARGE = "--dqn_buffer=20000"  # nothing is lost


def played(count: int, *flags: str) -> tuple[Trainer, list[Steps]]:
    """Without learning, so that only acting matters."""
    trainer = Trainer(small_cfg(LARGE, "--dqn_start=20000", *flags))
    trainer.begin()
    made = []
    for _ in range(count):
        steps = trainer.step()
        trainer.begin_again(np.flatnonzero(steps.ended).tolist())
        made.append(steps)
    return trainer, made


def joined(made: list[Steps], name: str) -> Any:
    return np.concatenate([getattr(steps, name) for steps in made])


def triples(state: Any, action: Any, next_state: Any) -> list[tuple[int, int, int]]:
    return list(zip(state.tolist(), action.tolist(), next_state.tolist(), strict=True))


def buffer_of(trainer: Trainer) -> list[tuple[int, int, int]]:
    return triples(*trainer.replay.entries[:3])


def all_of(made: list[Steps]) -> list[tuple[int, int, int]]:
    return triples(joined(made, "state"), joined(made, "action"), joined(made, "next_state"))


def test_dqn_keeps_every_step() -> None:
    trainer, made = played(300, "--max_pure_expl_steps=0")
    assert not joined(made, "exploring").any()
    assert buffer_of(trainer) == all_of(made)
    assert tuple(trainer.frames.read()) == (0, 1200)


def test_explore_go_keeps_the_agents_steps_only() -> None:
    trainer, made = played(300, "--max_pure_expl_steps=50")
    exploring = joined(made, "exploring")
    assert 100 < exploring.sum() < 1100
    assert buffer_of(trainer) == [one for one, explored in zip(all_of(made), exploring, strict=True) if not explored]
    assert tuple(trainer.frames.read()) == (exploring.sum(), (~exploring).sum())


def test_with_exploration_in_the_buffer_a_switch_is_no_end() -> None:
    trainer, made = played(600, "--max_pure_expl_steps=50", "--dqn_keep_exploration=True")
    kept = trainer.replay.entries
    assert buffer_of(trainer) == all_of(made)
    exploring, number = joined(made, "exploring").reshape(-1, 4), joined(made, "number").reshape(-1, 4)
    switches = exploring[:-1] & ~exploring[1:] & (number[1:] > 0)  # the episode goes on, with the agent
    assert switches.sum() > 20
    assert not kept.terminal.reshape(-1, 4)[:-1][switches].any()
    # the agent's first state is where the explorer's last step led
    leads, first = kept.next_state.reshape(-1, 4)[:-1][switches], kept.state.reshape(-1, 4)[1:][switches]
    np.testing.assert_array_equal(leads, first)


def test_a_time_out_is_no_terminal_state() -> None:
    trainer, made = played(400, "--max_pure_expl_steps=0")
    timed_out = joined(made, "ended") & (joined(made, "next_state") != GOAL)
    assert timed_out.sum() > 3
    assert not trainer.replay.entries.terminal[timed_out].any()
    assert (trainer.replay.entries.next_state[timed_out] >= 0).all()
    np.testing.assert_array_equal(trainer.replay.entries.terminal, joined(made, "next_state") == GOAL)


def test_random_transitions_are_the_wanted_share() -> None:
    trainer, made = played(1000, "--max_pure_expl_steps=0", "--dqn_random_share=0.2")
    real = len(all_of(made))
    assert len(trainer.replay) - real == pytest.approx(real / 4, rel=0.1)
    assert tuple(trainer.frames.read()) == (0, real)  # they are no frames
    assert trainer.bonus.ever.sum() == real  # and are not counted
    table = trainer.table.next_state
    assert all(table[state, action] == reached for state, action, reached in buffer_of(trainer))
    assert trainer.replay.distinct_states() > len(np.unique(joined(made, "state")))
    assert trainer.met().explored == len(set(all_of(made))) / table.size


def test_what_was_met_is_what_was_played() -> None:
    trainer, made = played(200, "--max_pure_expl_steps=50")
    pairs = {(state, action) for state, action, _ in all_of(made)}
    met = trainer.met()
    assert met.explored == len(pairs) / trainer.table.next_state.size
    go_states = joined(made, "state")[~joined(made, "exploring")]
    assert met.recent == len(np.unique(go_states)) / trainer.table.states
    first_go = joined(made, "exploring").reshape(-1, 4), joined(made, "number").reshape(-1, 4)
    begins = ~first_go[0] & ((first_go[1] == 0) | np.vstack([np.zeros(4, bool), first_go[0][:-1]]))
    starts = np.bincount(joined(made, "state").reshape(-1, 4)[begins], minlength=trainer.table.states)
    late = trainer.memory.starts.numpy() - starts  # where an agent is about to begin
    assert late.min() >= 0
    assert late.sum() <= 4


def test_one_gradient_step_for_so_many_steps() -> None:
    trainer = Trainer(small_cfg("--max_pure_expl_steps=0", "--dqn_train_every=8", "--dqn_start=40"))
    trainer.begin()
    for _ in range(50):
        trainer.begin_again(np.flatnonzero(trainer.step().ended).tolist())
        trainer.learn_if_due()
    assert trainer.updates == 200 // 8 - 4  # the first four were due before there was enough to learn from


def test_q_learns_the_goal_and_u_the_bonus() -> None:
    """On a buffer of one terminal transition both values go to their rewards, with nothing added behind the goal."""
    trainer = Trainer(small_cfg("--learning_rate=0.01", "--dqn_learning_rate_u=0.01"))
    state, action = map(int, np.argwhere(trainer.table.next_state == GOAL)[0])
    entry = (np.array([state]), np.array([action]), np.array([GOAL]), np.array([0.25], np.float32))
    trainer.replay.add(type(trainer.replay.entries)(*entry))
    for _ in range(200):
        trainer.learn()
    q, u = trainer.values(np.array([state]))
    assert q[0, action] == pytest.approx(1.0, abs=0.02)
    assert u[0, action] == pytest.approx(0.25, abs=0.02)
