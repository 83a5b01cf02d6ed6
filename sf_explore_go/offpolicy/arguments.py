"""The flags of `--algo=DQN`, and what it refuses."""

import argparse
import math
from typing import Any

import gymnasium as gym

from sf_explore_go.core.arguments import boolean
from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.counts import ACTIONS, CountsExplorer
from sf_explore_go.offpolicy.dqn import TEE
from sf_explore_go.worlds.base import TRAIN
from sf_explore_go.worlds.registry import world_of

APPO, DQN = "APPO", "DQN"
ALGORITHMS = (APPO, DQN)
COUNTS = "counts"

# Flags of others that it uses. One that it does not use is refused, since whoever passes it expects something of it.
USED = {
    "algo", "preset", "env", "experiment", "train_dir", "seed", "restart_behavior", "device", "train_for_env_steps",
    "train_for_seconds", "num_envs_per_worker", "batch_size", "learning_rate", "gamma", "max_grad_norm", "adam_eps",
    "adam_beta1", "adam_beta2", "save_every_sec", "keep_checkpoints", "flush_summaries_interval", "log_to_file",
    "stats_avg", "max_pure_expl_steps", "explorer", "num_contexts", "context_seed", "arm", "milestone_step_freq",
    "eval_in_background", "eval_episodes", "eval_greedy", "eval_finish_seconds", "quiet", "verbose",
    "encoder_conv_mlp_layers", "encoder_mlp_layers", "nonlinearity", "obs_scale", "obs_subtract_mean",
    "counts_of", "counts_power", "counts_global", "counts_first", "counts_epsilon", "counts_coeff",
    "with_wandb", "wandb_user", "wandb_project", "wandb_group", "wandb_job_type", "wandb_tags",
}  # fmt: skip
# What it can be asked for in one way only.
FIXED: dict[str, Any] = {
    "use_rnn": False, "serial_mode": True, "num_workers": 1, "worker_num_splits": 1, "num_policies": 1,
    "explore_schedule": "constant", "agent_bonus": 0.0, "load_checkpoint_kind": "latest",
}  # fmt: skip
OWN = "dqn_"


def is_dqn(cfg: Any) -> bool:
    """Of the configuration of a run; those of earlier versions do not always say."""
    return bool(cfg.get("algo", APPO) == DQN)


def add_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--dqn_beta",
        default="0.01",
        help="number: the agent acts by Q + beta U; tee: each environment has a beta of its own (section 5.2; appendix"
        " on Four Rooms: 0.01, and 0.5 for more exploration)",
    )
    group.add_argument(
        "--dqn_keep_exploration",
        type=boolean,
        default=False,
        help="bool: the buffer also gets the steps of explore phases (appendix: Explore-Go with PE)",
    )
    group.add_argument(
        "--dqn_random_share",
        type=float,
        default=0.0,
        help="share, 0 to below 1, of what the buffer gets that are random transitions of the training contexts"
        " (figure 1; the paper does not say how many)",
    )
    group.add_argument("--dqn_buffer", type=int, default=500_000, help="transitions (appendix: 500 000)")
    group.add_argument("--dqn_start", type=int, default=256, help="transitions in the buffer before learning begins")
    group.add_argument(
        "--dqn_train_every", type=int, default=50, help="environment steps for one gradient step (appendix: 50)"
    )
    group.add_argument("--dqn_learning_rate_u", type=float, default=1e-3, help="--learning_rate of U (appendix: 1e-3)")
    group.add_argument("--dqn_tau", type=float, default=0.05, help="share: soft update of Q's target (appendix: 0.05)")
    group.add_argument("--dqn_tau_u", type=float, default=0.005, help="share: the same of U's (appendix: 0.005)")
    group.add_argument(
        "--dqn_epsilon", type=float, default=0.01, help="probability of a random action in the end (appendix: 0.01)"
    )
    group.add_argument(
        "--dqn_epsilon_share",
        type=float,
        default=0.125,
        help="share of --train_for_env_steps in which that probability falls from 1 (appendix: 0.125)",
    )


