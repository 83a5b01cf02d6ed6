"""The settings of each policy: the agent has those of the run, the explorer may have some of its own."""

from typing import Any

from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.explorers.registry import resolve_explorer
from sf_explore_go.phases.schedule import AGENT

# Flags of which there is a second one for the explorer, e.g. --explorer_batch_size, with their type and unit.
EXPLORERS_OWN: dict[str, tuple[type, str]] = {
    "batch_size": (int, "decisions"),
    "num_batches_per_epoch": (int, "batches"),
    "num_epochs": (int, "epochs"),
    "learning_rate": (float, "number"),
    "gamma": (float, "number"),
    "gae_lambda": (float, "number"),
    "exploration_loss_coeff": (float, "number"),
}


def has_phases(cfg: Any) -> bool:
    """Whether the run needs our own actors: it explores first, or its agent has a bonus, which needs to know episodes.

    All others are Sample Factory's, number by number.
    """
    return bool(cfg.max_pure_expl_steps > 0 or cfg.agent_bonus)


def needs_states(cfg: Any) -> bool:
    """Whether rollouts must hold the keys of states."""
    return bool(cfg.agent_bonus) or (cfg.max_pure_expl_steps > 0 and resolve_explorer(cfg.explorer).uses_states)


def policy_cfgs(cfg: Any) -> list[Any]:
    """Of all policies of a run, by their ids."""
    return [policy_cfg(cfg, policy_id) for policy_id in range(cfg.num_policies)]


def policy_cfg(cfg: Any, policy_id: int) -> Any:
    """The configuration that a policy's batcher and learner work with.

    The agent learns with the run's seed, as in Sample Factory; the explorer with one of its own.
    """
    if policy_id == AGENT:
        return cfg
    own = type(cfg)(cfg)
    own.seed = derive_seed(cfg.seed, "learner", policy_id)
    own.adv_std_memory = 0.0  # a bonus comes at every step, so there are no batches without reward
    for name in EXPLORERS_OWN:
        if cfg[f"explorer_{name}"] is not None:
            own[name] = cfg[f"explorer_{name}"]
    return own
