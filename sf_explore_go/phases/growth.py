"""How K grows over a training (`--explore_schedule`).

Explore-Go draws k ~ Uniform{0, ..., K} with the same K from the first episode to the last: `constant`. The other two
are ours, not the paper's. They leave the agent its own episodes first, as long as it cannot solve them:

* `linear`: K(t) grows in a straight line from 0 to K between two shares of the budget of frames.
* `success`: K(t) is 0 until the agent solves enough of its training episodes, and K from then on.

In both k ~ Uniform{0, ..., K(t)}, with the K(t) of the moment at which the episode begins.
"""

from collections.abc import Sequence

CONSTANT, LINEAR, SUCCESS = "constant", "linear", "success"
SCHEDULES = (CONSTANT, LINEAR, SUCCESS)


def ramped(max_steps: int, share: float, begin: float, end: float) -> int:
    """K(t) of `linear` when `share` of the budget is used: the line from 0 to `max_steps`, to the nearest whole number.

    With `begin` equal to `end` it is a step.
    """
    if share >= end:
        return max_steps
    if share <= begin:
        return 0
    return round(max_steps * (share - begin) / (end - begin))


def solved(successes: Sequence[float], episodes: int, share: float) -> bool:
    """Whether there are so many training episodes (1.0 for each that succeeded), and this share of them succeeded."""
    return len(successes) >= episodes and sum(successes) / len(successes) >= share
