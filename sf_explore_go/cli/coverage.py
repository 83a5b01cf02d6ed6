"""`sf-explore-go coverage`: how much of the map an explorer sees in full phases, and where it leaves the agent.

Phase i starts in the same context whatever the explorer, so explorers compare: the one that a run has trained, any
explorer that acts by itself, by name, and none, with which the agent starts where the episode does. As in training, the
agent takes over after k ~ Uniform{0..K} decisions of a phase.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from sample_factory.algo.utils.make_env import make_env_func_non_batched
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.cli.evaluate import load_config
from sf_explore_go.core.arguments import ArgumentParser, require_at_least
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.core.statistics import bootstrap_interval
from sf_explore_go.evaluation.player import Player
from sf_explore_go.explorers.base import ActorExplorer, resolve_explorer
from sf_explore_go.monitoring.coverage import Coverage, world_cells
from sf_explore_go.processes.console import NORMAL, set_up_console
from sf_explore_go.reporting.starts import COVERAGE, GO_STARTS, NONE
from sf_explore_go.reporting.tables import write_table
from sf_explore_go.runs.checkpoints import read_checkpoint
from sf_explore_go.runs.pretrained import add_run_arguments, chosen_run
from sf_explore_go.worlds.doom.scenario import Scenario
from sf_explore_go.worlds.registry import register_worlds, world_of

STEPS = 200  # of a phase, where the run has no explore phase that says how long


class Explores(Protocol):
    """Chooses the actions of one phase."""

    def begin(self, obs: dict[str, Any], seed: int) -> None: ...

    def act(self, obs: dict[str, Any]) -> Any: ...


class ByItself:
    """An explorer that needs no policy."""

    def __init__(self, explorer_class: type[ActorExplorer], action_space: Any, cfg: Any) -> None:
        self._make = lambda seed: explorer_class(action_space, seed, cfg)

    def begin(self, obs: dict[str, Any], seed: int) -> None:
        self._explorer = self._make(seed)
        self._explorer.begin_phase(obs)

    def act(self, obs: dict[str, Any]) -> Any:
        return self._explorer.act(obs)


class Trained:
    """The explorer that a run has trained, policy 1."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def begin(self, obs: dict[str, Any], seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._rnn_state = torch.zeros((1, self._player.rnn_size))

    def act(self, obs: dict[str, Any]) -> Any:
        actions, self._rnn_state = self._player.act([obs], self._rnn_state, [self._rng.random()])
        return actions[0]


class Nobody:
    """The baseline: no explore phase."""

    def begin(self, obs: dict[str, Any], seed: int) -> None: ...

    def act(self, obs: dict[str, Any]) -> Any:
        raise AssertionError("a phase without steps")


@dataclass(frozen=True)
class Measured:
    """What came out: the coverage, and the share of the map that each phase saw."""

    name: str
    coverage: Coverage
    steps: int

    def row(self) -> dict[str, Any]:
        mean, low, high = bootstrap_interval(self.coverage.shares().tolist())
        scalars = self.coverage.scalars()
        return {
            "explorer": self.name, "phases": len(self.coverage), "steps": self.steps, "per_phase": mean,
            "low": low, "high": high, "together": scalars["explore/coverage_together"],
            "start_cells": scalars.get("explore/go_start_cells", 0.0),
        }  # fmt: skip

    def start_rows(self) -> list[dict[str, Any]]:
        return [{"explorer": self.name, "x": round(x, 1), "y": round(y, 1)} for x, y in self.coverage.starts()]


