"""Every flag this project adds, and the checks that refuse a bad one in one sentence before any process starts."""

import argparse
import copy
import json
import math
import secrets
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sample_factory.cfg.cfg import (
    add_basic_cli_args,
    add_default_env_args,
    add_model_args,
    add_pbt_args,
    add_rl_args,
    add_wandb_args,
)
from sample_factory.utils.attr_dict import AttrDict
from sample_factory.utils.utils import str2bool
from sf_examples.vizdoom.doom.doom_params import add_doom_env_args

from sf_explore_go.core.arguments import ArgumentParser
from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import resolve_explorer
from sf_explore_go.explorers.e3b.arguments import add_e3b_args
from sf_explore_go.runs.folder import run_folder
from sf_explore_go.runs.resume import check_same_run, check_trusted
from sf_explore_go.training.policies import EXPLORERS_OWN
from sf_explore_go.worlds.doom.presets import PRESETS
from sf_explore_go.worlds.registry import world_of

POSITIVE = (
    "num_workers", "num_envs_per_worker", "worker_num_splits", "rollout", "batch_size", "num_batches_per_epoch",
    "num_epochs", "train_for_env_steps", "train_for_seconds", "env_frameskip", "res_w", "res_h", "rnn_size",
    "num_batches_to_accumulate", "policy_workers_per_policy", "learning_rate", "keep_checkpoints", "stats_avg",
)  # fmt: skip

CONV_ARCHITECTURES = ("convnet_simple", "convnet_impala", "convnet_atari", "resnet_impala")

# What belongs to one command and not to the run. A saved "overwrite" must never reach a later resume.
PER_COMMAND = ("cli_args", "command_line", "restart_behavior", "train_dir", "experiment", "quiet", "verbose")


def add_explore_go_args(parser: argparse.ArgumentParser) -> None:
    """Our own flags; each help text names type, unit and the paper's section."""
    group = parser.add_argument_group("Explore-Go")
    group.add_argument(
        "--preset",
        choices=sorted(PRESETS),
        help="named set of flags; explicit flags win (default: paper for My Way Home, laptop for the small one,"
        " illustrative for the grid)",
    )
    group.add_argument(
        "--max_pure_expl_steps",
        type=int,
        default=0,
        metavar="K",
        help="decisions: an episode starts with k ~ Uniform{0..K} steps of the explorer; 0 = the baseline (section 4)",
    )
    group.add_argument(
        "--explorer", default="random", help="who explores: random, e3b, or module:Class from your own file (section 4)"
    )
    group.add_argument(
        "--num_contexts",
        type=int,
        default=10,
        help="size of the training set of contexts; 0 = the whole training distribution (section 5.3: 10)",
    )
    group.add_argument("--context_seed", type=int, help="seed of the set of contexts (default: --seed)")
    group.add_argument(
        "--milestone_step_freq",
        type=int,
        default=0,
        help="total frames between two kept copies of the agent, for evaluation afterwards; 0 = none",
    )
    group.add_argument(
        "--adv_std_memory",
        type=float,
        default=0.0,
        help="memory of a running standard deviation of the agent's advantages, per update: a batch without reward is"
        " divided by it instead of by its own small one; 0 = each batch by its own, as in Sample Factory",
    )
    group.add_argument(
        "--hang_timeout",
        type=float,
        default=40.0,
        help="seconds without a sign of life after which a worker counts as hung and the run is ended; 0 = never",
    )
    for name, (kind, unit) in EXPLORERS_OWN.items():
        group.add_argument(
            f"--explorer_{name}",
            type=kind,
            help=f"{unit}: what a learned explorer has instead of --{name} (default: the same)",
        )
    add_monitoring_args(parser)


