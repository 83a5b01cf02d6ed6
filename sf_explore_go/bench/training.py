"""`sf-explore-go bench training`: whole trainings of My Way Home, ours next to stock Sample Factory.

Explore-Go trains two agents, but every frame is learned from once, by one of them; so it should cost what one costs.
Arms take turns, each training runs in processes of its own, and every turn gives one ratio to stock with one policy.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from sf_explore_go.bench.common import Row
from sf_explore_go.training.shared_memory import MIB

SECONDS, QUICK_SECONDS = 30, 15  # measured of each training; learners count frames in lumps of some seconds
STOCK = "stock"
NEVER = 10**12
WORKERS = 2  # of `growth`
NESTED = ("cores", "statistics")  # results that are not one number
LONGEST_START = 300.0  # seconds until a training must have been measured, beside the measuring


@dataclass(frozen=True)
class Arm:
    kind: str  # of bench_arm
    flags: tuple[str, ...]


ARMS = {
    STOCK: Arm("stock1", ("--max_pure_expl_steps=0",)),
    "stock x 2": Arm("stock2", ("--max_pure_expl_steps=0",)),
    "K = 0": Arm("ours", ("--max_pure_expl_steps=0",)),
    # K as the preset has it: 800 tics, which are 200 decisions of the paper's 4 tics or 100 of the laptop's 8
    "random": Arm("ours", ("--explorer=random",)),
    "sticky": Arm("ours", ("--explorer=sticky",)),
    "E3B": Arm("ours", ("--explorer=e3b",)),
}
PRESETS = ("laptop", "paper")


def bench_training(options: argparse.Namespace) -> list[Row]:
    rows = []
    for preset in PRESETS[: 1 if options.quick else None]:
        results = measure(preset, *((1, QUICK_SECONDS) if options.quick else (options.turns, SECONDS)))
        print(format_results(preset, results), flush=True)
        rows += [row_of(f"{preset} {name}", results[name], results[STOCK]) for name in ARMS if name != STOCK]
    return rows


def measure(preset: str, turns: int, seconds: float) -> dict[str, list[dict[str, Any]]]:
    """arm -> what was measured, for each turn. The order of the arms moves on with every turn."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in ARMS}
    names = list(ARMS)
    for turn in range(turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            results[name].append(measure_arm(ARMS[name], preset, turn, seconds))
    return results


def measure_arm(arm: Arm, preset: str, seed: int, seconds: float, *flags: str) -> dict[str, Any]:
    words = ("--env=my_way_home_train", f"--preset={preset}", f"--seed={seed}", *arm.flags, *flags)
    return train_apart("arm", arm.kind, seconds, LONGEST_START, words)


def train_apart(module: str, kind: str, seconds: float, patience: float, flags: Sequence[str]) -> dict[str, Any]:
    """One training without end under a meter of this folder (`module`), in processes of its own; what that wrote."""
    with tempfile.TemporaryDirectory() as folder:
        target, log = Path(folder) / "result.json", Path(folder) / "log"
        words = [
            sys.executable, "-m", f"sf_explore_go.bench.{module}", kind, str(seconds), str(time.time()), str(target),
            f"--train_dir={folder}", "--experiment=run", f"--train_for_env_steps={NEVER}", *flags,
        ]  # fmt: skip
        with log.open("w") as file:
            process = subprocess.Popen(words, stdout=file, stderr=file, stdin=subprocess.DEVNULL)
            try:
                status = process.wait(seconds + patience)
            except subprocess.TimeoutExpired:  # stock Sample Factory waits without end for workers that failed
                end_family(process.pid)
                status = process.wait()
        if status != 0 or not target.exists():
            raise RuntimeError(f"{' '.join(words)} ended with {status}:\n{log.read_text()[-2000:]}")
        result: dict[str, Any] = loads(target.read_text())
        return result


def end_family(pid: int) -> None:
    parent = psutil.Process(pid)
    for process in [*parent.children(recursive=True), parent]:
        with contextlib.suppress(psutil.Error):
            process.kill()


def row_of(name: str, ours: Sequence[dict], stock: Sequence[dict]) -> Row:
    our_rates, stock_rates = ([turn["frames_per_second"] for turn in arm] for arm in (ours, stock))
    return Row(name, our_rates, stock_rates, detail={"ours": list(ours), "stock": list(stock)})


# --- how cost grows ---------------------------------------------------------------------------------------------------

AS_IT_IS = "as it is"  # 128 environments, K = 100, rollouts of 32 steps, 128 features
GROWTH: dict[
    str, dict[int, tuple[str, ...]]
] = {  # what is varied -> value -> flags, on top of the laptop preset with E3B
    "environments": {n: (f"--num_envs_per_worker={n // WORKERS}",) for n in (8, 32, 64)},
    "K": {k: (f"--max_pure_expl_steps={k}",) for k in (0, 50, 200)},
    "rollout": {t: (f"--rollout={t}",) for t in (16, 64, 128)},
    "features": {d: ("--encoder_conv_mlp_layers", str(d)) for d in (256, 512, 1024)},
}


def bench_growth(options: argparse.Namespace) -> list[Row]:
    """Frames per second, memory and time to the first step, one thing varied at a time; stock is the plain preset."""
    arm = ARMS["E3B"]
    seconds = QUICK_SECONDS if options.quick else SECONDS
    varied = {"environments": {8: GROWTH["environments"][8]}} if options.quick else GROWTH
    rows = []
    for turn in range(1 if options.quick else options.turns):
        preset = measure_arm(arm, "laptop", turn, seconds, f"--num_workers={WORKERS}")
        rows.append(row_of(AS_IT_IS, [preset], [preset]))
        for what, values in varied.items():
            for value, flags in values.items():
                result = measure_arm(arm, "laptop", turn, seconds, f"--num_workers={WORKERS}", *flags)
                rows.append(row_of(f"{what} {value}", [result], [preset]))
    merged = merge(rows)
    print(format_growth(merged), flush=True)
    return merged


def merge(rows: Sequence[Row]) -> list[Row]:
    """Turns of the same quantity as one row."""
    merged: dict[str, Row] = {}
    for row in rows:
        if row.quantity not in merged:
            merged[row.quantity] = row
            continue
        first = merged[row.quantity]
        detail = {arm: first.detail[arm] + row.detail[arm] for arm in ("ours", "stock")}
        merged[row.quantity] = Row(row.quantity, first.ours + row.ours, first.stock + row.stock, detail)
    return list(merged.values())


def format_growth(rows: Sequence[Row]) -> str:
    lines = [
        f"{'growth':<18}{'frames/s':>10}{'memory GB':>11}{'estimate':>10}{'shared MB':>11}{'estimate':>10}"
        f"{'first step s':>14}"
    ]
    for row in rows:
        turns = row.detail["ours"]
        medians = {key: float(np.median([turn[key] for turn in turns])) for key in turns[0] if key not in NESTED}
        lines.append(
            f"{row.quantity:<18}{medians['frames_per_second']:>10.0f}"
            f"{medians['memory'] / 2**30:>11.2f}{medians['memory_estimate'] / 2**30:>10.2f}"
            f"{medians['shared_memory'] / MIB:>11.0f}{medians['shared_memory_estimate'] / MIB:>10.0f}"
            f"{medians['first_step_seconds']:>14.1f}"
        )
    return "\n".join(lines) + "\n"


# --- the table --------------------------------------------------------------------------------------------------------


def statistic(turns: Sequence[dict], name: str) -> str:
    """Median over turns, for each policy that has it."""
    policies = sorted({policy for turn in turns for policy in turn["statistics"]})
    shown = []
    for policy in policies:
        values = [turn["statistics"].get(policy, {}).get(name) for turn in turns]
        known = [value for value in values if value is not None]
        if known:
            shown.append(f"{np.median(known):.1f}")
    return " / ".join(shown) or "-"


def wasted(turns: Sequence[dict]) -> float:
    """Share of the samples in batches that may not be learned from."""
    shares = [1 - s["valids_fraction"] for turn in turns for s in turn["statistics"].values() if "valids_fraction" in s]
    return float(np.mean(shares)) if shares else 0.0


def format_results(preset: str, results: dict[str, list[dict[str, Any]]]) -> str:
    def median(name: str, key: str) -> float:
        return float(np.median([turn[key] for turn in results[name]]))

    lines = [
        f"{preset:<11}{'frames/s':>9}{'spread':>15}{'samples/s':>11}{'wasted':>8}{'updates/s':>11}{'lag':>12}"
        f"{'lag, waited':>13}{'memory GB':>11}{'first step s':>14}"
    ]
    for name, turns in results.items():
        rates = [turn["frames_per_second"] for turn in turns]
        lines.append(
            f"{name:<11}{np.median(rates):>9.0f}{f'{min(rates):.0f} to {max(rates):.0f}':>15}"
            f"{median(name, 'samples_per_second'):>11.0f}{wasted(turns):>8.1%}"
            f"{median(name, 'updates_per_second'):>11.1f}"
            f"{statistic(turns, 'version_diff_avg'):>12}{statistic(turns, 'version_diff_waited'):>13}"
            f"{median(name, 'memory') / 2**30:>11.2f}{median(name, 'first_step_seconds'):>14.1f}"
        )
    kinds = sorted({kind for turns in results.values() for turn in turns for kind in turn["cores"]})
    lines.append(f"\n{'cores used':<11}" + "".join(f"{kind:>11}" for kind in kinds) + f"   of {os.cpu_count()}")
    for name, turns in results.items():
        cores = (float(np.median([turn["cores"].get(kind, 0.0) for turn in turns])) for kind in kinds)
        lines.append(f"{name:<11}" + "".join(f"{value:>11.2f}" for value in cores))
    return "\n".join(lines) + "\n"
