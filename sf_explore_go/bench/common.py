"""`sf-explore-go bench`: speed next to stock Sample Factory, measured side by side in one run.

Machines differ and are rarely idle, so what counts is the ratio: the arms take turns, many times, and every turn gives
one ratio. A benchmark is a function that returns rows; adding one is a function and a line in `BENCHMARKS`.
"""

import argparse
import contextlib
import importlib
import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sf_explore_go.core.arguments import ArgumentParser, require_at_least
from sf_explore_go.core.errors import UsageError

STOCK_ENV = "doom_my_way_home_flat_actions"
DECISIONS, RESETS = 100, 10  # per block

Measure = Callable[[Any, int], tuple[int, float]]  # (environment, seed) -> (how many, seconds)


@dataclass(frozen=True)
class Row:
    """One quantity of both arms, in units per second, a number per turn."""

    quantity: str
    ours: list[float]
    stock: list[float]
    detail: dict[str, Any] = field(default_factory=dict)  # whatever else was measured, for the JSON file

    @property
    def ratios(self) -> list[float]:
        return [ours / stock for ours, stock in zip(self.ours, self.stock, strict=True)]


# --- the environment --------------------------------------------------------------------------------------------------


def bench_env(options: argparse.Namespace) -> list[Row]:
    """Decisions and resets per second: 128x72 from 160x120, frameskip 4, the same random actions for both."""
    blocks = 4 if options.quick else 40
    decisions, unseen, resets = (Row(name, [], []) for name in ("decisions/s", "unseen decisions/s", "resets/s"))
    with _elsewhere(), contextlib.closing(_our_env()) as ours, contextlib.closing(_stock_env()) as stock:
        for env in (ours, stock):
            env.reset(seed=0)
            _time_decisions(env, 0)
        for turn in range(options.turns):
            _take_turn(decisions, ours, stock, _time_decisions, blocks, seed=turn)
            _take_turn(unseen, ours, stock, _time_unseen, blocks, seed=turn)
            _take_turn(resets, ours, stock, _time_resets, blocks, seed=turn)
    return [decisions, unseen, resets]


def _take_turn(row: Row, ours: Any, stock: Any, measure: Measure, blocks: int, seed: int) -> None:
    """The arms change places after every block, a few hundredths of a second, so that load from outside meets both."""
    made, seconds = np.zeros(2), np.zeros(2)
    for block in range(blocks):
        for arm in (0, 1) if block % 2 else (1, 0):
            did, took = measure((ours, stock)[arm], seed * blocks + block)
            made[arm] += did
            seconds[arm] += took
    for values, rate in zip((row.ours, row.stock), made / seconds, strict=True):
        values.append(float(rate))


def _our_env() -> Any:
    from sf_explore_go.worlds.doom.env import MyWayHomeEnv

    return MyWayHomeEnv(num_contexts=0, pixel_format="CHW")  # every reset has another goal, hence another map


def _stock_env() -> Any:
    from sample_factory.utils.utils import log
    from sf_examples.vizdoom.doom.doom_params import default_doom_cfg
    from sf_examples.vizdoom.doom.doom_utils import make_doom_env

    log.setLevel(logging.WARNING)
    return make_doom_env(STOCK_ENV, default_doom_cfg(env=STOCK_ENV), None)


def _time_decisions(env: Any, seed: int) -> tuple[int, float]:
    """A short episode, since what a start looks at changes the time to draw it; the reset is not timed."""
    actions = np.random.default_rng(seed).integers(env.action_space.n, size=DECISIONS)
    env.reset()
    begin = time.perf_counter()
    return _play(env, actions), time.perf_counter() - begin


def _time_unseen(env: Any, seed: int) -> tuple[int, float]:
    """The same while nobody looks, which stock's environment takes no notice of."""
    env.unwrapped.unseen = True
    try:
        return _time_decisions(env, seed)
    finally:
        env.unwrapped.unseen = False


