"""The K of a run as it stands (`--explore_schedule`), and when it begins.

Every process reads it from the shared frame counter, so all of them agree without a message. Rollout workers ask at the
start of each episode.
"""

from typing import Any

from sample_factory.utils.utils import log

from sf_explore_go.phases.growth import LINEAR, SUCCESS, ramped, solved
from sf_explore_go.phases.schedule import AGENT
from sf_explore_go.training.accounting import FrameCounter


def max_explore_steps(cfg: Any, frames: FrameCounter) -> int:
    """The longest explore phase that an episode that begins now can have, in decisions."""
    longest = int(cfg.max_pure_expl_steps)
    if cfg.explore_schedule == LINEAR:
        return ramped(longest, frames.total() / cfg.train_for_env_steps, *cfg.explore_ramp)
    if cfg.explore_schedule == SUCCESS and frames.explore_began is None:
        return 0
    return longest


def begin_exploring_if_solved(runner: Any) -> None:
    """Called when a round of the agent's episodes is complete. A full window of them must succeed often enough, since
    the mean of the first few is that of chance. Once explore phases have begun they stay."""
    cfg = runner.cfg
    if cfg.max_pure_expl_steps == 0 or cfg.explore_schedule != SUCCESS:
        return
    frames = runner.buffer_mgr.frames
    if frames.explore_began is not None:
        return
    if "success" not in runner.policy_avg_stats:
        runner.end_because(
            f"--explore_schedule={SUCCESS}: the episodes of --env={cfg.env} do not report success; `info` must have"
            " `success` at their end"
        )
        return
    successes = runner.policy_avg_stats["success"][AGENT]
    if solved(successes, successes.maxlen, cfg.explore_when):
        frames.note_explore_began()
        log.info("Training success has reached %g at %d frames: exploring", cfg.explore_when, frames.explore_began)
