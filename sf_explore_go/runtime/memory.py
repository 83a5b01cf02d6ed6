"""How much memory a run takes, so that it can be said before it starts.

Each kind of process is counted with what it has for itself, in the proportional set size that was measured with the
`laptop` preset (docs/performance.md): pages that processes share are split between them. Rollouts and queues come
on top.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import psutil
from sample_factory.algo.utils.env_info import EnvInfo

from sf_explore_go.runtime.shared_memory import MIB, SHARED_MEMORY, bytes_needed

MAIN, LEARNER, INFERENCE, ROLLOUT_WORKER, ENGINE = 250 * MIB, 420 * MIB, 300 * MIB, 200 * MIB, 6 * MIB


def memory_needed(cfg: Any, env_info: EnvInfo) -> int:
    """Bytes, of all processes of a training together."""
    engines = cfg.num_workers * cfg.num_envs_per_worker * ENGINE
    if cfg.serial_mode:
        return MAIN + LEARNER + engines
    policies = cfg.num_policies * (LEARNER + cfg.policy_workers_per_policy * INFERENCE)
    return MAIN + policies + cfg.num_workers * ROLLOUT_WORKER + engines + bytes_needed(cfg, env_info)


def tree_memory(root: psutil.Process) -> int:
    """Bytes of a process and all its descendants; pages that they share are split between their users (PSS)."""
    return _sum_over_tree(root, lambda process: process.memory_full_info().pss)


def tree_shared_memory(root: psutil.Process) -> int:
    """The part of it that lies in shared memory. Its files are removed as soon as all have opened them, so the folder's
    listing shows next to nothing; the processes' maps do."""

    def shared(process: psutil.Process) -> int:
        return sum(part.pss for part in process.memory_maps() if part.path.startswith(f"{SHARED_MEMORY}/"))

    return _sum_over_tree(root, shared)


def _sum_over_tree(root: psutil.Process, measure: Callable[[psutil.Process], int]) -> int:
    total = 0
    for process in [root, *root.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):  # ended while we looked
            total += measure(process)
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
