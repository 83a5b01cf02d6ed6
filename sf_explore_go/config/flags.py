"""Every flag this project adds, and the checks that refuse a bad one in one sentence before any process starts."""

import argparse
import copy
import math
import secrets
import shlex
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
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

from sf_explore_go.config.help import help_text
from sf_explore_go.config.presets import algorithm_of, default_preset, flags_of, presets_for, presets_of
from sf_explore_go.core.arguments import ArgumentParser, boolean
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.plugins import is_foreign
from sf_explore_go.explorers.counts import CountsExplorer
from sf_explore_go.explorers.registry import EXPLORERS, resolve_explorer
from sf_explore_go.offpolicy import arguments as offpolicy
from sf_explore_go.offpolicy.arguments import ALGORITHMS, DQN, is_dqn
from sf_explore_go.phases.growth import CONSTANT, SCHEDULES
from sf_explore_go.runs.folder import read_config, run_folder
from sf_explore_go.runs.resume import check_same_run, check_trusted
from sf_explore_go.training.policies import EXPLORERS_OWN
from sf_explore_go.worlds.base import TRAIN
from sf_explore_go.worlds.registry import known_places, place_of, sibling, world_of

POSITIVE = (
    "num_workers", "num_envs_per_worker", "worker_num_splits", "rollout", "batch_size", "num_batches_per_epoch",
    "num_epochs", "train_for_env_steps", "train_for_seconds", "env_frameskip", "res_w", "res_h", "rnn_size",
    "num_batches_to_accumulate", "policy_workers_per_policy", "learning_rate", "keep_checkpoints", "stats_avg",
    "recent_steps",
)  # fmt: skip

CONV_ARCHITECTURES = ("convnet_simple", "convnet_impala", "convnet_atari", "resnet_impala")

HELP_ALL = "--help_all"

# What belongs to one command and not to the run. A saved "overwrite" must never reach a later resume.
PER_COMMAND = (
    "cli_args", "command_line", "restart_behavior", "load_checkpoint_kind", "train_dir", "experiment",
    "quiet", "verbose",
)  # fmt: skip


def add_explore_go_args(parser: argparse.ArgumentParser) -> None:
    """Our own flags; each help text names type, unit and the paper's section."""
    group = parser.add_argument_group("Explore-Go")
    group.add_argument(
        "--preset",
        help="named set of flags; flags on the command line win (default: the world's first preset)",
    )
    group.add_argument(
        "--max_pure_expl_steps",
        type=int,
        default=0,
        metavar="K",
        help="decisions: the explorer makes the first k ~ Uniform{0..K} of each episode; 0 = the baseline (section 4)",
    )
    group.add_argument(
        "--explorer",
        default="random",
        help=f"who explores: {', '.join(EXPLORERS)}, or your own: module:Class or FILE.py:Class (section 4)",
    )
    add_schedule_args(group)
    group.add_argument(
        "--num_contexts",
        type=int,
        default=10,
        help="size of the training set of contexts; 0 = the whole training distribution (section 5.3: 10)",
    )
    group.add_argument("--context_seed", type=int, help="seed of the set of contexts (default: --seed)")
    group.add_argument("--arm", help="name of the arm in reports; a sweep takes it from its file (none)")
    group.add_argument(
        "--milestone_step_freq",
        type=int,
        default=0,
        help="total frames between two milestones, copies of the agent that can be evaluated later; 0 = none",
    )
    group.add_argument(
        "--adv_std_memory",
        type=float,
        default=0.0,
        help="memory, per update, of a running standard deviation of the agent's advantages; batches without reward"
        " are divided by it, not by their own small one; 0 = divide each by its own, as Sample Factory does",
    )
    group.add_argument(
        "--agent_bonus",
        type=float,
        default=0.0,
        help="number: the agent also earns so much of the bonus of --explorer=counts, with counts of its own (appendix"
        " on Four Rooms: 0.01)",
    )
    group.add_argument(
        "--recent_steps",
        type=int,
        default=50_000,
        help="steps of the agent that count as recent, for the share of all states among them (Four Rooms)",
    )
    group.add_argument(
        "--fast_pictures",
        type=boolean,
        default=False,
        help="bool: learners without a GPU normalise pictures in a quicker way, whose numbers differ by rounding",
    )
    group.add_argument(
        "--hang_timeout",
        type=float,
        default=300.0,
        help="seconds: a run counts as hung, and ends, if its main process or a worker gives no sign of life for so"
        " long, or if it makes no progress (exit status 75 if it has a checkpoint to resume from); 0 = no limit, not"
        " even for the start",
    )
    for name, (kind, unit) in EXPLORERS_OWN.items():
        group.add_argument(
            f"--explorer_{name}",
            type=kind,
            help=f"{unit}: --{name} of a learned explorer (default: the same)",
        )
    add_monitoring_args(parser)


