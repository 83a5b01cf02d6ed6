"""Four Rooms as a world (section 5 of the paper), in the paper's size and in one for laptops."""

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym

from sf_explore_go.core.contexts import in_equal_numbers
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.machine import cores
from sf_explore_go.worlds.base import TEST, TRAIN, World
from sf_explore_go.worlds.grid.four_rooms import SPLITS, TIME_LIMIT, FourRoomsEnv
from sf_explore_go.worlds.grid.rooms import RoomContext, check_number, check_size, draw_contexts, table_of
from sf_explore_go.worlds.states import StateTable

if TYPE_CHECKING:
    from torch import nn

# The paper's PPO (appendix on Four Rooms), as far as asynchronous PPO can have it.
PPO: dict[str, Any] = {
    "num_epochs": 5,
    "ppo_clip_ratio": 0.2,
    "ppo_clip_value": 100.0,  # none
    "exploration_loss": "entropy",
    "exploration_loss_coeff": 0.01,
    "learning_rate": 5e-4,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "value_loss_coeff": 0.5,
    "max_grad_norm": 0.5,
    "value_bootstrap": True,  # a time limit is no end: what the values say of states does not depend on the clock
    "shuffle_minibatches": True,
    "normalize_input": False,
    "normalize_returns": False,
    "obs_subtract_mean": 0.0,
    "obs_scale": 10.0,
    "use_rnn": False,
    "max_pure_expl_steps": 50,
    # the paper's bonus: a pair of state and action that is new to its episode earns 1 / sqrt(N)
    "explorer": "counts",
    "counts_of": "actions",
    "counts_global": True,
    "counts_first": True,
    "counts_power": 0.5,
    "counts_coeff": 0.1,
    "agent_bonus": 0.01,
    "eval_greedy": True,
    "env_frameskip": 1,
}

# The paper's DQN (the same appendix); Q and U learn at their own rates, and the bonus is U's reward as it is.
DQN: dict[str, Any] = {
    "algo": "DQN",
    "learning_rate": 5e-4,
    "dqn_learning_rate_u": 1e-3,
    "gamma": 0.99,
    "batch_size": 256,
    "max_grad_norm": 1.0,
    "adam_eps": 1e-8,
    "dqn_tau": 0.05,
    "dqn_tau_u": 0.005,
    "dqn_epsilon": 0.01,
    "dqn_epsilon_share": 0.125,
    "dqn_beta": "0.01",
    "dqn_train_every": 50,
    "dqn_start": 256,
    "num_workers": 1,
    "num_envs_per_worker": 50,
    "worker_num_splits": 1,
    "serial_mode": True,
    "counts_coeff": 1.0,
} | {
    name: PPO[name]
    for name in (
        "normalize_input", "normalize_returns", "obs_subtract_mean", "obs_scale", "use_rnn", "max_pure_expl_steps",
        "explorer", "counts_of", "counts_global", "counts_first", "counts_power", "eval_greedy", "env_frameskip",
    )
}  # fmt: skip

# Grid, contexts and network: for laptops, and the paper's.
SMALL: dict[str, Any] = {
    "grid_size": 9,
    "num_contexts": 40,
    "test_contexts": 40,
    "room_channels": 16,
    "room_padding": "zeros",
    "encoder_conv_mlp_layers": [128],
}
PAPER: dict[str, Any] = {
    "grid_size": 19,
    "num_contexts": 200,
    "test_contexts": 200,
    "room_channels": 64,
    "room_padding": "circular",
    "encoder_conv_mlp_layers": [512, 256],
}

PRESETS: dict[str, dict[str, Any]] = {
    # One process, so that a seed gives the same numbers again and two runs share two cores without waiting.
    "four_rooms": PPO
    | SMALL
    | {
        "serial_mode": True,
        "num_workers": 1,
        "num_envs_per_worker": 64,
        "worker_num_splits": 1,
        "rollout": 32,
        # chosen by success and optimal actions on training contexts: fewer passes over a sample, in larger steps
        "batch_size": 256,
        "num_batches_per_epoch": 8,
        "num_epochs": 3,
        "learning_rate": 1e-3,
        "train_for_env_steps": 2_000_000,
        "milestone_step_freq": 100_000,
        "eval_episodes": 40,
        "save_every_sec": 600,
        "device": "cpu",
    },
    # 50 environments x 256 steps an update, 8 M steps; the network of the paper's table.
    "four_rooms_paper": PPO
    | PAPER
    | {
        "num_workers": 5 if cores() >= 5 else 1,
        "num_envs_per_worker": 10 if cores() >= 5 else 50,
        "worker_num_splits": 2,
        "rollout": 256,
        "batch_size": 256,
        "num_batches_per_epoch": 50,
        "train_for_env_steps": 8_000_000,
        "milestone_step_freq": 400_000,
        "eval_episodes": 200,
    },
    "four_rooms_dqn": DQN
    | SMALL
    | {
        # Chosen by success and optimal actions on training contexts. With a discount of 0.99 two actions differ by one
        # percent, and to learn that takes more gradient steps than five minutes have.
        "gamma": 0.95,
        "learning_rate": 1e-3,
        "batch_size": 128,
        "dqn_train_every": 10,
        "dqn_epsilon_share": 0.25,
        "dqn_buffer": 20_000,  # about a sixteenth of all steps, as the paper's
        "train_for_env_steps": 300_000,
        "milestone_step_freq": 20_000,
        "eval_episodes": 40,
        "save_every_sec": 600,
        "device": "cpu",
    },
    "four_rooms_dqn_paper": DQN
    | PAPER
    | {
        "dqn_buffer": 500_000,
        "train_for_env_steps": 8_000_000,
        "milestone_step_freq": 400_000,
        "eval_episodes": 200,
    },
}


