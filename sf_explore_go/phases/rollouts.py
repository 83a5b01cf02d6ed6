"""One open rollout per policy and actor.

Sample Factory keeps a single rollout open per actor, so one that spans a switch of policies holds steps of both, and
every learner receives a copy with the other's steps masked. Here each policy has a rollout of its own: at a switch the
actor leaves one where it is and goes on in the other, and each is sent when it holds `rollout` steps. A learner
therefore only ever sees its own steps, each exactly once, in the order in which they were made.
"""

from typing import Any

# Tensors [rollout] that a learned explorer's rollouts carry beside Sample Factory's, all int32.
ENV_INDEX = "env_index"  # which environment of the run
PHASE_INDEX = "phase_index"  # which episode of that environment, hence which explore phase
PHASE_STEP = "phase_step"  # which step of that phase, from 0
PHASE_TENSORS = (ENV_INDEX, PHASE_INDEX, PHASE_STEP)
# Tensors [rollout], int64, for explorers that know states by their keys (`World.state_key`).
STATE = "state_key"  # of the state in which the action is taken
NEXT_STATE = "next_state_key"  # of the state that it leads to, which may be the last one of its phase or episode
STATE_TENSORS = (STATE, NEXT_STATE)


class OpenRollout:
    """The rollout that one actor currently fills for one policy, with a step index of its own."""

    __slots__ = ("buffer", "buffer_index", "policy_id", "rollouts_sent", "step")

    def __init__(self, policy_id: int) -> None:
        self.policy_id = policy_id
        self.step = 0  # where the next step goes, 0 .. rollout
        self.buffer_index = -1
        self.buffer: Any = None  # views into shared memory, [rollout (+ 1), ...] each
        self.rollouts_sent = 0

    @property
    def needs_buffer(self) -> bool:
        return self.buffer is None

    def attach(self, buffer_index: int, tensors: Any) -> None:
        """Start a new rollout in a free shared buffer; `tensors` are [buffers, rollout (+ 1), ...]."""
        self.buffer_index = buffer_index
        self.buffer = tensors[buffer_index]
        self.step = 0

    def send(self, actor_name: str, length: int) -> dict[str, Any]:
        """Give the full rollout away; the message is the one that Sample Factory's batcher expects."""
        message = {
            "t_id": f"{self.policy_id}_{actor_name}_{self.rollouts_sent}",
            "length": length,
            "policy_id": self.policy_id,
            "traj_buffer_idx": self.buffer_index,
        }
        self.buffer, self.buffer_index = None, -1
        self.rollouts_sent += 1
        return message
