"""K = 0 is Sample Factory: same seeds, same weights after 20 updates, to the last bit."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from sample_factory.algo.runners.runner_serial import SerialRunner
from sample_factory.envs.env_utils import register_env
from sample_factory.utils.attr_dict import AttrDict

from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.training.environments import make_env, register_worlds
from sf_explore_go.training.runner import ExploreGoSerialRunner

UPDATES = 20


class SeedTranslator(gym.Wrapper):
    """Stock Sample Factory seeds environment i with i; this hands on the seed that we give environment i."""

    def __init__(self, env: gym.Env, run_seed: int) -> None:
        super().__init__(env)
        self.run_seed = run_seed

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        translated = None if seed is None else derive_seed(self.run_seed, "env", seed, 0)
        return self.env.reset(seed=translated, options=options)


def make_translated(env_name: str, cfg: Any, env_config: Any, render_mode: str | None = None) -> gym.Env:
    return SeedTranslator(make_env("illustrative_train", cfg, env_config, render_mode), cfg.seed)


def weights_after(runner: Any, folder: Path) -> dict[str, torch.Tensor]:
    assert runner.init() == 0
    learner = runner.learners[0].learner
    after_step = learner._after_optimizer_step
    kept: dict[str, torch.Tensor] = {}

    def keep_after_20() -> None:
        after_step()
        if learner.train_step == UPDATES:
            kept.update({name: value.clone() for name, value in learner.actor_critic.state_dict().items()})

    learner._after_optimizer_step = keep_after_20
    assert runner.run() == 0
    assert learner.train_step >= UPDATES
    return kept


@pytest.mark.parametrize("use_rnn", [True, False], ids=["recurrent", "feed-forward"])
def test_twenty_updates_to_the_last_bit(tmp_path: Path, use_rnn: bool) -> None:
    def cfg(name: str) -> AttrDict:
        flags = [
            "--env=illustrative_train", "--preset=illustrative", "--max_pure_expl_steps=0", "--seed=5",
            f"--train_dir={tmp_path}", f"--experiment={name}", "--train_for_env_steps=1500", f"--use_rnn={use_rnn}",
            "--rollout=10", "--batch_size=20", "--num_batches_per_epoch=2", "--rnn_size=16", "--num_epochs=1",
            "--normalize_input=True", "--normalize_returns=True", "--actor_critic_share_weights=True",
            "--num_envs_per_worker=6", "--worker_num_splits=2",
        ]  # fmt: skip
        return parse_train_args(flags)

    register_worlds()
    ours = weights_after(ExploreGoSerialRunner(cfg("ours")), tmp_path)
    stock_cfg = cfg("stock")
    register_env("illustrative_train", make_translated)
    try:
        stock = weights_after(SerialRunner(stock_cfg), tmp_path)
    finally:
        register_worlds()
    assert ours.keys() == stock.keys()
    assert len(ours) > 10
    for name, value in ours.items():
        assert torch.equal(value, stock[name]), name