def _play(env: Any, actions: Iterable[int]) -> int:
    """Number of decisions made: fewer than wanted where a random walk finds the vest."""
    made = 0
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        made += 1
        if terminated or truncated:
            break
    return made


def _time_resets(env: Any, seed: int) -> tuple[int, float]:
    begin = time.perf_counter()
    for _ in range(RESETS):
        env.reset()
    return RESETS, time.perf_counter() - begin


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """Stock Sample Factory's engine writes into the working directory."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield


# --- the verb ---------------------------------------------------------------------------------------------------------


def later(module: str, function: str) -> Callable[[argparse.Namespace], list[Row]]:
    """A benchmark of a module that takes Row from here, and that is loaded only when it is asked for."""

    def run(options: argparse.Namespace) -> list[Row]:
        rows: list[Row] = getattr(importlib.import_module(f"sf_explore_go.bench.{module}"), function)(options)
        return rows

    return run


BENCHMARKS: dict[str, Callable[[argparse.Namespace], list[Row]]] = {
    "env": bench_env,
    "rooms": later("rooms", "bench_rooms"),
    "e3b": later("e3b", "bench_e3b"),
    "training": later("training", "bench_training"),
    "growth": later("training", "bench_growth"),
    "solve": later("solve", "bench_solve"),
    "evaluate": later("evaluation", "bench_evaluate"),
    "background": later("evaluation", "bench_background"),
}
ONLY_IF_NAMED = ("growth", "solve")  # half an hour and more
STOCK = {  # what the other arm is
    "env": "stock Sample Factory",
    "rooms": "MiniGrid's own Four Rooms",
    "e3b": "the published per-step update",
    "training": "Sample Factory's own training with one policy",
    "growth": "the laptop preset with E3B as it is",
    "solve": "the arm that the row names; labyrinths learned",
    "evaluate": "one environment in a plain loop",
    "background": "the same training without evaluation beside it",
}


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="sf-explore-go bench", description="Measure speed as ratios, with both sides in the same run."
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"which benchmarks: {', '.join(BENCHMARKS)} (all but {', '.join(ONLY_IF_NAMED)})",
    )
    parser.add_argument("--turns", type=int, default=5, help="how often the arms take turns (5)")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the work, in 5 minutes: shows that it runs, not how fast"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all numbers to this file")
    return parser


def format_table(name: str, rows: Sequence[Row]) -> str:
    width = max(14, *(len(row.quantity) + 2 for row in rows))
    lines = [f"{name:<{width}}{'ours':>10}{'stock':>10}{'ours/stock':>13}   of each turn"]
    for row in rows:
        ours, stock, ratio = (float(np.median(values)) for values in (row.ours, row.stock, row.ratios))
        spread = f"{min(row.ratios):.3f} to {max(row.ratios):.3f}"
        shown = "".join(f"{value:>10.0f}" if value >= 10 else f"{value:>10.2f}" for value in (ours, stock))
        lines.append(f"{row.quantity:<{width}}{shown}{ratio:>13.3f}   {spread}")
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        raise UsageError(f"bench {unknown[0]}: it must be one of {', '.join(BENCHMARKS)}")
    require_at_least(options, turns=1)
    target = options.json.absolute() if options.json else None
    if target and not target.parent.is_dir():
        raise UsageError(f"--json={options.json}: the folder {target.parent} does not exist")
    results = {}
    for name in options.names or [name for name in BENCHMARKS if name not in ONLY_IF_NAMED]:
        rows = BENCHMARKS[name](options)
        results[name] = [asdict(row) | {"median_ratio": float(np.median(row.ratios))} for row in rows]
        print(format_table(name, rows) + f"\nmedians of {len(rows[0].ours)} turns; stock is {STOCK[name]}")
    if target:
        target.write_text(json.dumps(results, indent=2) + "\n")
    return 0
