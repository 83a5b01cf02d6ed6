"""Evaluation from Python: the numbers of `sf-explore-go evaluate`, as a table, without any file."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import torch

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.table import Table
from sf_explore_go.evaluation.agent import Agent, load_agent
from sf_explore_go.evaluation.arena import Arena
from sf_explore_go.evaluation.arguments import splits
from sf_explore_go.evaluation.evaluate import play_split
from sf_explore_go.runs.scores import EXACT, Score, Settings


def evaluate(
    agent: Agent | str | Path,
    split: str = "test",
    episodes: int = 100,
    *,
    seed: int = 0,
    greedy: bool | None = None,
    num_envs: int = 8,
) -> Table:
    """Play an agent without any explore phase: one row for each split, with the columns of evaluation.csv.

    `agent` is an `Agent`, or what `load_agent` takes. `split` is one of the agent's, or `both`: all of them. `seed`
    chooses the episodes (`--eval_seed`); `num_envs` play at once, which changes the speed and not the numbers.
    """
    for name, number in (("episodes", episodes), ("num_envs", num_envs)):
        if number < 1:
            raise UsageError(f"{name}={number}: it must be a whole number, at least 1")
    player = agent if isinstance(agent, Agent) else load_agent(agent)
    settings = Settings(episodes, seed, player.greedy if greedy is None else greedy)
    with one_thread(), Arena(player.cfg, min(num_envs, episodes)) as arena:
        played = [
            play_split(player.checkpoint, player.weights, one, settings, arena)[0] for one in splits(player.cfg, split)
        ]
    return Table(row_of(score) for score in played)


def row_of(score: Score) -> dict[str, object]:
    """Without the columns that this world does not have."""
    return {name: value for name, value in asdict(score).items() if name not in EXACT or value is not None}


@contextmanager
def one_thread() -> Iterator[None]:
    """As on the command line: more threads change the last bits of a sum, and gain nothing with small networks."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