def add_schedule_args(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--explore_schedule",
        choices=SCHEDULES,
        default=CONSTANT,
        help="how K grows over the run: constant (section 4), or, which is ours and not the paper's, linear"
        " (--explore_ramp) or success (--explore_when)",
    )
    group.add_argument(
        "--explore_ramp",
        nargs=2,
        type=float,
        default=[0.0, 0.5],
        metavar=("BEGIN", "END"),
        help="shares of --train_for_env_steps: with --explore_schedule=linear K is 0 up to the first, grows in a"
        " straight line and is K from the second on; equal shares make a step",
    )
    group.add_argument(
        "--explore_when",
        type=float,
        default=0.9,
        help="share, above 0 to 1: with --explore_schedule=success K is 0 until the agent's success, mean over the last"
        " --stats_avg training episodes, reaches it, and K from then on",
    )


def add_monitoring_args(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Watching")
    group.add_argument(
        "--eval_in_background",
        type=str2bool,
        default=False,
        help="True: evaluate each milestone during training, in a separate process of low priority",
    )
    group.add_argument(
        "--eval_episodes", type=int, default=100, help="episodes of that evaluation, per milestone and split"
    )
    group.add_argument(
        "--eval_greedy",
        type=boolean,
        default=False,
        help="bool: evaluations take the likeliest action instead of sampling",
    )
    group.add_argument(
        "--eval_finish_seconds",
        type=int,
        default=600,
        help="seconds that a finished training waits for the evaluation of its last milestones",
    )
    group.add_argument("--quiet", action="store_true", help="print only warnings and errors")
    group.add_argument("--verbose", action="store_true", help="print Sample Factory's whole log too")


def add_explorers_args(parser: argparse.ArgumentParser, chosen: str | None) -> None:
    """The flags that explorers declare: those of the package, and the one from outside that was chosen."""
    added = set()
    for name in (*EXPLORERS, *([chosen] if chosen is not None and is_foreign(chosen) else [])):
        explorer = resolve_explorer(name)
        if explorer.add_arguments.__func__ in added:  # type: ignore[attr-defined]
            continue  # inherited from one of the package
        added.add(explorer.add_arguments.__func__)  # type: ignore[attr-defined]
        add_own_args(parser, f"--explorer={name}", explorer.add_arguments)


def add_own_args(parser: argparse.ArgumentParser, owner: str, add: Callable[[argparse._ArgumentGroup], None]) -> None:
    """The flags that a world or an explorer declares, in a group of their own."""
    try:
        add(parser.add_argument_group(owner))
    except argparse.ArgumentError as error:
        raise UsageError(f"{owner}: its flags must not have the names of other flags ({error})") from error


def make_parser(explorer: str | None = None, env: str | None = None) -> ArgumentParser:
    """Sample Factory's flags, its Doom flags, ours, and those of the world and of an explorer from outside."""
    parser = ArgumentParser(
        prog="sf-explore-go train",
        usage="sf-explore-go train --env=ENV [--flag=value ...]",
        add_help=False,
    )
    add_explore_go_args(parser)
    add_basic_cli_args(parser)
    add_rl_args(parser)
    add_model_args(parser)
    add_default_env_args(parser)
    add_wandb_args(parser)
    add_pbt_args(parser)
    add_doom_env_args(parser)
    offpolicy.add_arguments(parser.add_argument_group(f"--algo={DQN}"))
    # last, so that a name that is taken is their fault
    add_explorers_args(parser, explorer)
    if env is not None:
        add_own_args(parser, f"--env={env}", world_of(env).add_arguments)
    parser.set_defaults(device="gpu" if torch.cuda.is_available() else "cpu")
    algorithms = parser._option_string_actions["--algo"]
    algorithms.choices, algorithms.help = ALGORITHMS, "asynchronous PPO, or DQN (Four Rooms)"
    schedules = parser._option_string_actions["--lr_schedule"]
    schedules.choices = (*(schedules.choices or ()), "linear_decay")  # which Sample Factory has but does not list
    return parser


def defaults_of(names: Collection[str], env: str) -> dict[str, Any]:
    """The defaults of those flags that every run has, and of those that its world has if it is one of ours; the others
    belong to an explorer or a world from outside."""
    parser = make_parser(env=env if env in known_places() else None)
    return {action.dest: action.default for action in parser._actions if action.dest in names}


def parse_train_args(argv: Sequence[str]) -> Any:
    """The resolved configuration of a training; raises UsageError for anything that cannot work."""
    parser = make_parser(named_in(argv, "--explorer"), named_in(argv, "--env"))
    if any(word in ("-h", "--help", HELP_ALL) for word in argv):
        print(help_text(parser, everything=HELP_ALL in argv))
        raise SystemExit(0)
    known, _ = parser.parse_known_args(argv)
    world = world_of(known.env)
    preset = known.preset or default_preset(world, known.algo)
    may_be_none = {action.dest for action in parser._actions if action.default is None}  # whatever the preset says
    parser.set_defaults(**flags_of(world, preset))
    given = flags_given(parser, argv)
    cfg = parser.parse_args(list(argv))
    cfg.preset, cfg.cli_args, cfg.command_line = preset, given, shlex.join(argv)
    if cfg.restart_behavior == "resume" and (path := run_folder(cfg) / "config.json").is_file():
        return finish(load_saved(parser, may_be_none, cfg, path))
    check_new_run(cfg)
    return finish(AttrDict(vars(cfg)))


def named_in(argv: Sequence[str], flag: str) -> str | None:
    """The explorer or the world that the command line names; their flags must be known before the rest can be read."""
    named = [word.partition("=")[2] for word in argv if word.startswith(f"{flag}=")]
    named += [name for word, name in pairwise(argv) if word == flag]
    return named[-1] if named else None


def flags_given(parser: argparse.ArgumentParser, argv: Sequence[str]) -> dict[str, Any]:
    """The flags given on the command line, without those that have their default value."""
    bare = copy.deepcopy(parser)
    bare.set_defaults(**{action.dest: None for action in bare._actions})
    return {name: value for name, value in vars(bare.parse_args(list(argv))).items() if value is not None}


def load_saved(
    parser: argparse.ArgumentParser, may_be_none: Collection[str], cfg: argparse.Namespace, path: Path
) -> AttrDict:
    """What an earlier part of the same run has saved; the command line wins, flags unknown then are added.

    Sample Factory's own function does the same but makes the run's folder first, also for a command that is refused.
    """
    given = AttrDict(vars(cfg))
    try:
        saved = read_config(path.parent)
    except UsageError as error:
        raise UsageError(f"{error}; repair it, or pass --restart_behavior=restart") from error
    check_types(parser, may_be_none, saved, path)
    check_trusted(saved, cfg.cli_args, path)
    check_same_run(saved, cfg.cli_args, path.parent)
    of_this_command = {name: given[name] for name in (*given.cli_args, *PER_COMMAND)}
    return AttrDict(given | saved | of_this_command)


def check_types(
    parser: argparse.ArgumentParser, may_be_none: Collection[str], saved: dict[str, Any], path: Path
) -> None:
    """Refuse values that no flag could have: a configuration may come from elsewhere, or from a full disk."""
    for action in parser._actions:
        value = saved.get(action.dest)
        if value is None and (action.dest not in saved or action.dest in may_be_none):
            continue
        if not could_be(action, value):
            raise UsageError(f"{path}: {action.dest}={saved[action.dest]!r} is not a valid value of --{action.dest}")


def could_be(action: argparse.Action, value: Any) -> bool:
    number = action.nargs if isinstance(action.nargs, int) and action.nargs > 0 else None  # of values, if it is fixed
    values = value if number or action.nargs in ("*", "+") else [value]
    kinds = {int: (int,), float: (int, float), str2bool: (bool,), boolean: (bool,)}.get(action.type, (str,))
    if action.nargs == 0:
        kinds = (bool,)
    if not isinstance(values, list) or number not in (None, len(values)):
        return False
    return all(
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
    if cfg.hang_timeout > 0 and "heartbeat_interval" not in cfg.cli_args:
        cfg.heartbeat_interval = min(cfg.heartbeat_interval, max(1, int(cfg.hang_timeout / 4)))
    explicit_policies = cfg.cli_args.get("num_policies")
    cfg.num_policies = num_policies(cfg)
    if explicit_policies not in (None, cfg.num_policies):
        raise UsageError(
            f"--num_policies={explicit_policies}: it must be {cfg.num_policies}, which follows from"
            " --max_pure_expl_steps and --explorer; leave the flag out"
        )
    check(cfg)
    return cfg


def check_finite(cfg: Any) -> None:
    for name, value in cfg.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"--{name}={value}: it must be a finite number")


def num_policies(cfg: Any) -> int:
    """1 for the baseline and for an explorer that acts in the actor; 2 if the explorer is a policy."""
    if is_dqn(cfg):  # explores by a value of its one agent
        return 1
    return 2 if cfg.max_pure_expl_steps > 0 and resolve_explorer(cfg.explorer).learned else 1


def check_new_run(cfg: Any) -> None:
    """Refuse what does not suit the world. A run that started while it was still accepted may be resumed."""
    world = world_of(cfg.env)
    if cfg.preset not in presets_of(world):
        raise UsageError(
            f"--preset={cfg.preset}: it belongs to another world; with --env={cfg.env} it must be"
            f" {' or '.join(presets_of(world))}"
        )
    fitting = presets_for(world, cfg.algo)
    if fitting and algorithm_of(presets_of(world)[cfg.preset]) != cfg.algo:
        raise UsageError(
            f"--preset={cfg.preset}: it is for another algorithm; with --algo={cfg.algo} it must be"
            f" {' or '.join(fitting)}"
        )
    world.check(cfg)


def check(cfg: Any) -> None:
    """Refuse what cannot work, in one sentence."""
    world, split = place_of(cfg.env)
    if split != TRAIN:
        raise UsageError(
            f"--env={cfg.env}: its contexts are only for testing; to train, it must be {sibling(cfg.env, TRAIN)}"
        )
    for name in POSITIVE:
        if not cfg[name] > 0:
            raise UsageError(f"--{name}={cfg[name]}: it must be above 0")
    if cfg.agent_bonus < 0:
        raise UsageError(f"--agent_bonus={cfg.agent_bonus}: it must be at least 0")
    if not 0 <= cfg.adv_std_memory < 1:
        raise UsageError(f"--adv_std_memory={cfg.adv_std_memory}: it must be from 0 to below 1")
    for name in ("max_pure_expl_steps", "num_contexts", "milestone_step_freq"):
        if cfg[name] < 0:
            raise UsageError(f"--{name}={cfg[name]}: it must be a whole number, at least 0")
    if cfg.encoder_conv_architecture not in CONV_ARCHITECTURES:
        raise UsageError(
            f"--encoder_conv_architecture={cfg.encoder_conv_architecture}: it must be {' or '.join(CONV_ARCHITECTURES)}"
        )
    if not cfg.hang_timeout >= 0:
        raise UsageError(f"--hang_timeout={cfg.hang_timeout}: it must be at least 0")
    if 0 < cfg.hang_timeout <= cfg.heartbeat_interval:
        raise UsageError(
            f"--heartbeat_interval={cfg.heartbeat_interval}: it must be below --hang_timeout={cfg.hang_timeout:g}, or"
            " every worker would count as hung"
        )
    check_device(cfg)
    if is_dqn(cfg):
        offpolicy.check(cfg)
    else:
        check_sampling(cfg)
    check_schedule(cfg)
    check_monitoring(cfg)
    if cfg.agent_bonus:
        check_agents_bonus(cfg)
    if cfg.max_pure_expl_steps > 0:
        check_phases(cfg, world.decisions_per_episode(cfg))


def check_schedule(cfg: Any) -> None:
    begin, end = cfg.explore_ramp
    if not 0 <= begin <= end <= 1:
        raise UsageError(
            f"--explore_ramp {begin} {end}: it must be two numbers from 0 to 1, the first not above the second"
        )
    if not 0 < cfg.explore_when <= 1:
        raise UsageError(f"--explore_when={cfg.explore_when}: it must be above 0 and at most 1")


def check_sampling(cfg: Any) -> None:
    if cfg.num_envs_per_worker % cfg.worker_num_splits:
        raise UsageError(
            f"--num_envs_per_worker={cfg.num_envs_per_worker}: it must be a multiple of"
            f" --worker_num_splits={cfg.worker_num_splits}"
        )
    if cfg.batch_size % cfg.rollout:
        raise UsageError(f"--batch_size={cfg.batch_size}: it must be a multiple of --rollout={cfg.rollout}")
    if cfg.recurrence not in (-1, cfg.rollout) and (cfg.recurrence < 1 or cfg.rollout % cfg.recurrence):
        raise UsageError(f"--recurrence={cfg.recurrence}: it must be -1 or a divisor of --rollout={cfg.rollout}")
    if cfg.with_pbt:
        raise UsageError("--with_pbt=True: it must be False; population-based training mixes policies in its own way")
    if cfg.normalize_returns and cfg.with_vtrace:
        raise UsageError("--with_vtrace=True: it must be False, unless --normalize_returns=False")
    if cfg.batched_sampling:
        raise UsageError("--batched_sampling=True: it must be False; each environment has phases of its own")


def check_device(cfg: Any) -> None:
    if cfg.device == "gpu" and not torch.cuda.is_available():
        raise UsageError("--device=gpu: it must be cpu; torch finds no GPU here")


def check_explorers_own(cfg: Any) -> None:
    must_be = {
        "batch_size": (lambda value: value > 0 and value % cfg.rollout == 0, f"a multiple of --rollout={cfg.rollout}"),
        "num_batches_per_epoch": (lambda value: value >= 1, "a whole number, at least 1"),
        "num_epochs": (lambda value: value >= 1, "a whole number, at least 1"),
        "learning_rate": (lambda value: value > 0, "above 0"),
        "gamma": (lambda value: 0 <= value <= 1, "from 0 to 1"),
        "gae_lambda": (lambda value: 0 <= value <= 1, "from 0 to 1"),
        "exploration_loss_coeff": (lambda value: value >= 0, "at least 0"),
    }
    for name, (fits, sentence) in must_be.items():
        value = cfg[f"explorer_{name}"]
        if value is not None and not fits(value):
            raise UsageError(f"--explorer_{name}={value}: it must be {sentence}")


def check_monitoring(cfg: Any) -> None:
    if cfg.eval_in_background and not cfg.milestone_step_freq:
        raise UsageError("--eval_in_background=True: it evaluates milestones, so --milestone_step_freq must be above 0")
    for name, least in (("eval_episodes", 1), ("eval_finish_seconds", 0)):
        if cfg[name] < least:
            raise UsageError(f"--{name}={cfg[name]}: it must be a whole number, at least {least}")
    if cfg.quiet and cfg.verbose:
        raise UsageError("--quiet and --verbose contradict each other; pass only one of them")


def check_counts(cfg: Any, flag: str) -> None:
    """Whoever asks for states: the world must know them."""
    if not world_of(cfg.env).knows_states:
        raise UsageError(f"{flag}: it counts states, so the world of --env={cfg.env} must have `state_key` or `cells`")


def check_agents_bonus(cfg: Any) -> None:
    flag = f"--agent_bonus={cfg.agent_bonus}"
    check_counts(cfg, flag)
    CountsExplorer.check_cfg(cfg)
    check_asynchronous(cfg, flag)


def check_phases(cfg: Any, decisions: int | None) -> None:
    explorer = resolve_explorer(cfg.explorer)
    if explorer.uses_states:
        check_counts(cfg, f"--explorer={cfg.explorer}")
    explorer.check_cfg(cfg)
    check_explorers_own(cfg)
    if decisions is not None and cfg.max_pure_expl_steps >= decisions:
        raise UsageError(
            f"--max_pure_expl_steps={cfg.max_pure_expl_steps}: an episode of {cfg.env} lasts {decisions} decisions,"
            f" so it must be from 0 to {decisions - 1}"
        )
    check_asynchronous(cfg, f"--max_pure_expl_steps={cfg.max_pure_expl_steps}")


def check_asynchronous(cfg: Any, flag: str) -> None:
    if not cfg.async_rl:
        raise UsageError(
            f"--async_rl=False: it must be True with {flag}; synchronous collection waits for equal numbers of"
            " rollouts, and phases do not give these"
        )