def measure(name: str, explorer: Explores, env: Any, cfg: AttrDict, *, phases: int, steps: int, seed: int) -> Measured:
    """Play `phases` explore phases of `steps` decisions (fewer where the episode ends)."""
    coverage = Coverage(world_cells(world_of(cfg.env)), phases_kept=phases)
    takes_over = np.random.default_rng(derive_seed(seed, "go")).integers(0, steps + 1, phases)
    for phase in range(phases):
        observations, infos = env.reset(seed=derive_seed(seed, "phase", phase))
        explorer.begin(observations[0], derive_seed(seed, "explorer", phase))
        positions, ended = [infos[0]["position"]], False
        while not ended and len(positions) <= steps:
            observations, _, terminated, truncated, infos = env.step([explorer.act(observations[0])])
            positions.append(infos[0]["position"])
            ended = terminated[0] or truncated[0]
        acted = positions[:-1] if ended else positions  # nobody acts where an episode has ended
        coverage.add(positions, acted[takes_over[phase]] if takes_over[phase] < len(acted) else None)
    return Measured(name, coverage, steps)


def newest_explorer(folder: Path) -> Path:
    found = sorted((folder / "checkpoint_p1").glob("checkpoint_*.pth"))
    if not found:
        raise UsageError(f"{folder} holds no checkpoint of a learned explorer; name another one with --explorer")
    return found[-1]


def make_explorer(name: str, folder: Path, cfg: AttrDict, env: Any) -> Explores:
    """`trained`, `none`, or the name of an explorer that acts by itself."""
    if name == NONE:
        return Nobody()
    if name == "trained":
        return Trained(Player(cfg, env, read_checkpoint(newest_explorer(folder), "cpu"), greedy=False))
    explorer_class = resolve_explorer(name)
    if not issubclass(explorer_class, ActorExplorer):
        raise UsageError(
            f"--explorers={name}: it must be trained first; allowed are trained, none and explorers without policy"
        )
    return ByItself(explorer_class, env.action_space, cfg)


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(prog="sf-explore-go coverage", description=__doc__.splitlines()[0])
    add_run_arguments(parser)
    parser.add_argument(
        "--explorers", nargs="+", default=["trained", "random", NONE], help="trained, random, none, module:Class"
    )
    parser.add_argument("--phases", type=int, default=200, help="explore phases per explorer")
    parser.add_argument("--steps", type=int, help="decisions per phase (the run's K; 200 for a baseline)")
    parser.add_argument("--eval_seed", type=int, default=0, help="fixes contexts and random actions")
    parser.add_argument("--out", type=Path, help="folder for the CSVs and the heat maps (default: the run's)")
    return parser


def draw(measured: Measured, scenario: Scenario, path: Path) -> None:
    from sf_explore_go.worlds.doom.mapview import save_map

    row = measured.row()
    title = f"{measured.name}: {row['per_phase']:.0%} of the map per phase of {measured.steps} decisions"
    save_map(path, scenario, heat=measured.coverage.visits(), title=title)


def main(argv: Sequence[str]) -> int:
    args = make_parser().parse_args(argv)
    require_at_least(args, phases=1)
    if args.steps is not None:
        require_at_least(args, steps=1)
    set_up_console(NORMAL)
    folder = chosen_run(args)
    cfg = load_config(folder)
    register_worlds()
    torch.set_num_threads(1)
    out = args.out or folder
    out.mkdir(parents=True, exist_ok=True)
    full = args.steps or cfg.max_pure_expl_steps or STEPS
    env = make_env_func_non_batched(cfg, AttrDict(worker_index=0, vector_index=0, env_id=0))
    rows, starts = [], []
    try:
        explorers = {name: make_explorer(name, folder, cfg, env) for name in args.explorers}
        for name, explorer in explorers.items():
            label, steps = (cfg.explorer if name == "trained" else name), (0 if name == NONE else full)
            measured = measure(label, explorer, env, cfg, phases=args.phases, steps=steps, seed=args.eval_seed)
            rows.append(measured.row())
            starts += measured.start_rows()
            print(json.dumps(rows[-1]))
            if (world := world_of(cfg.env)).kind == "doom" and name != NONE:
                draw(measured, world.scenario, out / f"coverage_{label.replace(':', '_')}.png")
    finally:
        env.close()
    write_table(out / COVERAGE, rows)
    write_table(out / GO_STARTS, starts)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
