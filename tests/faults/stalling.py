"""An explorer from outside, which does to its run what a lost message would: everybody lives, nobody comes on."""

import functools
import os
from pathlib import Path
from typing import Any

from sample_factory.algo.sampling.rollout_worker import RolloutWorker

from sf_explore_go.explorers.random import RandomExplorer

STALL = "STALL_WHEN_THERE_IS"  # variable with the path of a file

advance_rollouts = RolloutWorker.advance_rollouts


@functools.wraps(advance_rollouts)  # a message names the method that it is for
def lose_answers(worker: Any, split_idx: int, policy_id: int) -> None:
    """Stands where a rollout worker gets the actions that it has asked for."""
    if STALL not in os.environ or not Path(os.environ[STALL]).exists():  # tests import this module too
        advance_rollouts(worker, split_idx, policy_id)


RolloutWorker.advance_rollouts = lose_answers


class Stalling(RandomExplorer):
    """Random actions."""
