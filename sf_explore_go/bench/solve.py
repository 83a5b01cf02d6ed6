"""`sf-explore-go bench solve`: minutes until an agent has learned the small labyrinth.

Frames per second say how fast a training runs, not how soon it is done. Here every training goes on until 0.95 of its
episodes succeed (bench/solving.py): the laptop preset, the preset that it replaced, and stock Sample Factory with its
own Doom settings at the same picture size and frameskip. Nobody explores (K = 0), so that the training's own episodes
are the measure. A turn is a seed, and a training that takes longer than the limit counts with the limit.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from sf_explore_go.bench.common import Row
from sf_explore_go.bench.training import Arm, train_apart

LIMIT, QUICK_LIMIT = 30 * 60.0, 45.0  # seconds
LATE = 120.0  # seconds after its limit in which a training must have ended
NOW, BEFORE, STOCK = "laptop preset", "the one before", "stock"

ARMS = {
    NOW: Arm("ours", ()),
    BEFORE: Arm("ours", ("--fast_pictures=False",)),
    # sf_examples/vizdoom, with the paper's environments per worker
    STOCK: Arm(
        "stock1",
        (
            "--encoder_conv_architecture=convnet_simple", "--encoder_conv_mlp_layers", "512", "--rnn_size=512",
            "--num_envs_per_worker=16", "--batch_size=1024", "--num_batches_per_epoch=1", "--num_epochs=1",
            "--learning_rate=1e-4", "--ppo_clip_ratio=0.1", "--ppo_clip_value=0.2", "--force_envs_single_thread=False",
            "--fast_pictures=False",
        ),
    ),
}  # fmt: skip


def bench_solve(options: argparse.Namespace) -> list[Row]:
    """How many labyrinths an hour: ours is today's preset, and every other arm is stock to it."""
    turns, limit = (1, QUICK_LIMIT) if options.quick else (options.turns, LIMIT)
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in ARMS}
    names = list(ARMS)
    for turn in range(turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            results[name].append(solve(ARMS[name], turn, limit))
            print(f"{name}, seed {turn}: {sentence(results[name][-1])}", flush=True)
    print(format_results(results), flush=True)
    return [row_of(name, results[NOW], results[name]) for name in (BEFORE, STOCK)]


def solve(arm: Arm, seed: int, limit: float) -> dict[str, Any]:
    words = ("--env=my_way_home_small_train", "--preset=laptop", f"--seed={seed}", "--max_pure_expl_steps=0")
    return train_apart("solving", arm.kind, limit, LATE, (*words, "--milestone_step_freq=0", *arm.flags))


def sentence(result: Mapping[str, Any]) -> str:
    minutes, frames = result["seconds"] / 60, result["frames"] / 1e6
    success = result["curve"][-1][2]
    what = "learned in" if result["solved"] else f"given up at {success:.2f} after"
    return f"{what} {minutes:.1f} minutes, {frames:.1f} M frames"


def format_results(results: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    lines = [f"{'':<16}{'learned':>10}{'minutes (median)':>18}{'M frames':>10}{'frames/s':>10}"]
    for name, runs in results.items():
        solved = sum(run["solved"] for run in runs)
        minutes, frames, speed = (
            statistics.median(values)
            for values in (
                [run["seconds"] / 60 for run in runs],
                [run["frames"] / 1e6 for run in runs],
                [run["frames"] / run["seconds"] for run in runs],
            )
        )
        lines.append(f"{name:<16}{f'{solved} of {len(runs)}':>10}{minutes:>18.1f}{frames:>10.1f}{speed:>10.0f}")
    return "\n".join(lines)


def row_of(name: str, ours: Sequence[dict[str, Any]], stock: Sequence[dict[str, Any]]) -> Row:
    our_rates, stock_rates = ([3600 / run["seconds"] for run in arm] for arm in (ours, stock))
    return Row(f"an hour, next to {name}", our_rates, stock_rates, detail={"ours": list(ours), "stock": list(stock)})
