"""How much memory a run takes, so that it can be said before it starts.

Each kind of process is counted with what it has for itself, in the proportional set size that was measured with the
`laptop` preset (docs/performance.md): pages that processes share are split between them. Rollouts come on top.
"""

from typing import Any

import psutil
from sample_factory.algo.utils.env_info import EnvInfo

from sf_explore_go.runtime.shared_memory import MIB, bytes_needed

MAIN, LEARNER, INFERENCE, ROLLOUT_WORKER, ENGINE = 280 * MIB, 420 * MIB, 300 * MIB, 200 * MIB, 6 * MIB


def memory_needed(cfg: Any, env_info: EnvInfo) -> int:
    """Bytes, of all processes of a training together."""
    engines = cfg.num_workers * cfg.num_envs_per_worker * ENGINE
    if cfg.serial_mode:
        return MAIN + LEARNER + engines
    policies = cfg.num_policies * (LEARNER + cfg.policy_workers_per_policy * INFERENCE)
    return MAIN + policies + cfg.num_workers * ROLLOUT_WORKER + engines + bytes_needed(cfg, env_info)


def tree_memory(root: psutil.Process) -> int:
    """Bytes of a process and all its descendants; pages that they share are split between their users (PSS)."""
    total = 0
    for process in [root, *root.children(recursive=True)]:
        try:
            total += process.memory_full_info().pss
        except psutil.Error:  # ended while we looked
            continue
    return total


def memory_free() -> int:
    return int(psutil.virtual_memory().available)


def memory_warning(cfg: Any, env_info: EnvInfo) -> str | None:
    """A sentence if there is too little. Not a refusal: a machine may swap, or free what it keeps for others."""
    needed, free = memory_needed(cfg, env_info), memory_free()
    if needed <= free:
        return None
    return (
        f"this run takes about {needed / 2**30:.1f} GB of memory and {free / 2**30:.1f} GB are free; lower"
        f" --num_workers={cfg.num_workers} or --num_envs_per_worker={cfg.num_envs_per_worker} if the machine slows down"
    )
