"""Shared memory for rollouts: how many buffers there are, and what bonuses add to them."""

import math
from typing import Any

import torch
from sample_factory.algo.utils.env_info import EnvInfo
from sample_factory.algo.utils.rl_utils import total_num_agents, trajectories_per_training_iteration
from sample_factory.algo.utils.shared_buffers import BufferMgr, alloc_trajectory_tensors, init_tensor
from sample_factory.algo.utils.tensor_dict import TensorDict
from sample_factory.model.model_utils import get_rnn_size

from sf_explore_go.phases.rollouts import PHASE_TENSORS, STATE_TENSORS
from sf_explore_go.training.accounting import FrameCounter
from sf_explore_go.training.policies import has_phases, needs_states, policy_cfgs
from sf_explore_go.training.states import make_memory


def buffers_needed(cfg: Any, env_info: EnvInfo) -> int:
    """How many rollout buffers a run with two phases needs so that it can never deadlock.

    Let A be the actors, P the policies and I the rollouts of one training iteration, of the policy that takes more.
    Actors hold at most one open rollout per policy, A * P in all. A batcher that holds I rollouts turns them into a
    batch and frees them as soon as its learner has a batch slot, which it always gets again; so only sets of less than
    I, at most P * (I - 1) rollouts, can wait for others. An actor that needs a buffer holds less than P. Hence with
    A * P + P * (I - 1) buffers some buffer is free, or will be without any actor's help. The rest lets actors go on
    while learners work, as much as Sample Factory grants: one more set for the actors, or the batches that may
    accumulate.
    """
    actors = total_num_agents(cfg, env_info)
    per_iteration = max(trajectories_per_training_iteration(own) for own in policy_cfgs(cfg))
    waiting = cfg.num_policies * per_iteration
    return actors * cfg.num_policies + max(actors, waiting * cfg.num_batches_to_accumulate)


def buffers_allocated(cfg: Any, env_info: EnvInfo) -> int:
    """How many rollout buffers a run has: Sample Factory's number, and with an explore phase what that needs."""
    actors, per_batch = total_num_agents(cfg, env_info), trajectories_per_training_iteration(cfg) * cfg.num_policies
    sets = 2 if cfg.async_rl or cfg.num_policies > 1 else 1
    return max(sets * actors, batches_to_accumulate(cfg, env_info) * per_batch)


def batches_to_accumulate(cfg: Any, env_info: EnvInfo) -> int:
    """How many batches of all policies the buffers hold."""
    if has_phases(cfg):
        per_batch = trajectories_per_training_iteration(cfg) * cfg.num_policies
        return math.ceil(buffers_needed(cfg, env_info) / per_batch)
    return int(cfg.num_batches_to_accumulate) if cfg.async_rl else 1


def phase_tensors(cfg: Any) -> dict[str, torch.dtype]:
    """What the rollouts of a run hold beside Sample Factory's tensors."""
    if cfg.num_policies == 1 and not cfg.agent_bonus:
        return {}
    kinds = dict.fromkeys(PHASE_TENSORS, torch.int32)
    if needs_states(cfg):
        kinds |= dict.fromkeys(STATE_TENSORS, torch.int64)
    return kinds


def add_phase_tensors(tensors: TensorDict, cfg: Any, device: Any, *, share: bool) -> None:
    """Room for the place in its phase of each step, and for the keys of states if the explorer wants them; shaped like
    the done flags."""
    for name, kind in phase_tensors(cfg).items():
        tensors[name] = init_tensor(list(tensors["dones"].shape), kind, [], device, share)


class ExploreGoBufferMgr(BufferMgr):
    """Sample Factory's buffers plus the frame counter; with an explore phase, as many as two phases need."""

    def __init__(self, cfg: Any, env_info: EnvInfo) -> None:
        super().__init__(cfg, env_info)
        self.policy_cfgs = policy_cfgs(cfg)  # for batchers and learners
        if has_phases(cfg):
            self._make_room(buffers_allocated(cfg, env_info))
        for device, tensors in self.traj_tensors_torch.items():
            add_phase_tensors(tensors, cfg, device, share=not cfg.serial_mode)
        self.frames = FrameCounter(cfg.num_workers, share=not cfg.serial_mode)
        self.states = make_memory(cfg)

    def _make_room(self, wanted: int) -> None:
        """The parent has allocated what one phase needs. Two phases may need more: then all are allocated anew."""
        for device in list(self.traj_tensors_torch):
            have = len(self.traj_tensors_torch[device]["dones"])
            if have < wanted:
                del self.traj_tensors_torch[device]  # first, since there may be no room for both
                self.traj_tensors_torch[device] = alloc_trajectory_tensors(
                    self.env_info, wanted, self.cfg.rollout, get_rnn_size(self.cfg), device, not self.cfg.serial_mode
                )
                for index in range(have, wanted):
                    self.traj_buffer_queues[device].put(index)
