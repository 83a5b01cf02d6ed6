"""`sf-explore-go bench rooms`: steps of Four Rooms next to MiniGrid's own, with the same full observation."""

import argparse
import time
from typing import Any

import numpy as np

from sf_explore_go.bench.common import Row
from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.grid.four_rooms import FourRoomsEnv

STEPS, QUICK_STEPS = 20_000, 2_000
BLOCK = 500


def bench_rooms(options: argparse.Namespace) -> list[Row]:
    """19 x 19 cells, the same random actions; episodes that end are begun again, which is part of the work."""
    ours, theirs = FourRoomsEnv(grid_size=19), minigrids()
    row = Row("steps/s", [], [])
    for turn in range(options.turns):
        seconds = np.zeros(2)
        steps = QUICK_STEPS if options.quick else STEPS
        for block in range(steps // BLOCK):
            for arm in (0, 1) if block % 2 else (1, 0):
                seconds[arm] += time_steps((ours, theirs)[arm], seed=turn * steps + block)
        row.ours.append(steps / seconds[0])
        row.stock.append(steps / seconds[1])
    return [row]


def minigrids() -> Any:
    try:
        from minigrid.envs.fourrooms import FourRoomsEnv as MiniGridRooms
        from minigrid.wrappers import FullyObsWrapper
    except ImportError as error:
        raise UsageError("bench rooms: MiniGrid must be installed; run pip install minigrid==3.2.0") from error
    return FullyObsWrapper(MiniGridRooms())


def time_steps(env: Any, seed: int) -> float:
    actions = np.random.default_rng(seed).integers(3, size=BLOCK).tolist()
    env.reset(seed=seed)
    begin = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    return time.perf_counter() - begin