def add_monitoring_args(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Watching")
    group.add_argument(
        "--eval_in_background",
        type=str2bool,
        default=False,
        help="True: evaluate each milestone while training, in a process of its own at low priority",
    )
    group.add_argument("--eval_episodes", type=int, default=100, help="its episodes per milestone and split")
    group.add_argument(
        "--eval_finish_seconds",
        type=int,
        default=600,
        help="seconds that a training which has ended waits for the evaluation of its last milestones",
    )
    group.add_argument("--quiet", action="store_true", help="nothing on the terminal but warnings and errors")
    group.add_argument("--verbose", action="store_true", help="Sample Factory's whole log on the terminal too")


def make_parser() -> ArgumentParser:
    """Sample Factory's flags, its Doom flags and ours."""
    parser = ArgumentParser(
        prog="sf-explore-go train",
        usage="sf-explore-go train --env=ENV [--flag=value ...]",
        description="Sample Factory's flags, then those of Explore-Go and of its explorers, at the end.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        add_help=False,
    )
    add_explore_go_args(parser)
    add_e3b_args(parser)
    add_basic_cli_args(parser)
    add_rl_args(parser)
    add_model_args(parser)
    add_default_env_args(parser)
    add_wandb_args(parser)
    add_pbt_args(parser)
    add_doom_env_args(parser)
    parser.set_defaults(device="gpu" if torch.cuda.is_available() else "cpu")
    return parser


def parse_train_args(argv: Sequence[str]) -> Any:
    """The resolved configuration of a training; raises UsageError for anything that cannot work."""
    parser = make_parser()
    if any(word in ("-h", "--help") for word in argv):
        parser.print_help()
        raise SystemExit(0)
    known, _ = parser.parse_known_args(argv)
    preset = known.preset or world_of(known.env).default_preset
    parser.set_defaults(**PRESETS[preset])
    given = flags_given(parser, argv)
    cfg = parser.parse_args(list(argv))
    cfg.preset, cfg.cli_args, cfg.command_line = preset, given, shlex.join(argv)
    return finish(load_saved(parser, cfg) if cfg.restart_behavior == "resume" else AttrDict(vars(cfg)))


def flags_given(parser: argparse.ArgumentParser, argv: Sequence[str]) -> dict[str, Any]:
    """The flags that stand on the command line, as opposed to those that have their default value."""
    bare = copy.deepcopy(parser)
    bare.set_defaults(**{action.dest: None for action in bare._actions})
    return {name: value for name, value in vars(bare.parse_args(list(argv))).items() if value is not None}


def load_saved(parser: argparse.ArgumentParser, cfg: argparse.Namespace) -> AttrDict:
    """What an earlier part of the same run has saved; the command line wins, flags unknown then are added.

    Sample Factory's own function does the same but makes the run's folder first, also for a command that is refused.
    """
    given = AttrDict(vars(cfg))
    path = run_folder(cfg) / "config.json"
    if not path.is_file():
        return given
    try:
        saved = json.loads(path.read_text())
        if not isinstance(saved, dict):
            raise ValueError("it is not a JSON object")
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read ({error}); repair it, or pass --restart_behavior=restart") from error
    check_types(parser, saved, path)
    check_same_run(saved, cfg.cli_args, path.parent)
    check_trusted(saved, cfg.cli_args, path)
    of_this_command = {name: given[name] for name in (*given.cli_args, *PER_COMMAND)}
    return AttrDict(given | saved | of_this_command)


def check_types(parser: argparse.ArgumentParser, saved: dict[str, Any], path: Path) -> None:
    """A configuration may come from elsewhere, or from a full disk: its values must be what flags can be."""
    for action in parser._actions:
        if action.dest in saved and not could_be(action, saved[action.dest]):
            raise UsageError(f"{path}: {action.dest}={saved[action.dest]!r} is not a value of --{action.dest}")


def could_be(action: argparse.Action, value: Any) -> bool:
    if value is None:
        return action.default is None
    values = value if action.nargs in ("*", "+") else [value]
    kinds = {int: (int,), float: (int, float), str2bool: (bool,)}.get(action.type, (str,))
    if action.nargs == 0:
        kinds = (bool,)
    return isinstance(values, list) and all(
        isinstance(item, kinds)
        and (bool in kinds or not isinstance(item, bool))
        and (action.choices is None or item in action.choices)
        for item in values
    )


def finish(cfg: Any) -> Any:
    """Fill in what follows from other flags, then check."""
    check_finite(cfg)
    if cfg.seed is None:
        cfg.seed = secrets.randbelow(2**31)
    if cfg.context_seed is None:
        cfg.context_seed = cfg.seed
    if cfg.hang_timeout > 0:
        cfg.heartbeat_interval = min(cfg.heartbeat_interval, max(1, int(cfg.hang_timeout / 4)))
    explicit_policies = cfg.cli_args.get("num_policies")
    cfg.num_policies = num_policies(cfg)
    if explicit_policies not in (None, cfg.num_policies):
        raise UsageError(
            f"--num_policies={explicit_policies}: it follows from --max_pure_expl_steps and --explorer,"
            f" here {cfg.num_policies}; leave the flag out"
        )
    check(cfg)
    return cfg


def check_finite(cfg: Any) -> None:
    for name, value in cfg.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"--{name}={value}: allowed are finite numbers")


def num_policies(cfg: Any) -> int:
    """1 for the baseline and for an explorer that acts in the actor; 2 if the explorer is a policy."""
    return 2 if cfg.max_pure_expl_steps > 0 and resolve_explorer(cfg.explorer).learned else 1


