"""How much memory a run takes, estimated before it starts.

Each kind of process is counted with what it has for itself, in the proportional set size that was measured with the
`laptop` and `paper` presets (docs/performance.md): pages that processes share are split between them. Rollouts and
queues come on top, and in a learner the batch that it works on.
"""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil
from sample_factory.algo.utils.env_info import EnvInfo

from sf_explore_go.processes.fork_server import MOST_WORKERS
from sf_explore_go.training.policies import policy_cfgs
from sf_explore_go.training.shared_memory import MIB, SHARED_MEMORY, bytes_needed

MAIN = 310 * MIB  # with the fork server
LEARNER, INFERENCE, ROLLOUT_WORKER = 350 * MIB, 80 * MIB, 60 * MIB  # with the helpers that they start
ENGINE = 17 * MIB // 2
BATCH_COPIES = 16  # of the observations of a batch, as bytes: floats are four, and gradients need what lies between
IMPORTS = 170 * MIB  # of a worker that is not forked and loads the libraries for itself


def memory_needed(cfg: Any, env_info: EnvInfo) -> int:
    """Bytes, of all processes of a training together."""
    engines = cfg.num_workers * cfg.num_envs_per_worker * ENGINE
    learners = sum(LEARNER + batch_bytes(own, env_info) for own in policy_cfgs(cfg))
    if cfg.serial_mode:
        return MAIN + learners + engines
    inference_workers = cfg.num_policies * cfg.policy_workers_per_policy
    workers = inference_workers * INFERENCE + cfg.num_workers * ROLLOUT_WORKER
    if cfg.num_workers > MOST_WORKERS:
        workers += (cfg.num_policies + inference_workers + cfg.num_workers) * IMPORTS
    return MAIN + learners + workers + engines + bytes_needed(cfg, env_info)


def batch_bytes(cfg: Any, env_info: EnvInfo) -> int:
    spaces = env_info.obs_space.spaces.values()
    observation = sum(int(np.prod(space.shape)) * space.dtype.itemsize for space in spaces)
    return BATCH_COPIES * cfg.batch_size * observation


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
        f"this run needs about {needed / 2**30:.1f} GB of memory, but only {free / 2**30:.1f} GB is free; lower"
        f" --num_workers={cfg.num_workers} or --num_envs_per_worker={cfg.num_envs_per_worker} if the machine slows down"
    )
