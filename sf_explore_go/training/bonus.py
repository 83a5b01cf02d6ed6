"""Batches of steps as intrinsic rewards want them, and the agent's own bonus."""

from typing import Any

from sample_factory.algo.utils.tensor_dict import TensorDict

from sf_explore_go.explorers.counts import CountsReward, rule_of
from sf_explore_go.explorers.intrinsic import ExploreBatch
from sf_explore_go.phases.rollouts import ENV_INDEX, NEXT_STATE, PHASE_INDEX, PHASE_STEP, STATE

AGENTS_COUNTS = "agents_counts"  # in a checkpoint


def explore_batch(batch: TensorDict, normalized: Any, learning_rate: float) -> ExploreBatch:
    """Sample Factory's batch on plain tensors, on the device of the normalised observations."""
    device = next(iter(normalized.values())).device
    names = ("actions", "dones", ENV_INDEX, PHASE_INDEX, PHASE_STEP)
    actions, dones, env, phase, step = (batch[name].to(device) for name in names)
    states = [batch[name].to(device) if name in batch else None for name in (STATE, NEXT_STATE)]
    return ExploreBatch(normalized, batch["obs"], actions, dones, env, phase, step, learning_rate, *states)


def make_agents_bonus(cfg: Any) -> CountsReward | None:
    """`--agent_bonus` times the bonus of `--explorer=counts`, with counts of the agent's own; None without it."""
    return CountsReward(rule_of(cfg), cfg.agent_bonus) if cfg.agent_bonus else None
