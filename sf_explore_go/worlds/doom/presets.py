"""Settings for My Way Home: the paper's, and those for smaller machines."""

from typing import Any

from sf_explore_go.core.machine import cores

ABOUT = {
    "paper": "the paper's experiment, for a GPU",
    "laptop": "2 to 8 cores without a GPU",
    "smoke": "takes a minute and shows that everything works; the agent learns nothing",
}

LAPTOP_ENVS = 128  # in all, whatever the cores, so that results compare


def laptop_workers(cores: int) -> int:
    """As many as there are cores for, of those that share the environments evenly: a worker's are in two groups that
    take turns, so each worker has an even number."""
    return max(workers for workers in (1, 2, 4, 8) if workers <= cores)


LAPTOP_WORKERS = laptop_workers(cores())


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
    # walks more than it turns, never stands, and holds what it does for up to two seconds
    "sticky_weights": [0.0, 1.0, 1.0, 4.0, 0.5],
    "sticky_longest": [1, 12, 12, 16, 6],
}

PRESETS: dict[str, dict[str, Any]] = {
    # Section 5.3 and the appendix on ViZDoom: 16 workers x 16 environments, one GPU, 500 M frames, K = 200.
    "paper": DOOM
    | {
        "num_workers": min(16, cores()),
        "num_envs_per_worker": 16,
        "train_for_env_steps": 500_000_000,
        "milestone_step_freq": 25_000_000,
        "max_pure_expl_steps": 200,
        "explorer": "e3b",
        # E3B's own settings for ViZDoom: no LayerNorm, and the first bonus of a phase is 0. The bonus is divided by its
        # running standard deviation where they multiply by 3e-6 (docs/e3b.md says why that is the same).
        "learning_rate": 1e-4,
        "e3b_layer_norm": False,
        "e3b_scale_features": False,
        "e3b_ridge": 0.1,
        "e3b_first_bonus": False,
        "normalize_intrinsic_rewards": True,
        "intrinsic_reward_coeff": 1.0,
        "num_contexts": 10,
    },
    # 2 to 8 cores and no GPU: a small picture and network, many environments, and every sample used four times, since
    # frames are what such a machine is short of (docs/results.md has the search).
    "laptop": DOOM
    | {
        "num_workers": LAPTOP_WORKERS,
        "num_envs_per_worker": LAPTOP_ENVS // LAPTOP_WORKERS,
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
        "fast_pictures": True,
        "train_for_env_steps": 6_000_000,
        "milestone_step_freq": 300_000,
        "max_pure_expl_steps": 100,  # decisions of 8 tics: as long as the paper's 200 of 4
        "explorer": "e3b",
        # At this scale the published values explore less than random actions do. These were found by coverage alone
        # (launch/explorer_search.toml, docs/e3b.md): a discount that looks ten decisions ahead, and coarse pictures in
        # place of features that have yet to be learned.
        "explorer_batch_size": 256,
        "explorer_num_batches_per_epoch": 4,
        "explorer_num_epochs": 4,
        "explorer_learning_rate": 5e-4,
        "explorer_exploration_loss_coeff": 0.0003,
        "explorer_gamma": 0.9,
        "e3b_layer_norm": False,
        "e3b_scale_features": True,
        "e3b_features": "observation",
        "e3b_ridge": 0.01,
        "sticky_longest": [1, 6, 6, 8, 3],
        "num_contexts": 10,
    },
    # A minute, to see that everything works here.
    "smoke": DOOM
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
}
