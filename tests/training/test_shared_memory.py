"""The need for shared memory is known before it is allocated."""

from pathlib import Path

import pytest
from sample_factory.algo.utils.env_info import extract_env_info
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.utils.attr_dict import AttrDict
from sample_factory.utils.gpu_utils import set_global_cuda_envvars

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.errors import UsageError
from sf_explore_go.training import shared_memory
from sf_explore_go.training.buffers import ExploreGoBufferMgr
from sf_explore_go.training.environments import register_worlds

FLAGS = {
    "baseline": ("--max_pure_expl_steps=0",),
    "random": ("--explorer=random", "--num_workers=3", "--num_envs_per_worker=6"),
    "e3b": ("--explorer=e3b", "--explorer_batch_size=80", "--batch_size=40", "--rollout=20"),
    "synchronous": ("--max_pure_expl_steps=0", "--async_rl=False", "--batch_size=20", "--num_batches_per_epoch=1"),
}


@pytest.mark.parametrize("arm", list(FLAGS))
def test_the_estimate_is_what_is_allocated(tmp_path: Path, arm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    register_worlds()
    flags = ["--env=illustrative_train", "--serial_mode=False", f"--train_dir={tmp_path}", *FLAGS[arm]]
    cfg = parse_train_args(flags)
    env = make_env_func_non_batched(cfg, AttrDict(worker_index=0, vector_index=0, env_id=0))
    env_info = extract_env_info(env, cfg)
    env.close()
    set_global_cuda_envvars(cfg)
    buffers = ExploreGoBufferMgr(cfg, env_info)
    allocated = shared_memory.bytes_of(buffers.traj_tensors_torch) + shared_memory.bytes_of(
        buffers.policy_output_tensors_torch
    )
    engines = cfg.num_workers * cfg.num_envs_per_worker * shared_memory.ENGINE_BYTES
    needed = shared_memory.bytes_needed(cfg, env_info)
    assert needed == allocated + engines + shared_memory.NETWORK_BYTES + shared_memory.queue_bytes(cfg)

    monkeypatch.setattr(shared_memory, "bytes_free", lambda: needed - 1)
    with pytest.raises(UsageError, match=r"^/dev/shm has \d+ MB free, but this run needs \d+ MB: .*--shm-size=256m"):
        shared_memory.check_shared_memory(cfg, env_info)
    monkeypatch.setattr(shared_memory, "bytes_free", lambda: 2 * needed)
    shared_memory.check_shared_memory(cfg, env_info)


def test_queues_of_all_processes_count() -> None:
    """By hand: main, 2 rollout workers, and learner, batcher, inference worker of each policy have 5 MB each; free
    rollouts and each policy's requests 1 MB each."""
    one = AttrDict(num_workers=2, num_policies=1, policy_workers_per_policy=1)
    assert shared_memory.queue_bytes(one) == 6 * 5_000_000 + 2 * 1_000_000
    two = AttrDict(num_workers=2, num_policies=2, policy_workers_per_policy=1)
    assert shared_memory.queue_bytes(two) == 9 * 5_000_000 + 3 * 1_000_000
