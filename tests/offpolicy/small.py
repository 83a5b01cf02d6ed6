"""A DQN training that takes seconds."""

from pathlib import Path
from typing import Any

from sf_explore_go.config.flags import parse_train_args

SMALL = (
    "--algo=DQN", "--env=four_rooms_train", "--seed=1", "--num_contexts=3", "--test_contexts=3", "--room_channels=4",
    "--encoder_conv_mlp_layers", "16", "--num_envs_per_worker=4", "--dqn_train_every=4", "--batch_size=16",
    "--dqn_buffer=500", "--dqn_start=32", "--eval_episodes=3", "--quiet",
)  # fmt: skip


def words(folder: Path, *more: str, name: str = "run") -> list[str]:
    return [*SMALL, f"--train_dir={folder}", f"--experiment={name}", *more]


def small_cfg(*more: str) -> Any:
    return parse_train_args([*SMALL, "--experiment=none", *more])
