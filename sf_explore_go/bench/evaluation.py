"""Speed of evaluation: batched against one environment at a time, and what it costs a training beside it.

`evaluate`: 8 environments at once, as `sf-explore-go evaluate` plays, against one environment in a plain loop.
`background`: a training with `--eval_in_background=True` against the same training without.

Both arms of `evaluate` play the same episodes of the same agent. The agent has random weights: what it decides does not
change what a decision costs, and no episode ends early.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from sample_factory.algo.utils.rl_utils import prepare_and_normalize_obs
from sample_factory.model.actor_critic import create_actor_critic

from sf_explore_go.bench.common import Row
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.evaluation.arena import Arena
from sf_explore_go.evaluation.episodes import PlannedEpisode, plan_episodes
from sf_explore_go.evaluation.player import Player, play
from sf_explore_go.processes.console import QUIET, set_up_console
from sf_explore_go.runs.status import read_status
from sf_explore_go.training.environments import register_worlds

NETWORKS = {"laptop ep/s": "laptop", "paper ep/s": "paper"}
NUM_ENVS = 8
TRAINING_SECONDS = 45


def bench_evaluate(options: argparse.Namespace) -> list[Row]:
    """Episodes per second on My Way Home, test contexts, with the networks of two presets."""
    set_up_console(QUIET)
    register_worlds()
    torch.set_num_threads(1)
    episodes = 2 if options.quick else NUM_ENVS
    return [measure_network(name, preset, episodes, options.turns) for name, preset in NETWORKS.items()]


def measure_network(name: str, preset: str, episodes: int, turns: int) -> Row:
    cfg = parse_train_args(["--env=my_way_home_train", f"--preset={preset}", "--seed=0"])
    row = Row(name, [], [])
    with Arena(cfg, NUM_ENVS) as arena, Arena(cfg, 1) as single:
        envs, env = arena.envs("test"), single.envs("test")[0]
        torch.manual_seed(0)
        state = {"model": create_actor_critic(cfg, env.observation_space, env.action_space).state_dict()}
        player = Player(cfg, env, state, greedy=False)
        warm_up = plan_episodes(cfg, "test", NUM_ENVS if episodes > 2 else 1, 99)
        play(player, envs, warm_up, threads=arena.threads)  # engines start
        for turn in range(turns):
            plan = plan_episodes(cfg, "test", episodes, turn)
            begin = time.perf_counter()
            play(player, envs, plan, threads=arena.threads)
            row.ours.append(episodes / (time.perf_counter() - begin))
            begin = time.perf_counter()
            for planned in plan:
                play_plainly(player.model, env, planned, player.rnn_size)
            row.stock.append(episodes / (time.perf_counter() - begin))
    return row


@torch.no_grad()
def play_plainly(model: Any, env: Any, planned: PlannedEpisode, rnn_size: int) -> int:
    """One episode, one forward pass per decision; returns its length."""
    observations, _ = env.reset(seed=planned.seed, options=planned.options)
    rnn_state = torch.zeros((1, rnn_size))
    length, over = 0, False
    while not over:
        batch = {key: torch.from_numpy(value)[None] for key, value in observations[0].items()}
        result = model(prepare_and_normalize_obs(model, batch), rnn_state)
        rnn_state = result["new_rnn_states"]
        observations, _, terminated, truncated, _ = env.step([int(result["actions"].flatten()[0])])
        over = bool(terminated[0] or truncated[0])
        length += 1
    return length


# --- beside a training ------------------------------------------------------------------------------------------------

# "1 core": a training in one process, which leaves the second core free; "all cores": none is left.
TRAININGS = {
    "1 core fr/s": ("--serial_mode=True", "--num_workers=1", "--num_envs_per_worker=8", "--batch_size=512"),
    "all cores fr/s": (),
}


def bench_background(options: argparse.Namespace) -> list[Row]:
    """Frames per second of trainings on My Way Home, with and without evaluation beside them."""
    seconds = 10 if options.quick else TRAINING_SECONDS
    rows = []
    for name, flags in list(TRAININGS.items())[: 1 if options.quick else None]:
        row = Row(name, [], [])
        for turn in range(min(options.turns, 2)):
            for values, background in ((row.stock, False), (row.ours, True)):
                values.append(training_speed(flags, turn, seconds, background=background))
        rows.append(row)
    return rows


def training_speed(flags: tuple[str, ...], seed: int, seconds: int, *, background: bool) -> float:
    """Frames per second since the first frame. Milestones come every few seconds, so evaluation always has work."""
    with tempfile.TemporaryDirectory() as folder:
        words = [
            sys.executable, "-m", "sf_explore_go", "train", "--env=my_way_home_train", "--preset=laptop",
            "--explorer=random", f"--train_dir={folder}", "--experiment=run", f"--seed={seed}", *flags,
            f"--train_for_seconds={seconds}", "--milestone_step_freq=20000", f"--eval_in_background={background}",
            "--eval_finish_seconds=0",
        ]  # fmt: skip
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        log = Path(folder) / "log"
        with log.open("w") as file:
            subprocess.run(words, stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=environment, check=True)
        status = read_status(Path(folder) / "run")
    assert status is not None
    return status.frames / seconds
