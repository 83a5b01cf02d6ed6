"""Which explorers `sf-explore-go coverage` compares, and with which settings: those of runs, or those of a preset."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.config.flags import make_parser as make_train_parser
from sf_explore_go.config.flags import named_in, parse_train_args
from sf_explore_go.config.presets import default_preset, presets_of
from sf_explore_go.core.arguments import FLAG, ArgumentParser, did_you_mean
from sf_explore_go.core.errors import UsageError
from sf_explore_go.evaluation.arguments import load_config
from sf_explore_go.evaluation.explore import ORACLE, TRAINED, check_explorer, explorer_checkpoints
from sf_explore_go.explorers.registry import NONE
from sf_explore_go.runs.pretrained import NAME, chosen_run
from sf_explore_go.worlds.base import World
from sf_explore_go.worlds.registry import world_of

LAPTOP = "laptop"  # the default preset where a world has it: what a ladder says should not hang on the machine
SAME = ("env", "env_frameskip", "num_contexts", "context_seed")  # what runs must share to be compared
PLAYED = ("num_contexts", "context_seed")  # of these, what the command line may set for all of them


# --- the command line -------------------------------------------------------------------------------------------------


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="sf-explore-go coverage",
        description="Measure how much of the map explorers see in full phases, and where the agent then starts: those"
        " that runs have trained (--experiment), or any others (--env).",
        epilog="Without a run, --env takes every flag of train, such as --env_frameskip=4.",
    )
    parser.add_argument("--experiment", nargs="+", action="extend", help="names of runs in --train_dir, one or several")
    parser.add_argument(
        "--pretrained", action="store_true", help=f"the agent that comes with the package; copied to --train_dir/{NAME}"
    )
    parser.add_argument("--train_dir", default="train_dir", help="folder of all runs")
    parser.add_argument(
        "--env", help="without a run: where to explore, such as my_way_home_train; with one: its world of your own"
    )
    parser.add_argument("--preset", help=f"without a run: its settings ({LAPTOP}, or else the world's first preset)")
    parser.add_argument(
        "--explorers",
        nargs="+",
        action="extend",
        help="trained (the runs' own), none, random, oracle (knows the map), module:Class or another that acts without"
        " a policy (those of trained and oracle that there are, random and none)",
    )
    parser.add_argument("--phases", type=int, default=200, help="explore phases per explorer (200)")
    parser.add_argument("--steps", type=int, help="decisions per phase (K of the run or the preset; 200 if that is 0)")
    parser.add_argument("--num_contexts", type=int, help="contexts that phases start in; 0 = all (the run's, or 10)")
    parser.add_argument("--context_seed", type=int, help="seed of that set of contexts (the run's, or 0)")
    parser.add_argument("--eval_seed", type=int, default=0, help="seed of phases and random actions (0)")
    parser.add_argument("--num_envs", type=int, default=8, help="environments played at once; changes no result (8)")
    parser.add_argument("--out", type=Path, help="folder for tables and pictures (the run's; ./coverage without one)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per explorer instead of a table")
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Our own flags; those of `train` are left in `settings`, as words."""
    parser = make_parser()
    own, others = divide(argv, parser)
    args = parser.parse_args(own)
    if args.experiment and args.pretrained:
        raise UsageError("--pretrained: it is a run of its own; leave out --experiment or this flag")
    if not (args.experiment or args.pretrained or args.env):
        raise UsageError("coverage: whose? Pass --experiment=NAME, --pretrained, or --env=ENV for no run at all")
    args.settings = others
    return args


def divide(argv: Sequence[str], parser: ArgumentParser) -> tuple[list[str], list[str]]:
    """Words of our own flags, and those of others, which must be flags of `train`."""
    ours = parser.flags()
    known = {*ours, *make_train_parser(env=named_in(argv, "--env")).flags()}
    own: list[str] = []
    others: list[str] = []
    target = own
    for word in argv:
        name, equals, value = word.partition("=")
        if FLAG.match(word):
            if name not in known:
                parser.error(f"unknown flag {word}{did_you_mean(name, known)}")
            target = own if name in ours else others
        # `--explorers=a b` as `--explorers a b`, which argparse understands
        target += [name, value] if equals and name in ours and ours[name].nargs == "+" else [word]
    return own, others


# --- settings ---------------------------------------------------------------------------------------------------------


