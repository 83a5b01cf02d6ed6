"""`make demo`: build the scenario, play a few random episodes in real ViZDoom, and draw where they went."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sf_explore_go.arguments import ArgumentParser
from sf_explore_go.cli import run
from sf_explore_go.contexts import Context
from sf_explore_go.doom.env import Info, MyWayHomeEnv
from sf_explore_go.doom.mapview import save_map
from sf_explore_go.doom.scenario import ensure_wad, load_scenario
from sf_explore_go.errors import UsageError

FORWARD, STICKINESS = 3, 0.9
ACTION_ODDS = (0.0, 0.2, 0.2, 0.6, 0.0)  # mostly forward, so that the paths are worth seeing


def play(env: MyWayHomeEnv, context: Context, seed: int) -> list[Info]:
    """One episode of a random walk that mostly keeps its last action; the info of each step."""
    rng = np.random.default_rng(seed)
    _, info = env.reset(options={"context": context})
    infos, action, over = [info], FORWARD, False
    while not over:
        if rng.random() > STICKINESS:
            action = int(rng.choice(len(ACTION_ODDS), p=ACTION_ODDS))
        _, _, terminated, truncated, info = env.step(action)
        infos.append(info)
        over = terminated or truncated
    return infos


def path_of(infos: Sequence[Info]) -> NDArray[np.float64]:
    return np.array([info["position"] for info in infos])


def describe(infos: Sequence[Info]) -> str:
    end = "found the vest" if infos[-1]["success"] else "ran out of time"
    return f"  goal {infos[0]['goal']}: {end} after {len(infos) - 1} decisions"


def play_and_draw(episodes: int, picture: Path) -> None:
    scenario = load_scenario()
    for split in ("train", "test"):
        print(f"{split} maps: {ensure_wad(scenario, split)}")
    print(f"Playing {episodes} random episodes on the ten training contexts ...")
    begin = time.perf_counter()
    env = MyWayHomeEnv()
    try:
        contexts = env.contexts.contexts
        played = [play(env, contexts[episode % len(contexts)], seed=episode) for episode in range(episodes)]
    finally:
        env.close()
    seconds = time.perf_counter() - begin
    print("\n".join(describe(infos) for infos in played))
    print(f"{env.total_frames} frames in {seconds:.1f} s")
    picture.parent.mkdir(parents=True, exist_ok=True)
    starts = [(*infos[0]["position"], infos[0]["angle"], infos[0]["goal"]) for infos in played]
    save_map(picture, trajectories=[path_of(infos) for infos in played], starts=starts, title="Random episodes")
    print(f"Map with their paths: {picture}")


def main(argv: Sequence[str]) -> int:
    parser = ArgumentParser(prog="demo", description="Play a few random episodes and draw the map with their paths.")
    parser.add_argument("--episodes", type=int, default=5)
    parser.add_argument("--picture", type=Path, default=Path("demo_output/map.png"))
    options = parser.parse_args(argv)
    if options.episodes < 1:
        raise UsageError(f"--episodes={options.episodes}: allowed are whole numbers from 1")
    play_and_draw(options.episodes, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(run(main, sys.argv[1:]))
