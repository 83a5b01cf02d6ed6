"""How much shared memory a run takes, known before anything is allocated.

Writing to shared memory that is not there ends a process with a bus error and no message, and containers often have
64 MB of it. So the need is computed from the flags, by the functions that allocate later, and compared with what is
free.
"""

import math
import os
from pathlib import Path
from typing import Any

from sample_factory.algo.utils.env_info import EnvInfo
from sample_factory.algo.utils.shared_buffers import alloc_policy_output_tensors, alloc_trajectory_tensors
from sample_factory.model.model_utils import get_rnn_size
from sample_factory.utils.dicts import iterate_recursively

from sf_explore_go.core.errors import UsageError
from sf_explore_go.training.buffers import add_phase_tensors, buffers_allocated

SHARED_MEMORY = Path("/dev/shm")
ENGINE_BYTES = 80 * 1024  # what ViZDoom really touches of the 10.7 MB that its segments seem to take
NETWORK_BYTES = 2**20  # counters and versions; networks are small beside the rollouts
EVENT_LOOP_BYTES, QUEUE_BYTES = 5_000_000, 1_000_000  # signal_slot's queues, which faster_fifo allocates as a whole
SPARE = 1.1  # others use shared memory too
MIB = 2**20


def bytes_of(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for _, _, tensor in iterate_recursively(tensors))


def bytes_needed(cfg: Any, env_info: EnvInfo) -> int:
    """Bytes of shared memory of a run with these flags; in serial mode only engines take any."""
    engines = cfg.num_workers * cfg.num_envs_per_worker
    if cfg.serial_mode:
        return engines * ENGINE_BYTES
    one = alloc_trajectory_tensors(env_info, 1, cfg.rollout, get_rnn_size(cfg), "cpu", False)
    add_phase_tensors(one, cfg, "cpu", share=False)
    outputs, _, _ = alloc_policy_output_tensors(cfg, env_info, get_rnn_size(cfg), "cpu", False)
    rollouts = buffers_allocated(cfg, env_info) * bytes_of(one)
    tensors = rollouts + outputs.numel() * outputs.element_size() + NETWORK_BYTES
    return tensors + queue_bytes(cfg) + engines * ENGINE_BYTES


def queue_bytes(cfg: Any) -> int:
    """Of messages between processes: an event loop each for the main process, every rollout worker, and the learner,
    batcher and inference workers of every policy; a queue of free rollouts, and one of requests per policy."""
    loops = 1 + cfg.num_workers + cfg.num_policies * (2 + cfg.policy_workers_per_policy)
    return loops * EVENT_LOOP_BYTES + (1 + cfg.num_policies) * QUEUE_BYTES


def bytes_free() -> int | None:
    """None where there is no such folder to look at."""
    if not SHARED_MEMORY.is_dir():
        return None
    stat = os.statvfs(SHARED_MEMORY)
    return stat.f_bavail * stat.f_frsize


def check_shared_memory(cfg: Any, env_info: EnvInfo) -> None:
    """Refuse to start what would end in a bus error."""
    needed, free = math.ceil(SPARE * bytes_needed(cfg, env_info)), bytes_free()
    if free is not None and free < needed:
        megabytes = math.ceil(needed / MIB)
        raise UsageError(
            f"{SHARED_MEMORY} has {free // MIB} MB free, but this run needs {megabytes} MB: give the container more"
            f" (docker run --shm-size={math.ceil(megabytes / 256) * 256}m), or lower --num_workers={cfg.num_workers},"
            f" --num_envs_per_worker={cfg.num_envs_per_worker} or --rollout={cfg.rollout}"
        )
