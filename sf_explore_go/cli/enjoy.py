"""`sf-explore-go enjoy`: watch a trained agent, in a window or as a film with the map beside its view.

Episode i is the one that `evaluate` plays with the same seed. `--explore_steps` lets the run's explorer act first, as
in training; map and header show whose turn it is.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.cli.evaluate import find_checkpoints, load_config
from sf_explore_go.core.arguments import ArgumentParser, require_at_least
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.evaluation.player import Player
from sf_explore_go.explorers.base import resolve_explorer
from sf_explore_go.phases.schedule import Phase
from sf_explore_go.processes.console import NORMAL, set_up_console
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.pretrained import add_run_arguments, chosen_run
from sf_explore_go.worlds.registry import prepare_world, register_worlds, world_of

TICS_PER_SECOND = 35  # of Doom
Picture = Any  # uint8 array [height, width, RGB]


class Watched:
    """One environment and the policies that act in it."""

    def __init__(self, folder: Path, cfg: AttrDict, checkpoint: Path, *, greedy: bool, explore_steps: int) -> None:
        state = read_checkpoint(checkpoint, "cpu")
        config = AttrDict(worker_index=0, vector_index=0, env_id=0)
        self.cfg, self.explore_steps = cfg, explore_steps
        self.env: Any = make_env_func_non_batched(cfg, config, render_mode="rgb_array")
        self.agent = Player(cfg, self.env, state, greedy=greedy)
        self.explorer: Any = self._make_explorer(folder) if explore_steps else None

    def _make_explorer(self, folder: Path) -> Any:
        from sf_explore_go.cli.coverage import make_explorer

        name = "trained" if resolve_explorer(self.cfg.explorer).learned else self.cfg.explorer
        return make_explorer(name, folder, self.cfg, self.env)

    def episode(self, index: int, seed: int) -> Iterator[Picture]:
        """The frames of one episode, one per decision."""
        from sf_explore_go.reporting.film import PathMap, compose

        observations, infos = self.env.reset(seed=derive_seed(seed, "episode", index))
        obs, info = observations[0], infos[0]
        rng = np.random.default_rng(derive_seed(derive_seed(seed, "episode", index), "actions"))
        rnn_state = torch.zeros((1, self.agent.rnn_size))
        world = world_of(self.cfg.env)
        plan = PathMap(world.scenario, info["goal"]) if world.kind == "doom" else None
        if self.explorer is not None:
            self.explorer.begin(obs, derive_seed(seed, "explorer", index))
        step, ret, over = 0, 0.0, False
        while True:
            phase = Phase.EXPLORE if step < self.explore_steps else Phase.GO
            shown = None
            if plan is not None:
                plan.move(info["position"], Phase.EXPLORE if step <= self.explore_steps and step else phase)
                shown = plan.show(info["angle"], phase)
            yield compose(self.env.render(), shown, self._headline(index, info, step, ret, over), phase)
            if over:
                return
            if phase is Phase.EXPLORE:
                action = self.explorer.act(obs)
            else:
                actions, rnn_state = self.agent.act([obs], rnn_state, [rng.random()])
                action = actions[0]
            observations, rewards, terminated, truncated, infos = self.env.step([action])
            obs, info, over = observations[0], infos[0], bool(terminated[0] or truncated[0])
            step, ret = step + 1, ret + float(rewards[0])

    def _headline(self, index: int, info: dict[str, Any], step: int, ret: float, over: bool) -> str:
        where = f"goal {info['goal']}" if "goal" in info else f"context {info['context']}"
        end = (", goal reached" if info.get("success") else ", time is up") if over else ""
        return f"episode {index + 1}, {where}, decision {step}, return {ret:+.3f}{end}"


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go enjoy", description=__doc__.splitlines()[0])
    add_run_arguments(parser)
    parser.add_argument("--split", choices=("train", "test"), default="test", help="which contexts to play (test)")
    parser.add_argument("--episodes", type=int, default=3, help="how many (3)")
    parser.add_argument("--checkpoint", default="latest", help="latest, best or a file")
    parser.add_argument("--explore_steps", type=int, default=0, help="decisions that the explorer makes first (0)")
    parser.add_argument("--greedy", action="store_true", help="take the likeliest action instead of sampling")
    parser.add_argument("--eval_seed", type=int, default=0, help="fixes the episodes that are played (0)")
    parser.add_argument("--save_video", type=Path, help="write a film (.mp4 or .gif) instead of opening a window")
    parser.add_argument("--fps", type=int, help="decisions per second of film or window (twice as fast as in the game)")
    return parser


def default_fps(cfg: AttrDict) -> int:
    """Decisions per second: twice as fast as the game, whose clock ticks 35 times per second; 4 in a grid world."""
    return round(2 * TICS_PER_SECOND / cfg.env_frameskip) if world_of(cfg.env).kind == "doom" else 4


def has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def show_in_window(frames: Iterator[Picture], fps: int) -> int:
    """Until all is shown or someone presses q or Escape; returns the number of frames."""
    import cv2

    count = 0
    for frame in frames:
        cv2.imshow("sf-explore-go", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))
        count += 1
        if cv2.waitKey(max(1, 1000 // fps)) & 0xFF in (ord("q"), 27):
            break
    cv2.destroyAllWindows()
    return count


def check(args: Any) -> None:
    require_at_least(args, episodes=1, explore_steps=0)
    if args.fps is not None:
        require_at_least(args, fps=1)
    if args.checkpoint == "all":
        raise UsageError("--checkpoint=all: allowed are latest, best and a file")
    if args.save_video is not None:
        from sf_explore_go.reporting.film import check_video_path

        check_video_path(args.save_video)
    elif not has_display():
        raise UsageError("there is no display to open a window on; pass --save_video=FILE.mp4 or FILE.gif")


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    check(args)
    set_up_console(NORMAL)
    folder = chosen_run(args)
    cfg = load_config(folder)
    cfg = AttrDict(cfg | {"env": world_of(cfg.env).splits[args.split]})
    checkpoint = find_checkpoints(folder, args.checkpoint)[0]
    fps = args.fps or default_fps(cfg)
    prepare_world(cfg.env)
    register_worlds()
    torch.set_num_threads(1)
    watched = Watched(folder, cfg, checkpoint, greedy=args.greedy, explore_steps=args.explore_steps)
    seed = derive_seed(args.eval_seed, args.split)
    frames = (frame for index in range(args.episodes) for frame in watched.episode(index, seed))
    try:
        if args.save_video is None:
            show_in_window(frames, fps)
        else:
            from sf_explore_go.reporting.film import save_video

            count = save_video(args.save_video, frames, fps)
            print(f"{args.save_video}: {count} frames of {checkpoint.name}")
    finally:
        watched.env.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
