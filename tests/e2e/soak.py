"""A long run under watch: `python -m tests.e2e.soak --minutes=30 --folder=DIR [-- flags of train]`.

Trains My Way Home in parallel with an explore phase and samples the memory of the whole process tree. Prints one line
of JSON: growth of memory after the warm-up, errors in the log, what was left behind. Exit status 1 if any is wrong.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil

from sf_explore_go.training.memory import tree_memory

SAMPLE_SECONDS = 5.0
LONG, SHORT = 0.05, 0.10  # allowed growth; a short run has fewer samples, which scatter by a few per cent


def watch(process: subprocess.Popen) -> tuple[list[tuple[float, int]], set[int]]:
    """Samples (seconds, bytes) until the process ends, and every process id that was ever in its tree."""
    start, samples, members = time.time(), [], set()
    root = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            members |= {child.pid for child in root.children(recursive=True)}
            samples.append((time.time() - start, tree_memory(root)))
        except psutil.Error:
            break
        time.sleep(SAMPLE_SECONDS)
    return samples, members


def growth(samples: list[tuple[float, int]], seconds: float) -> float:
    """Largest memory of the last tenth of the run against the largest at the end of the warm-up, as a ratio - 1.

    The warm-up is the first sixth, 5 minutes of 30, and at least 90 seconds.
    """
    warm_up = max(90.0, seconds / 6)
    warm = [m for t, m in samples if warm_up / 2 <= t <= warm_up]
    late = [m for t, m in samples if seconds * 0.85 <= t <= seconds * 0.97]
    return max(late) / max(warm) - 1


def left_behind(members: set[int]) -> list[str]:
    alive = []
    for pid in members:
        try:
            member = psutil.Process(pid)
            if member.status() != psutil.STATUS_ZOMBIE:
                alive.append(f"{pid} {member.name()}")
        except psutil.NoSuchProcess:
            continue
    return alive


def soak(folder: Path, minutes: float, flags: list[str]) -> dict:
    """One watched run; the folder keeps its log."""
    seconds = int(minutes * 60)
    command = [
        sys.executable, "-m", "sf_explore_go", "train", "--env=my_way_home_train", "--preset=laptop",
        "--max_pure_expl_steps=200", "--explorer=random", f"--train_for_seconds={seconds}", "--seed=0",
        "--train_for_env_steps=10000000000", f"--train_dir={folder}", "--experiment=soak", *flags,
    ]  # fmt: skip
    with (folder / "soak.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        samples, members = watch(process)
    time.sleep(3)
    text = (folder / "soak.log").read_text()
    return {
        "status": process.returncode,
        "seconds": round(samples[-1][0]),
        "memory_mib": round(max(m for _, m in samples) / 2**20),
        "growth": round(growth(samples, seconds), 4),
        "errors": [line for line in text.splitlines() if re.search(r"error|exception|traceback|lost|full", line, re.I)][
            :5
        ],
        "left": left_behind(members),
        "last_line": text.strip().splitlines()[-1],
        "samples": [(round(t), round(m / 2**20)) for t, m in samples[:: max(1, len(samples) // 60)]],
    }


def is_sound(result: dict, growth_allowed: float) -> bool:
    return result["status"] == 0 and not result["errors"] and not result["left"] and result["growth"] <= growth_allowed


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--folder", type=Path, required=True)
    args, flags = parser.parse_known_args(argv)
    args.folder.mkdir(parents=True, exist_ok=True)
    result = soak(args.folder, args.minutes, [flag for flag in flags if flag != "--"])
    print(json.dumps(result))
    return 0 if is_sound(result, LONG) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
