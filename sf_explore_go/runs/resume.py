"""What must hold before a run is taken up again; found out before anything is started or changed."""

from pathlib import Path
from typing import Any

from sf_explore_go.core.errors import UsageError
from sf_explore_go.explorers.base import LearnedExplorer, resolve_explorer
from sf_explore_go.runs.checkpoints import checkpoints_in, read_newest
from sf_explore_go.training.actor import AGENT

# What a run is. Other flags (learning rates, budgets, workers, intervals) may change from one part to the next.
IDENTITY = (
    "preset", "env", "max_pure_expl_steps", "explorer", "num_contexts", "context_seed", "seed",
    "use_rnn", "rnn_type", "rnn_size", "rnn_num_layers", "encoder_conv_architecture", "encoder_conv_mlp_layers",
    "encoder_mlp_layers", "decoder_mlp_layers", "nonlinearity", "actor_critic_share_weights", "adaptive_stddev",
    "normalize_input", "normalize_input_keys", "normalize_returns", "obs_subtract_mean", "obs_scale", "env_frameskip",
    "env_framestack", "pixel_format", "res_w", "res_h", "wide_aspect_ratio", "optimizer",
    "e3b_layer_norm", "e3b_scale_features",
)  # fmt: skip


def check_same_run(saved: dict[str, Any], given: dict[str, Any], folder: Path) -> None:
    """`given` are the flags of the command line. Refuses those that would make it another run, all at once."""
    differing = [name for name in IDENTITY if name in given and name in saved and given[name] != saved[name]]
    if differing:
        differences = ", ".join(f"--{name}={given[name]} (saved: {saved[name]})" for name in differing)
        raise UsageError(
            f"{folder} cannot be resumed with other settings: {differences}; leave these flags out, choose another"
            " --experiment, or pass --restart_behavior=restart to begin anew and keep the old run beside it"
        )


def check_trusted(saved: dict[str, Any], given: dict[str, Any], path: Path) -> None:
    """An explorer from outside this package is code: a file that names it is not enough to run it."""
    explorer = saved.get("explorer")
    if isinstance(explorer, str) and ":" in explorer and "explorer" not in given:
        raise UsageError(
            f"{path} names an explorer from outside this package; pass --explorer={explorer} to run its code"
        )


def check_checkpoints(cfg: Any, folder: Path, warn: Any) -> int:
    """Read what a resume will read, in this process, where a sentence and exit status 2 are still possible.

    Returns the total of frames that the run has.
    """
    frames = 0
    for policy_id in range(cfg.num_policies):
        checkpoints = checkpoints_in(folder / f"checkpoint_p{policy_id}", cfg.load_checkpoint_kind)
        state = read_newest(checkpoints, "cpu", warn)
        if state is not None and policy_id == AGENT:
            frames = frames_of(state, folder)
        elif state is not None:
            explorer = resolve_explorer(cfg.explorer)
            assert issubclass(explorer, LearnedExplorer)
            explorer.check_checkpoint(state)
    return frames


def frames_of(state: dict[str, Any], folder: Path) -> int:
    frames = state.get("frames")
    if not (isinstance(frames, list) and len(frames) == 2 and all(isinstance(n, int) and n >= 0 for n in frames)):
        raise UsageError(f"the newest checkpoint of {folder} counts its frames as {frames!r}; allowed are two numbers")
    return sum(frames)
