"""The curves that every training has: its episodes, its phases, its speed."""

import math
from typing import Any

from sf_explore_go.core.observers import Observer
from sf_explore_go.phases.schedule import AGENT
from sf_explore_go.training.explore_length import max_explore_steps


class Summaries(Observer):
    """Writes them whenever curves are due."""

    def extra_summaries(self, runner: Any, policy_id: int, writer: Any, env_steps: int) -> None:
        for tag, value in runner.episode_scalars(policy_id):
            writer.add_scalar(tag, value, env_steps)
        if policy_id == AGENT:
            self._write_run(runner, writer, env_steps)

    def _write_run(self, runner: Any, writer: Any, env_steps: int) -> None:
        frames = runner.frames
        writer.add_scalar("phases/explore_share", frames.explore / frames.total, env_steps)
        writer.add_scalar("phases/explore_frames", frames.explore, env_steps)
        writer.add_scalar("phases/go_frames", frames.go, env_steps)
        if runner.cfg.max_pure_expl_steps:
            longest = max_explore_steps(runner.cfg, runner.counter)
            writer.add_scalar("phases/max_explore_steps", longest, env_steps)
        fps = runner.frames_per_second
        if not math.isnan(fps):
            writer.add_scalar("perf/frames_per_second", fps, env_steps)