class FourRooms(World):
    """Four rooms, four doors, one goal; every state can be listed."""

    name: ClassVar[str] = "four_rooms"
    about: ClassVar[str] = "four rooms whose doors change; exact values; minutes to learn at laptop size"
    splits: ClassVar[Sequence[str]] = SPLITS
    scored_by_goal: ClassVar[bool] = False  # hundreds of contexts with one episode each
    identity: ClassVar[Sequence[str]] = ("grid_size", "test_contexts", "room_channels", "room_padding")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    about_presets: ClassVar[Mapping[str, str]] = {
        "four_rooms": "9 x 9 cells, 40 contexts: a few minutes on one core",
        "four_rooms_paper": "the paper's: 19 x 19 cells, 200 contexts, 8 M steps",
        "four_rooms_dqn": "DQN at the same size as four_rooms: about 5 minutes on one core",
        "four_rooms_dqn_paper": "the paper's DQN: 19 x 19 cells, 200 contexts, 8 M steps",
    }

    # -- environments --------------------------------------------------------------------------------------------

    def make_env(self, split: str, cfg: Any, render_mode: str | None = None) -> FourRoomsEnv:
        return FourRoomsEnv(split, **room_flags(cfg), render_mode=render_mode)

    def decisions_per_episode(self, cfg: Any) -> int:
        return TIME_LIMIT

    def evaluation_contexts(self, cfg: Any, split: str, count: int, seed: int) -> Sequence[int]:
        return in_equal_numbers(range(len(contexts_of(cfg, split))), count, seed)

    # -- flags ---------------------------------------------------------------------------------------------------

    def add_arguments(self, group: argparse._ArgumentGroup) -> None:
        group.add_argument("--grid_size", type=int, default=19, help="cells along a side, odd (section 5: 19)")
        group.add_argument("--test_contexts", type=int, default=200, help="contexts of each test set (section 5: 200)")
        group.add_argument("--room_channels", type=int, default=64, help="channels of the convolutions (appendix: 64)")
        group.add_argument(
            "--room_padding",
            choices=("circular", "zeros"),
            default="circular",
            help="padding of the convolutions (appendix: circular; the authors' code: zeros)",
        )

    def check(self, cfg: Any) -> None:
        check_size(cfg.grid_size, "--grid_size")
        check_number(cfg.num_contexts, cfg.grid_size, "--num_contexts")
        for name in ("test_contexts", "room_channels"):
            if getattr(cfg, name) < 1:
                raise UsageError(f"--{name}={getattr(cfg, name)}: it must be a whole number, at least 1")

    # -- the network and the states ------------------------------------------------------------------------------

    def make_encoder(self, cfg: Any, obs_space: gym.spaces.Dict) -> "nn.Module":
        from sf_explore_go.worlds.grid.model import ResidualNetwork

        return ResidualNetwork(cfg.room_channels, cfg.encoder_conv_mlp_layers, obs_space["obs"], cfg.room_padding)

    def state_key(self, info: Mapping[str, Any]) -> int:
        return int(info["state"])

    def state_table(self, cfg: Any, split: str) -> StateTable | None:
        """Of the training and the test set; the others have the same states, or are there to choose settings."""
        return table_of(contexts_of(cfg, split), cfg.grid_size) if split in (TRAIN, TEST) else None


def room_flags(cfg: Any) -> dict[str, int]:
    context_seed = getattr(cfg, "context_seed", None)
    return {
        "grid_size": cfg.grid_size,
        "num_contexts": cfg.num_contexts,
        "test_contexts": cfg.test_contexts,
        "context_seed": context_seed if context_seed is not None else getattr(cfg, "seed", None) or 0,
    }


def contexts_of(cfg: Any, split: str) -> tuple[RoomContext, ...]:
    flags = room_flags(cfg)
    return draw_contexts(
        split, flags["grid_size"], flags["num_contexts"], flags["test_contexts"], flags["context_seed"]
    )
