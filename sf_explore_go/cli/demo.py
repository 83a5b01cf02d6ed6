"""`make demo`: build, train, evaluate and draw in half an hour, without a GPU.

Build the scenario and draw it with a few random episodes; train the illustrative CMDP in both arms, evaluate and draw
the curves; then the same with the small My Way Home. Everything goes through the command line that users have.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sf_explore_go.core.arguments import ArgumentParser, require_at_least
from sf_explore_go.core.contexts import Context
from sf_explore_go.core.errors import UsageError, run
from sf_explore_go.runs.scores import EVALUATION, read_scores
from sf_explore_go.worlds.doom.env import Info, MyWayHomeEnv
from sf_explore_go.worlds.doom.mapview import save_map
from sf_explore_go.worlds.doom.scenario import ensure_wad, load_scenario

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
    paths = [path_of(infos) for infos in played]
    save_map(picture, scenario, trajectories=paths, starts=starts, title="Random episodes")
    print(f"Map with their paths: {picture}")


def command(log: Path, *argv: str) -> str:
    """Run one of our verbs; its output goes to the log and is returned."""
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "sf_explore_go", *argv]
    with log.open("a+") as file:
        begin = file.tell()
        status = subprocess.run(words, stdout=file, stderr=file, stdin=subprocess.DEVNULL, check=False)
        file.seek(begin)
        output = file.read()
    if status.returncode != 0:
        raise UsageError(f"`sf-explore-go {' '.join(argv)}` ended with status {status.returncode}; see its log, {log}")
    return output


def train_and_evaluate(runs: Path, name: str, train_flags: Sequence[str], evaluate_flags: Sequence[str]) -> None:
    """One run and its evaluation. A demo that was stopped goes on; one that has ended is not repeated."""
    if (runs / name / EVALUATION).is_file():
        print(f"  {name}: already done")
        return
    begin = time.perf_counter()
    where, log = (f"--train_dir={runs}", f"--experiment={name}"), runs / f"{name}.log"
    print(f"  {name}: training; watch it with tail -f {log}", flush=True)
    command(log, "train", *where, *train_flags)
    command(log, "evaluate", *where, *evaluate_flags)
    rows = read_scores(runs / name / EVALUATION)  # by frames, so that the last of each split stays
    success = {row.split: f"{row.success_rate:.3f}" for row in rows}
    took = f"{time.perf_counter() - begin:.0f} s"
    print(f"  {name}: success {success['train']} on training contexts, {success['test']} on test contexts ({took})")


def experiment(runs: Path, report: Path, title: str, jobs: Sequence[tuple], at_once: int) -> None:
    """Train and evaluate all jobs (name, training flags, evaluation flags), then draw them."""
    with ThreadPoolExecutor(at_once) as pool:
        for job in [pool.submit(train_and_evaluate, runs, *job) for job in jobs]:
            job.result()
    command(report / "report.log", "report", str(runs), f"--out={report}", f"--title={title}")
    print((report / "final.md").read_text().strip())
    print(f"Curves: {report / 'figure.png'}")


def illustrative(folder: Path, seeds: int, frames: int) -> None:
    print(f"Illustrative CMDP: {seeds} seeds with and without an explore phase, {frames} steps each ...")
    flags = ("--env=illustrative_train", f"--train_for_env_steps={frames}", f"--milestone_step_freq={frames // 10}")
    jobs = [
        (f"k{steps}_seed{seed}", (*flags, f"--max_pure_expl_steps={steps}", f"--seed={seed}"), ("--checkpoint=all",))
        for seed in range(seeds)
        for steps in (0, 8)
    ]
    title = "Illustrative CMDP: success on training colours and on white"
    experiment(folder / "runs/illustrative", folder / "illustrative", title, jobs, at_once=2)


def my_way_home(folder: Path, frames: int, episodes: int) -> None:
    print(f"Small My Way Home: one seed with and without an explore phase, {frames} frames each ...")
    flags = ("--env=my_way_home_small_train", "--preset=laptop", "--explorer=random", "--seed=1")
    length = (f"--train_for_env_steps={frames}", f"--milestone_step_freq={frames // 5}")
    jobs = [
        (
            f"k{steps}",
            (*flags, *length, f"--max_pure_expl_steps={steps}"),
            ("--checkpoint=all", f"--episodes={episodes}"),
        )
        for steps in (0, 100)
    ]
    title = "Small My Way Home: a short version of docs/results.md"
    experiment(folder / "runs/my_way_home", folder / "my_way_home", title, jobs, at_once=1)


def main(argv: Sequence[str]) -> int:
    parser = ArgumentParser(prog="demo", description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=5, help="random episodes to draw")
    parser.add_argument("--folder", type=Path, default=Path("demo_output"), help="folder for all results")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of the illustrative CMDP, per arm; 0 leaves it out")
    parser.add_argument("--frames", type=int, default=50_000, help="steps of each of its runs")
    parser.add_argument(
        "--doom_frames", type=int, default=5_000_000, help="frames of each run of My Way Home; 0 leaves it out"
    )
    parser.add_argument(
        "--eval_episodes", type=int, default=32, help="episodes of My Way Home per evaluation and split"
    )
    options = parser.parse_args(argv)
    require_at_least(options, episodes=1, seeds=0, frames=1000, doom_frames=0, eval_episodes=1)
    play_and_draw(options.episodes, options.folder / "map.png")
    if options.seeds:
        illustrative(options.folder, options.seeds, options.frames)
    if options.doom_frames:
        my_way_home(options.folder, options.doom_frames, options.eval_episodes)
    print(
        f"Done. To see all curves, with one address per world, run sf-explore-go tensorboard {options.folder / 'runs'}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(run(main, sys.argv[1:]))
