"""One training until it has learned: `python -m sf_explore_go.bench.solving KIND LIMIT BEGUN FILE FLAGS...`

KIND is `ours` or `stock1` (bench/arm.py). The judge looks at the training's own episodes, which play the training
contexts from their start as long as nobody explores: once enough of the last ones have succeeded, or LIMIT seconds have
passed since BEGUN, it writes its numbers as JSON to FILE and ends the process.
"""

import json
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from sample_factory.algo.utils.misc import EPISODIC

from sf_explore_go.bench.arm import FrameMeter, end_at_once, train_under

SOLVED = 0.95  # success
LOOK_SECONDS = 0.5
POINT_SECONDS = 10.0  # between two points of the curve


class Judge:
    """Looks at a running training from a thread of its main process."""

    def __init__(self, runner: Any, limit: float, begun: float, target: Path) -> None:
        self.runner, self.limit, self.begun, self.target = runner, limit, begun, target
        self.frames = FrameMeter(runner)
        # Two episodes of every environment: before so many have ended, those that run out of time have too. With
        # fewer, the first to end would be the lucky ones.
        self.last: deque[float] = deque(maxlen=2 * runner.cfg.num_workers * runner.cfg.num_envs_per_worker)
        self.curve: list[tuple[float, int, float]] = []  # seconds, frames, success
        runner.policy_msg_handlers.setdefault(EPISODIC, []).append(self._on_episode)

    def _on_episode(self, _: Any, message: dict, policy_id: int) -> None:
        extra = message[EPISODIC].get("episode_extra_stats", {})
        if "success" in extra:
            self.last.append(float(extra["success"]))

    def success(self) -> float:
        """Of the last episodes; 0 before there are enough."""
        last = list(self.last)
        return sum(last) / len(last) if len(last) == self.last.maxlen else 0.0

    def run(self) -> None:
        while self.success() < SOLVED and time.time() - self.begun < self.limit:
            time.sleep(LOOK_SECONDS)
            if not self.curve or time.time() - self.begun - self.curve[-1][0] >= POINT_SECONDS:
                self._note()
        self._note()
        self.target.write_text(json.dumps(self.result()))
        end_at_once(self.runner)

    def _note(self) -> None:
        self.curve.append((time.time() - self.begun, self.frames.total(), self.success()))

    def result(self) -> dict[str, Any]:
        seconds, frames, success = self.curve[-1]
        return {"solved": success >= SOLVED, "seconds": seconds, "frames": frames, "curve": self.curve}


if __name__ == "__main__":
    sys.exit(train_under(Judge, sys.argv[1:]))
