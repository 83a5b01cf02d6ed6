"""The flags of `evaluate`, which sweeps check too; and those by which every verb chooses a run."""

from pathlib import Path
from typing import Any

from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.core.arguments import ArgumentParser
from sf_explore_go.core.errors import UsageError
from sf_explore_go.runs.folder import CONFIG, read_config
from sf_explore_go.runs.pretrained import add_run_arguments
from sf_explore_go.runs.resume import check_trusted_world
from sf_explore_go.worlds.registry import world_of

BOTH = "both"


def load_config(folder: Path, env: str | None) -> AttrDict:
    """The configuration of a run; a world from outside must be named on the command line (`env`) too."""
    config: dict[str, Any] = read_config(folder)
    check_trusted_world(config, env, folder / CONFIG)
    return AttrDict(config)


def is_greedy(cfg: Any) -> bool:
    """How this run is evaluated unless somebody says otherwise; those of earlier versions sample."""
    return bool(cfg.get("eval_greedy", False))


def splits(cfg: Any, choice: str, *, several: bool = True) -> tuple[str, ...]:
    """What `--split` means: `both` are all splits of the world."""
    known = tuple(world_of(cfg.env).splits)
    allowed = (*known, BOTH) if several else known
    if choice not in allowed:
        raise UsageError(f"--split={choice}: it must be {', '.join(allowed[:-1])} or {allowed[-1]}")
    return known if choice == BOTH else (choice,)


def add_greedy_arguments(parser: ArgumentParser) -> None:
    """None: as the run says."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--greedy", action="store_true", default=None, help="take the likeliest action")
    how.add_argument(
        "--sampled",
        dest="greedy",
        action="store_false",
        default=None,
        help="sample actions (as the run says)",
    )


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="sf-explore-go evaluate",
        description="Play a trained agent without any explore phase, on training and on test contexts.",
    )
    add_run_arguments(parser)
    parser.add_argument("--split", default=BOTH, help="which contexts to play: a split, or both: all")
    parser.add_argument("--episodes", type=int, help="episodes per checkpoint and split (the run's --eval_episodes)")
    parser.add_argument("--final_episodes", type=int, help="episodes of the last checkpoint per split (--episodes)")
    parser.add_argument("--checkpoint", default="latest", help="latest, best, all (the milestones) or a file")
    parser.add_argument("--every", type=int, default=1, help="of all: play every n-th, counted back from the last (1)")
    add_greedy_arguments(parser)
    parser.add_argument("--num_envs", type=int, default=8, help="environments played at once (8)")
    parser.add_argument("--eval_seed", type=int, default=0, help="seed; another one plays other episodes (0)")
    parser.add_argument("--quiet", action="store_true", help="print only the table, no progress")
    return parser