def check(cfg: Any) -> None:
    """Refuse what cannot work, in one sentence."""
    world = world_of(cfg.env)
    for name in POSITIVE:
        if not cfg[name] > 0:
            raise UsageError(f"--{name}={cfg[name]}: allowed are numbers above 0")
    if not 0 <= cfg.adv_std_memory < 1:
        raise UsageError(f"--adv_std_memory={cfg.adv_std_memory}: allowed are 0 and numbers below 1")
    for name in ("max_pure_expl_steps", "num_contexts", "milestone_step_freq"):
        if cfg[name] < 0:
            raise UsageError(f"--{name}={cfg[name]}: allowed are 0 and positive whole numbers")
    if cfg.encoder_conv_architecture not in CONV_ARCHITECTURES:
        raise UsageError(
            f"--encoder_conv_architecture={cfg.encoder_conv_architecture}: allowed are {', '.join(CONV_ARCHITECTURES)}"
        )
    if not cfg.hang_timeout >= 0:
        raise UsageError(f"--hang_timeout={cfg.hang_timeout}: allowed are 0 and numbers above")
    check_sampling(cfg)
    check_monitoring(cfg)
    if cfg.max_pure_expl_steps > 0:
        check_phases(cfg, world.decisions_per_episode(cfg))


def check_sampling(cfg: Any) -> None:
    if cfg.num_envs_per_worker % cfg.worker_num_splits:
        raise UsageError(
            f"--num_envs_per_worker={cfg.num_envs_per_worker}: allowed are multiples of"
            f" --worker_num_splits={cfg.worker_num_splits}"
        )
    if cfg.batch_size % cfg.rollout:
        raise UsageError(f"--batch_size={cfg.batch_size}: allowed are multiples of --rollout={cfg.rollout}")
    if cfg.recurrence not in (-1, cfg.rollout) and (cfg.recurrence < 1 or cfg.rollout % cfg.recurrence):
        raise UsageError(f"--recurrence={cfg.recurrence}: allowed are -1 and divisors of --rollout={cfg.rollout}")
    if cfg.with_pbt:
        raise UsageError("--with_pbt=True: population-based training mixes policies of its own; only False is allowed")
    if cfg.normalize_returns and cfg.with_vtrace:
        raise UsageError("--with_vtrace=True: allowed only with --normalize_returns=False")
    if cfg.batched_sampling:
        raise UsageError("--batched_sampling=True: phases are kept per environment; only False is allowed")
    if cfg.device == "gpu" and not torch.cuda.is_available():
        raise UsageError("--device=gpu: torch finds no GPU here; allowed is cpu")


def check_explorers_own(cfg: Any) -> None:
    allowed = {
        "batch_size": (lambda value: value > 0 and value % cfg.rollout == 0, f"multiples of --rollout={cfg.rollout}"),
        "num_batches_per_epoch": (lambda value: value >= 1, "whole numbers from 1"),
        "num_epochs": (lambda value: value >= 1, "whole numbers from 1"),
        "learning_rate": (lambda value: value > 0, "numbers above 0"),
        "gamma": (lambda value: 0 <= value <= 1, "numbers from 0 to 1"),
        "exploration_loss_coeff": (lambda value: value >= 0, "0 and numbers above"),
    }
    for name, (fits, sentence) in allowed.items():
        value = cfg[f"explorer_{name}"]
        if value is not None and not fits(value):
            raise UsageError(f"--explorer_{name}={value}: allowed are {sentence}")


def check_monitoring(cfg: Any) -> None:
    if cfg.eval_in_background and not cfg.milestone_step_freq:
        raise UsageError(
            "--eval_in_background=True: it evaluates milestones; allowed only with --milestone_step_freq above 0"
        )
    for name, least in (("eval_episodes", 1), ("eval_finish_seconds", 0)):
        if cfg[name] < least:
            raise UsageError(f"--{name}={cfg[name]}: allowed are whole numbers from {least}")
    if cfg.quiet and cfg.verbose:
        raise UsageError("--quiet and --verbose contradict each other; allowed is one of them")


def check_phases(cfg: Any, decisions: int) -> None:
    resolve_explorer(cfg.explorer).check_cfg(cfg)
    check_explorers_own(cfg)
    if cfg.max_pure_expl_steps >= decisions:
        raise UsageError(
            f"--max_pure_expl_steps={cfg.max_pure_expl_steps}: an episode of {cfg.env} lasts {decisions} decisions,"
            f" so allowed are 0 to {decisions - 1}"
        )
    if not cfg.async_rl:
        raise UsageError(
            f"--async_rl=False: synchronous collection waits for equal numbers of rollouts, which phases do not give;"
            f" allowed with --max_pure_expl_steps={cfg.max_pure_expl_steps} is only True"
        )
