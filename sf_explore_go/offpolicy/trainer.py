"""A training with DQN, without anything around it: act, count, keep, learn; and all of its state as plain tensors.

What is kept in the buffer makes the arms: the agent's steps only (DQN, Explore-Go, TEE), also those of the explore
phase (`--dqn_keep_exploration`, "Explore-Go with PE"), also random transitions (`--dqn_random_share`, figure 1). The
last step of an explore phase leads to the agent's first state and is no terminal one.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.explorers.counts import rule_of
from sf_explore_go.offpolicy.bonus import CountBonus
from sf_explore_go.offpolicy.dqn import ActionValues, Chooser, ValueLearner, betas, epsilon_at
from sf_explore_go.offpolicy.environments import Integers, Steps, TableEnvs
from sf_explore_go.offpolicy.replay import Replay, Transitions
from sf_explore_go.phases.schedule import Phase
from sf_explore_go.training.accounting import FrameCounter, Frames
from sf_explore_go.training.seeds import seed_process
from sf_explore_go.training.states import STATES, Met, StateMemory
from sf_explore_go.worlds.base import TRAIN
from sf_explore_go.worlds.registry import world_of
from sf_explore_go.worlds.states import StateTable

AT_ONCE = 4096  # states whose observations are made together
Q, U = "q", "u"
WHAT = ("loss", "grad_norm", "value")  # a gradient step reports, of each of them


def training_table(cfg: Any) -> StateTable:
    table = world_of(cfg.env).state_table(cfg, TRAIN)
    assert table is not None, "checked with the flags"
    return table


def all_observations(table: StateTable, device: torch.device) -> Tensor:
    """[states, ...]: made once, so that a batch is a matter of indexing."""
    parts = np.array_split(np.arange(table.states), -(-table.states // AT_ONCE))
    first = table.observe(parts[0])
    seen = torch.empty((table.states, *first.shape[1:]), dtype=torch.from_numpy(first).dtype, device=device)
    for part in parts:
        seen[torch.from_numpy(part)] = torch.from_numpy(table.observe(part)).to(device)
    return seen


class Trainer:
    """Everything of a run that changes while it learns."""

    def __init__(self, cfg: Any) -> None:
        self.cfg, self.table = cfg, training_table(cfg)
        states, actions, num_envs = self.table.states, self.table.actions, cfg.num_envs_per_worker
        self.device = torch.device("cuda" if cfg.device == "gpu" else "cpu")
        self.seen = all_observations(self.table, self.device)
        self.envs = TableEnvs(cfg, self.table, num_envs)
        seed_process(cfg.seed, "dqn")  # for the first weights; nothing else draws from the global generators
        q, u = (ActionValues(cfg, self.envs.observation_space, actions).to(self.device) for _ in (Q, U))
        self.learners = {
            Q: ValueLearner(q, cfg, cfg.learning_rate, cfg.dqn_tau),
            U: ValueLearner(u, cfg, cfg.dqn_learning_rate_u, cfg.dqn_tau_u),
        }
        self.replay = Replay(cfg.dqn_buffer)
        self.bonus = CountBonus(rule_of(cfg), cfg.counts_coeff, states, actions, num_envs, self.envs.limit)
        self.memory = StateMemory(states, actions, cfg.dqn_buffer, share=False)
        self.frames = FrameCounter(1, share=False)
        self._made = self.frames.row(0)
        self.updates = 0
        self.rngs = {
            name: np.random.default_rng(derive_seed(cfg.seed, "dqn", name)) for name in ("act", "learn", "add")
        }
        self._chooser = Chooser(betas(cfg.dqn_beta, num_envs), self.rngs["act"])
        self._to_learn = 0  # environment steps since the last gradient step was due

    # -- acting --------------------------------------------------------------------------------------------------

    @property
    def epsilon(self) -> float:
        ramp = self.cfg.dqn_epsilon_share * self.cfg.train_for_env_steps
        return epsilon_at(self.frames.total(), ramp, self.cfg.dqn_epsilon)

    def begin(self) -> None:
        self.envs.begin()
        self._note_go_starts(range(len(self.envs)))

    @torch.no_grad()
    def values(self, states: Integers) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Q and U, [n, actions] each."""
        seen = self.seen[torch.from_numpy(states)]
        q, u = (self.learners[name].network(seen).cpu().numpy() for name in (Q, U))
        return q, u

    def step(self) -> Steps:
        """One step of every environment, into counts, memory and buffer. Then `begin_again` where episodes ended."""
        envs = self.envs
        actions = self._chooser.choose(*self.values(envs.state), envs.exploring, self.epsilon)
        steps = envs.step(actions)
        earned = self.bonus.count(steps)
        self.memory.met.numpy()[steps.state, steps.action] = 1
        explored = int(steps.exploring.sum())
        self._made.add(Phase.EXPLORE, explored)
        self._made.add(Phase.GO, len(envs) - explored)
        self._keep(steps, earned)
        switched = steps.exploring & ~steps.ended & ~envs.exploring
        self._note_go_starts(np.flatnonzero(switched).tolist())
        self._to_learn += len(envs)
        return steps

    def begin_again(self, ended: Sequence[int]) -> None:
        for index in ended:
            self.envs.begin_episode(index)
        self._note_go_starts([index for index in ended if not self.envs.explore_steps[index]])

    def _note_go_starts(self, indices: Sequence[int]) -> None:
        """Of these environments, those that do not explore begin to go where they are."""
        starts = self.memory.starts.numpy()
        for index in indices:
            if not self.envs.exploring[index]:
                starts[self.envs.state[index]] += 1

    def _keep(self, steps: Steps, earned: NDArray[np.float32]) -> None:
        made = Transitions(
            steps.state.astype(np.int32), steps.action.astype(np.int32), steps.next_state.astype(np.int32), earned
        )
        self.replay.add(made if self.cfg.dqn_keep_exploration else made.where(~steps.exploring))
        if self.cfg.dqn_random_share > 0:
            self._add_random(int((~steps.exploring).sum()))

    def _add_random(self, beside: int) -> None:
        """So many random transitions that they are the wanted share of what is added: uniform over all pairs of the
        training contexts. They are no steps of any environment, so neither frames nor counts know of them."""
        share, rng = self.cfg.dqn_random_share, self.rngs["add"]
        count = int(rng.poisson(beside * share / (1 - share)))
        state, action = rng.integers(self.table.states, size=count), rng.integers(self.table.actions, size=count)
        reached, earned = self.table.next_state[state, action], self.bonus.would_earn(state, action)
        self.replay.add(Transitions(state.astype(np.int32), action.astype(np.int32), reached.astype(np.int32), earned))

    # -- learning ------------------------------------------------------------------------------------------------

    def learn_if_due(self) -> dict[str, float] | None:
        """The gradient steps that are due; what the last one reports, if there was one."""
        reported = None
        while self._to_learn >= self.cfg.dqn_train_every:
            self._to_learn -= self.cfg.dqn_train_every
            if len(self.replay) >= self.cfg.dqn_start:
                reported = self.learn()
        return reported

    def learn(self) -> dict[str, float]:
        """One gradient step of Q and one of U, on the same transitions."""
        batch = self.replay.sample(self.cfg.batch_size, self.rngs["learn"])
        action, reward, bonus, terminal = (
            torch.from_numpy(column).to(self.device)
            for column in (batch.action.astype(np.int64), batch.reward, batch.bonus, batch.terminal)
        )
        seen = self.seen[torch.from_numpy(batch.state.astype(np.int64))]
        next_seen = self.seen[torch.from_numpy(np.maximum(batch.next_state, 0).astype(np.int64))]  # cut where terminal
        self.updates += 1
        of_q = self.learners[Q].learn(seen, action, reward, next_seen, terminal)
        of_u = self.learners[U].learn(seen, action, bonus, next_seen, terminal)
        reports = {f"{Q}_{what}": value for what, value in zip(WHAT, of_q, strict=True)}
        reports |= {f"{U}_{what}": value for what, value in zip(WHAT, of_u, strict=True)}
        return {name: float(value) for name, value in reports.items()} | {"bonus": float(batch.bonus.mean())}

    def met(self) -> Met:
        """What the training has met so far, and which share of all states the buffer holds."""
        return Met(float(self.memory.met.double().mean()), self.replay.distinct_states() / self.table.states)

    # -- all of it -----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        learners = self.learners
        return {
            "model": learners[Q].network.state_dict(),
            U: learners[U].network.state_dict(),
            "learners": {name: one.state_dict() for name, one in learners.items()},
            "frames": list(self.frames.read()),
            "train_step": self.updates,
            "env_steps": self.frames.total(),
            "to_learn": self._to_learn,
            "replay": self.replay.state_dict(),
            "counts": self.bonus.state_dict(),
            "environments": self.envs.state_dict(),
            "generators": {name: json.dumps(rng.bit_generator.state) for name, rng in self.rngs.items()},
            STATES: self.memory.state_dict(),
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.learners[Q].network.load_state_dict(saved["model"])
        self.learners[U].network.load_state_dict(saved[U])
        for name, one in self.learners.items():
            one.load_state_dict(saved["learners"][name])
        self.frames.restore(Frames(*saved["frames"]))
        self.updates, self._to_learn = saved["train_step"], saved["to_learn"]
        self.replay.load_state_dict(saved["replay"])
        self.bonus.load_state_dict(saved["counts"])
        self.envs.load_state_dict(saved["environments"])
        for name, rng in self.rngs.items():
            rng.bit_generator.state = json.loads(saved["generators"][name])
        self.memory.load_state_dict(saved[STATES])