def settings(args: argparse.Namespace) -> tuple[list[Path], list[AttrDict]]:
    """The folders of the runs, and their configurations; without a run no folder, and the configuration of a preset."""
    if not (args.experiment or args.pretrained):
        return [], [without_run(args)]
    if args.preset is not None or args.settings:
        word = args.settings[0] if args.settings else f"--preset={args.preset}"
        raise UsageError(f"{word}: a run has its own settings; leave out this flag, or --experiment and --pretrained")
    folders = [
        chosen_run(argparse.Namespace(pretrained=args.pretrained, train_dir=args.train_dir, experiment=name))
        for name in dict.fromkeys(args.experiment or [NAME])
    ]
    given = {name: getattr(args, name) for name in PLAYED if getattr(args, name) is not None}
    cfgs = [AttrDict(load_config(folder, args.env) | given) for folder in folders]
    check_contexts(cfgs[0], given)
    check_same(folders, cfgs)
    return folders, cfgs


def without_run(args: argparse.Namespace) -> AttrDict:
    """What `train` would make of the same flags."""
    presets = presets_of(world_of(args.env))
    preset = args.preset or (LAPTOP if LAPTOP in presets else default_preset(world_of(args.env)))
    given = {name: getattr(args, name) for name in PLAYED if getattr(args, name) is not None}
    words = [f"--{name}={value}" for name, value in ({"env": args.env, "preset": preset, "seed": 0} | given).items()]
    return parse_train_args([*words, "--restart_behavior=restart", *args.settings])  # reads no earlier run


def check_contexts(cfg: AttrDict, given: dict[str, Any]) -> None:
    if given.get("num_contexts", 0) < 0:
        raise UsageError(f"--num_contexts={given['num_contexts']}: it must be a whole number, at least 0")
    if given:
        world_of(cfg.env).check(cfg)


def check_same(folders: Sequence[Path], cfgs: Sequence[AttrDict]) -> None:
    """Explorers compare only where they play the same."""
    first = cfgs[0]
    for folder, cfg in zip(folders, cfgs, strict=True):
        for name, default in (dict.fromkeys(SAME) | own_flags(world_of(first.env))).items():
            if cfg.get(name, default) != first.get(name, default):
                remedy = f"; pass --{name} to play all of them with the same" if name in PLAYED else ""
                raise UsageError(
                    f"--experiment={folder.name}: it has {name}={cfg.get(name, default)}, but {folders[0].name} has"
                    f" {first.get(name, default)}; it must be the same in all runs{remedy}"
                )


def own_flags(world: World) -> dict[str, Any]:
    """Flags that the world declares, with their defaults, which older runs had."""
    parser = argparse.ArgumentParser(add_help=False)
    world.add_arguments(parser.add_argument_group())
    return vars(parser.parse_args([]))


# --- explorers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rung:
    """One explorer: what it is called here, its name for `make_explorer`, and the run whose it is, if any."""

    label: str
    name: str
    cfg: AttrDict
    folder: Path | None


def rungs(names: Sequence[str] | None, folders: Sequence[Path], cfgs: Sequence[AttrDict]) -> list[Rung]:
    """Those that the command line names, or all that need no naming; refuses what cannot act."""
    trained = [(folder, cfg) for folder, cfg in zip(folders, cfgs, strict=False) if explorer_checkpoints(folder)]
    if names is None:
        oracle = [ORACLE] if world_of(cfgs[0].env).make_oracle(cfgs[0]) is not None else []
        names = [*([TRAINED] if trained else []), "random", NONE, *oracle]
    found = []
    for name in dict.fromkeys(names):
        check_explorer(name, cfgs[0], "--explorers")
        if name == TRAINED:
            found += trained_rungs(trained, folders)
        else:
            found.append(Rung(name, name, cfgs[0], None))
    return found


def trained_rungs(trained: Sequence[tuple[Path, AttrDict]], folders: Sequence[Path]) -> list[Rung]:
    """One for each run that has trained an explorer, told apart by the runs' names."""
    if not trained:
        where = " and ".join(map(str, folders)) or "without --experiment there"
        raise UsageError(f"--explorers={TRAINED}: {where} has no trained explorer; it must be another, such as random")
    return [
        Rung(f"{cfg.explorer} ({folder.name})" if len(folders) > 1 else str(cfg.explorer), TRAINED, cfg, folder)
        for folder, cfg in trained
    ]
