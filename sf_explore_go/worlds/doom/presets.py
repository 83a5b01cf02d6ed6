"""Named sets of flags. A flag on the command line wins over a preset, a preset over Sample Factory's default."""

import os
from typing import Any

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)

LAPTOP_WORKERS = min(8, CORES)
LAPTOP_ENVS = 128  # in all, whatever the cores, so that results compare


def laptop_envs_per_worker(workers: int) -> int:
    """An even number: a worker's environments are in two groups that take turns."""
    return LAPTOP_ENVS // workers // 2 * 2


# Sample Factory's own Doom settings (sf_examples/vizdoom), which the paper takes unchanged (appendix on ViZDoom).
DOOM: dict[str, Any] = {
    "ppo_clip_value": 0.2,
    "obs_subtract_mean": 0.0,
    "obs_scale": 255.0,
    "exploration_loss": "symmetric_kl",
    "exploration_loss_coeff": 0.001,
    "normalize_returns": True,
    "normalize_input": True,
    "env_frameskip": 4,
}

# Steps taken at random before training would be a small Explore-Go of their own, so both arms go without them.
NO_DECORRELATION: dict[str, Any] = {
    "decorrelate_experience_max_seconds": 0,
    "decorrelate_envs_on_one_worker": False,
}

PRESETS: dict[str, dict[str, Any]] = {
    # Section 5.3 and the appendix on ViZDoom: 16 workers x 16 environments, one GPU, 500 M frames, K = 200.
    "paper": DOOM
    | NO_DECORRELATION
    | {
        "num_workers": min(16, CORES),
        "num_envs_per_worker": 16,
        "train_for_env_steps": 500_000_000,
        "milestone_step_freq": 25_000_000,
        "max_pure_expl_steps": 200,
        "explorer": "e3b",
        "num_contexts": 10,
    },
    # 2 to 8 cores and no GPU: a small picture and network, many environments, and every sample used four times, since
    # frames are what such a machine is short of (docs/results.md has the search).
    "laptop": DOOM
    | NO_DECORRELATION
    | {
        "num_workers": LAPTOP_WORKERS,
        "num_envs_per_worker": laptop_envs_per_worker(LAPTOP_WORKERS),
        "res_w": 64,
        "res_h": 36,
        "env_frameskip": 8,
        "encoder_conv_architecture": "convnet_impala",
        "encoder_conv_mlp_layers": [128],
        "rnn_size": 128,
        "batch_size": 1024,
        "num_batches_per_epoch": 4,
        "num_epochs": 4,
        "learning_rate": 5e-4,
        "ppo_clip_ratio": 0.2,
        "ppo_clip_value": 10.0,
        "adv_std_memory": 0.998,
        "force_envs_single_thread": True,
        "train_for_env_steps": 6_000_000,
        "milestone_step_freq": 300_000,
        "max_pure_expl_steps": 100,  # decisions of 8 tics: as long as the paper's 200 of 4
        "explorer": "e3b",
        # at this scale E3B's own values teach it to turn on the spot (docs/e3b.md)
        "explorer_batch_size": 256,
        "explorer_num_batches_per_epoch": 1,
        "explorer_num_epochs": 1,
        "explorer_learning_rate": 3e-4,
        "explorer_exploration_loss_coeff": 0.003,
        "explorer_gamma": 0.997,
        "e3b_layer_norm": False,
        "e3b_scale_features": True,
        "e3b_ridge": 1.0,
        "num_contexts": 10,
    },
    # A minute, to see that everything works here.
    "smoke": DOOM
    | NO_DECORRELATION
    | {
        "num_workers": 2,
        "num_envs_per_worker": 4,
        "res_w": 64,
        "res_h": 36,
        "encoder_conv_mlp_layers": [64],
        "rnn_size": 64,
        "rollout": 16,
        "batch_size": 256,
        "train_for_env_steps": 60_000,
        "milestone_step_freq": 20_000,
        "max_pure_expl_steps": 50,
        "explorer": "random",
        "num_contexts": 10,
        "save_every_sec": 15,
        "experiment_summaries_interval": 3,
    },
    # The paper's table for the illustrative CMDP. See docs/illustrative.md for the two places where Sample Factory
    # forces another value: rollouts of 5 (a minibatch of 5 steps cannot be cut from rollouts of 10), and asynchronous
    # collection in one process, which is on-policy but for the rollouts that are open while an update is made.
    "illustrative": NO_DECORRELATION
    | {
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
