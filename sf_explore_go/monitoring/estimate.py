"""Warns of a run that will take more than a day: before it starts, if flags show it, and once its speed is known."""

import math
from typing import Any

from sf_explore_go.core.machine import cores as cores_here
from sf_explore_go.monitoring.progress import duration, seconds_left
from sf_explore_go.worlds.registry import world_of

DAY = 86400.0
MEASURE_SECONDS = 60.0  # of training, before its speed counts as known
# What one core of a machine without a GPU makes with E3B: docs/performance.md, half of what two make, rounded.
FRAMES_PER_SECOND_AND_CORE = {"paper": 900, "laptop": 7_000}


def long_by_preset(cfg: Any, frames: int, cores: int | None = None) -> str | None:
    """A sentence if the flags alone say that a run which has `frames` already takes more than a day; else None."""
    if cfg.device != "cpu" or cfg.preset not in FRAMES_PER_SECOND_AND_CORE:
        return None
    each, cores = FRAMES_PER_SECOND_AND_CORE[cfg.preset], cores or cores_here()
    left = seconds_left(frames, cfg.train_for_env_steps, each * cores, 0.0, cfg.train_for_seconds)
    if left <= DAY:
        return None
    return (
        f"{cfg.train_for_env_steps - frames:,} frames take about {duration(left)} here: without a GPU a core makes"
        f" about {each:,} frames/s with --preset={cfg.preset}, and this machine has {cores};"
        f" {advice(cfg, frames, each * cores)}"
    )


def long_by_speed(cfg: Any, frames: int, frames_per_second: float, seconds: float) -> str | None:
    """The same from the speed that was measured over the first `seconds` of this command."""
    left = seconds_left(frames, cfg.train_for_env_steps, frames_per_second, seconds, cfg.train_for_seconds)
    if math.isnan(left) or left <= DAY:
        return None
    return (
        f"at {frames_per_second:,.0f} frames/s the remaining {cfg.train_for_env_steps - frames:,} frames take about"
        f" {duration(left)}; {advice(cfg, frames, frames_per_second)}"
    )


def advice(cfg: Any, frames: int, frames_per_second: float) -> str:
    """What to pass instead: a budget that fits into a day, and the preset for small machines where there is one."""
    day = two_digits(frames + DAY * frames_per_second)
    smaller = "laptop" in world_of(cfg.env).presets and cfg.preset != "laptop"
    other = "--preset=laptop with another --experiment, or " if smaller else ""
    return f"to finish sooner, pass {other}--train_for_env_steps={day}, which takes about a day"


def two_digits(number: float) -> int:
    """Rounded down, so that a person can read it: 161 784 000 becomes 160 000 000."""
    unit = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return int(number // unit * unit)
