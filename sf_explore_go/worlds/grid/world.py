"""The illustrative CMDP as a world."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
import numpy as np

from sf_explore_go.core.contexts import in_equal_numbers
from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.base import World
from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.grid.illustrative import CONTEXTS, ON_CROSS, TIME_LIMIT, IllustrativeEnv
from sf_explore_go.worlds.grid.oracle import Oracle

if TYPE_CHECKING:
    from torch import nn

PRESETS: dict[str, dict[str, Any]] = {
    # The paper's table for the illustrative CMDP. See docs/illustrative.md for the two places where Sample Factory
    # forces another value: rollouts of 5 (a minibatch of 5 steps cannot be cut from rollouts of 10), and asynchronous
    # collection in one process, which is on-policy but for the rollouts that are open while an update is made.
    "illustrative": {
        "serial_mode": True,
        "num_workers": 1,
        "num_envs_per_worker": 4,
        "worker_num_splits": 1,
        "rollout": 5,
        "batch_size": 5,
        "num_batches_per_epoch": 8,
        "num_epochs": 3,
        "shuffle_minibatches": True,
        "gamma": 0.9,
        "gae_lambda": 0.95,
        "exploration_loss": "entropy",
        "exploration_loss_coeff": 0.01,
        "ppo_clip_ratio": 0.2,
        "ppo_clip_value": 100.0,
        "max_grad_norm": 0.5,
        "learning_rate": 1e-4,
        "adam_eps": 1e-5,
        "normalize_input": False,
        "normalize_returns": False,
        "use_rnn": False,
        "actor_critic_share_weights": False,
        "encoder_mlp_layers": [128, 64, 32],
        "nonlinearity": "relu",
        "train_for_env_steps": 50_000,
        "milestone_step_freq": 2_500,
        "max_pure_expl_steps": 8,
        "explorer": "random",
        "num_contexts": 0,
        "save_every_sec": 600,
        "stats_avg": 100,
        "device": "cpu",
    },
}


class Illustrative(World):
    """A 5x5 cross in which only the colours change (section 3.2 of the paper)."""

    name: ClassVar[str] = "illustrative"
    about: ClassVar[str] = "the paper's 5x5 cross; two minutes to learn"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    about_presets: ClassVar[Mapping[str, str]] = {"illustrative": "the paper's illustrative CMDP"}

    def make_env(self, split: str, cfg: Any, render_mode: str | None = None) -> IllustrativeEnv:
        return IllustrativeEnv(split=split, render_mode=render_mode)

    def decisions_per_episode(self, cfg: Any) -> int:
        return TIME_LIMIT

    def evaluation_contexts(self, cfg: Any, split: str, count: int, seed: int) -> Sequence[int]:
        return in_equal_numbers(range(len(CONTEXTS[split])), count, seed)

    def check(self, cfg: Any) -> None:
        every = len(CONTEXTS["train"])
        if cfg.num_contexts not in (0, every):
            raise UsageError(
                f"--num_contexts={cfg.num_contexts}: {cfg.env} has {every} contexts and always trains on all of them;"
                f" it must be 0 or {every}"
            )

    def make_encoder(self, cfg: Any, obs_space: gym.spaces.Dict) -> "nn.Module":
        from sf_explore_go.worlds.grid.model import FlatNetwork

        return FlatNetwork(cfg.encoder_mlp_layers, obs_space["obs"], cfg.nonlinearity)

    def cells(self) -> CellGrid:
        return CellGrid(np.array(ON_CROSS), (-0.5, -0.5), 1.0)

    def make_oracle(self, cfg: Any) -> Oracle:
        return Oracle()
