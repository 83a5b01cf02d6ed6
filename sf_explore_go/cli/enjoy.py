"""`sf-explore-go enjoy`: watch a trained agent, in a window or as a film with the map beside its view.

Episode i is the one that `evaluate` plays with the same evaluation seed. `--explore_steps` lets the run's explorer act
first, as in training; map and header show whose turn it is.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.arguments import ArgumentParser, require_at_least
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.evaluation.arguments import add_greedy_arguments, is_greedy, load_config, splits
from sf_explore_go.evaluation.episodes import PlannedEpisode, plan_episodes
from sf_explore_go.evaluation.explore import TRAINED, make_explorer
from sf_explore_go.evaluation.q_player import make_agent
from sf_explore_go.explorers.registry import NONE
from sf_explore_go.offpolicy.arguments import is_dqn
from sf_explore_go.phases.schedule import Phase
from sf_explore_go.processes.console import NORMAL, set_up_console
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.folder import CONFIG
from sf_explore_go.runs.names import find_checkpoints
from sf_explore_go.runs.pretrained import add_run_arguments, chosen_run
from sf_explore_go.runs.resume import check_trusted
from sf_explore_go.training.environments import prepare_world, register_worlds
from sf_explore_go.worlds.registry import sibling, world_of

Picture = Any  # uint8 array [height, width, RGB]


class Watched:
    """One environment and the policies that act in it."""

    def __init__(
        self, folder: Path, cfg: AttrDict, checkpoint: Path, *, greedy: bool, explore_steps: int, explorer: str
    ) -> None:
        state = read_checkpoint(checkpoint, "cpu")
        config = AttrDict(worker_index=0, vector_index=0, env_id=0)
        self.cfg, self.explore_steps = cfg, explore_steps
        self.env: Any = make_env_func_non_batched(cfg, config, render_mode="rgb_array")
        self.agent = make_agent(cfg, self.env, state, greedy=greedy)
        self.explorer: Any = make_explorer(explorer, folder, cfg, self.env, "--explorer") if explore_steps else None

    def _map(self, info: dict[str, Any]) -> Any:
        """To show beside what the agent sees, in worlds that are seen from within; others show all there is."""
        from sf_explore_go.reporting.film import path_map

        return path_map(world_of(self.cfg.env), info.get("goal")) if "angle" in info else None

    def _view(self) -> Picture:
        try:
            picture = self.env.render()
        except NotImplementedError:
            picture = None
        if picture is None:
            raise UsageError(
                f"--env={self.cfg.env}: this world renders no pictures (rgb_array), so there is nothing to show"
            )
        return picture

    def episode(self, index: int, planned: PlannedEpisode) -> Iterator[Picture]:
        """The frames of one episode, one per decision."""
        from sf_explore_go.reporting.film import compose

        observations, infos = self.env.reset(seed=planned.seed, options=planned.options)
        obs, info = observations[0], infos[0]
        rng = np.random.default_rng(derive_seed(planned.seed, "actions"))
        rnn_state = torch.zeros((1, self.agent.rnn_size))
        plan = self._map(info)
        if self.explorer is not None:
            self.explorer.begin(0, obs, info, derive_seed(planned.seed, "explorer"))
        step, ret, over = 0, 0.0, False
        while True:
            phase = Phase.EXPLORE if step < self.explore_steps else Phase.GO
            shown = None
            if plan is not None:
                plan.move(info["position"], Phase.EXPLORE if step <= self.explore_steps and step else phase)
                shown = plan.show(info["angle"], phase)
            yield compose(self._view(), shown, self._headline(index, info, step, ret, over), phase)
            if over:
                return
            if phase is Phase.EXPLORE:
                (action,) = self.explorer.act([0], [obs], [info])
            else:
                actions, rnn_state = self.agent.act([obs], rnn_state, rng.random((1, self.agent.draws)))
                action = actions[0]
            observations, rewards, terminated, truncated, infos = self.env.step([action])
            obs, info, over = observations[0], infos[0], bool(terminated[0] or truncated[0])
            step, ret = step + 1, ret + float(rewards[0])

    def _headline(self, index: int, info: dict[str, Any], step: int, ret: float, over: bool) -> str:
        where = next((f", {name} {info[name]}" for name in ("goal", "context") if name in info), "")
        return f"episode {index + 1}{where}, decision {step}, return {ret:+.3f}{how_it_ended(info) if over else ''}"


def how_it_ended(info: dict[str, Any]) -> str:
    if info.get("engine_failed"):
        return ", the engine died"
    return ", goal reached" if info.get("success") else ", time is up"


def explorer_name(given: str | None, cfg: AttrDict, folder: Path) -> str:
    """Who explores: the one that the command line names, or the run's own.

    An explorer that is a policy acts through its weights, and none of its code is run. One that acts by itself is code:
    if it is not of this package, the run's configuration, which may come from elsewhere, is not enough to run it.
    """
    own = str(cfg.get("explorer"))
    if given is not None and given != own:
        return given
    if cfg.get("num_policies", 1) > 1 or is_dqn(cfg):
        return TRAINED
    check_trusted(cfg, {} if given is None else {"explorer": given}, folder / CONFIG)
    return own


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go enjoy", description=__doc__.splitlines()[0])
    add_run_arguments(parser)
    parser.add_argument("--split", default="test", help="which contexts to play: train, test or another (test)")
    parser.add_argument("--episodes", type=int, default=3, help="episodes to play (3)")
    parser.add_argument("--checkpoint", default="latest", help="latest, best or a file")
    parser.add_argument("--explore_steps", type=int, default=0, help="decisions that the explorer makes first (0)")
    parser.add_argument("--explorer", help="the explorer: trained, random, oracle or module:Class (the run's own)")
    add_greedy_arguments(parser)
    parser.add_argument("--eval_seed", type=int, default=0, help="seed; another one plays other episodes (0)")
    parser.add_argument("--save_video", type=Path, help="write a film (.mp4 or .gif) instead of opening a window")
    parser.add_argument("--fps", type=int, help="decisions per second of film or window (twice as fast as in the game)")
    return parser


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
        raise UsageError("--checkpoint=all: it must be latest, best or a file")
    if args.save_video is not None:
        from sf_explore_go.reporting.film import check_video_path

        check_video_path(args.save_video)
    elif not has_display():
        raise UsageError("there is no display for a window; pass --save_video=FILE.mp4 or FILE.gif")


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    check(args)
    set_up_console(NORMAL)
    folder = chosen_run(args)
    cfg = load_config(folder, args.env)
    (split,) = splits(cfg, args.split, several=False)
    cfg = AttrDict(cfg | {"env": sibling(cfg.env, split)})
    checkpoint = find_checkpoints(folder, args.checkpoint)[0]
    fps = args.fps or world_of(cfg.env).film_fps(cfg)
    explorer = explorer_name(args.explorer, cfg, folder) if args.explore_steps else NONE
    prepare_world(cfg.env)
    register_worlds(cfg.env)
    torch.set_num_threads(1)
    greedy = is_greedy(cfg) if args.greedy is None else args.greedy
    watched = Watched(folder, cfg, checkpoint, greedy=greedy, explore_steps=args.explore_steps, explorer=explorer)
    plan = plan_episodes(cfg, args.split, args.episodes, args.eval_seed)
    episodes = (watched.episode(index, planned) for index, planned in enumerate(plan))
    try:
        if args.save_video is None:
            show_in_window(chain.from_iterable(episodes), fps)
        else:
            from sf_explore_go.reporting.film import save_video

            count = save_video(args.save_video, episodes, fps)
            print(f"{args.save_video}: {count} frames of {checkpoint.name}")
    finally:
        watched.env.close()
    return 0