def check(cfg: Any) -> None:
    """Refuse what DQN cannot do, in one sentence."""
    check_given(cfg)
    check_world(cfg)
    check_numbers(cfg)
    if cfg.max_pure_expl_steps > 0 and cfg.explorer != COUNTS:
        raise UsageError(f"--explorer={cfg.explorer}: it must be {COUNTS} with --algo={DQN}, which explores by U")
    if cfg.counts_of != ACTIONS:
        raise UsageError(f"--counts_of={cfg.counts_of}: it must be {ACTIONS} with --algo={DQN}")
    CountsExplorer.check_cfg(cfg)
    if not cfg.eval_greedy:
        raise UsageError(f"--eval_greedy=False: it must be True with --algo={DQN}, which has no probabilities")


def check_given(cfg: Any) -> None:
    """The flags of the command line."""
    known = USED | flags_of_world(cfg)
    for name, value in cfg.cli_args.items():
        if name in FIXED and value != FIXED[name]:
            raise UsageError(f"--{name}={value}: it must be {FIXED[name]} with --algo={DQN}")
        if name not in known and name not in FIXED and not name.startswith(OWN):
            raise UsageError(f"--{name}={value}: --algo={DQN} does not use it; leave the flag out")


def flags_of_world(cfg: Any) -> set[str]:
    parser = argparse.ArgumentParser(add_help=False)
    world_of(cfg.env).add_arguments(parser.add_argument_group())
    return set(vars(parser.parse_args([])))


def check_world(cfg: Any) -> None:
    world = world_of(cfg.env)
    if world.state_table(cfg, TRAIN) is None or world.decisions_per_episode(cfg) is None:
        raise UsageError(
            f"--algo={DQN}: it needs a world whose states can be listed (`state_table`) and whose episodes have a time"
            f" limit, such as four_rooms_train, not --env={cfg.env}"
        )
    space = world.make_env(TRAIN, cfg).action_space
    if not isinstance(space, gym.spaces.Discrete):
        raise UsageError(f"--algo={DQN}: actions of --env={cfg.env} are {space}; they must be Discrete")


def check_numbers(cfg: Any) -> None:
    for name in ("dqn_buffer", "dqn_start", "dqn_train_every"):
        if cfg[name] < 1:
            raise UsageError(f"--{name}={cfg[name]}: it must be a whole number, at least 1")
    if cfg.dqn_start > cfg.dqn_buffer:
        raise UsageError(f"--dqn_start={cfg.dqn_start}: it must be at most --dqn_buffer={cfg.dqn_buffer}")
    if cfg.dqn_buffer < cfg.num_envs_per_worker:
        raise UsageError(
            f"--dqn_buffer={cfg.dqn_buffer}: it must be at least --num_envs_per_worker={cfg.num_envs_per_worker}"
        )
    for name in ("dqn_tau", "dqn_tau_u"):
        if not 0 < cfg[name] <= 1:
            raise UsageError(f"--{name}={cfg[name]}: it must be above 0 and at most 1")
    for name in ("dqn_epsilon", "dqn_epsilon_share", "gamma"):
        if not 0 <= cfg[name] <= 1:
            raise UsageError(f"--{name}={cfg[name]}: it must be from 0 to 1")
    if not 0 <= cfg.dqn_random_share < 1:
        raise UsageError(f"--dqn_random_share={cfg.dqn_random_share}: it must be from 0 to below 1")
    if not cfg.dqn_learning_rate_u > 0:
        raise UsageError(f"--dqn_learning_rate_u={cfg.dqn_learning_rate_u}: it must be above 0")
    if cfg.dqn_beta != TEE and not is_at_least_0(cfg.dqn_beta):
        raise UsageError(f"--dqn_beta={cfg.dqn_beta}: it must be {TEE} or a number, at least 0")
    if cfg.dqn_keep_exploration and not cfg.max_pure_expl_steps:
        raise UsageError(
            "--dqn_keep_exploration=True: there are no explore phases; --max_pure_expl_steps must be above 0"
        )


def is_at_least_0(text: str) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and number >= 0
