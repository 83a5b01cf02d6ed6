"""Checks of a run that is to be resumed, made before anything is started or changed."""

from pathlib import Path
from typing import Any

from sample_factory.utils.utils import log

from sf_explore_go.core.contexts import RANDOM
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.plugins import is_foreign
from sf_explore_go.explorers.base import LearnedExplorer
from sf_explore_go.explorers.registry import resolve_explorer
from sf_explore_go.phases.growth import CONSTANT
from sf_explore_go.phases.schedule import AGENT
from sf_explore_go.runs.checkpoints import read_newest
from sf_explore_go.runs.names import checkpoints_in, policy_folder
from sf_explore_go.worlds.registry import world_of

# What a run is. Other flags (learning rates, budgets, workers, intervals) may change from one part to the next.
IDENTITY = (
    "algo", "preset", "env", "max_pure_expl_steps", "explorer", "explore_schedule", "explore_ramp", "explore_when",
    "agent_bonus", "num_contexts", "context_seed", "seed",
    "use_rnn", "rnn_type", "rnn_size", "rnn_num_layers", "encoder_conv_architecture", "encoder_conv_mlp_layers",
    "encoder_mlp_layers", "decoder_mlp_layers", "nonlinearity", "actor_critic_share_weights", "adaptive_stddev",
    "normalize_input", "normalize_input_keys", "normalize_returns", "obs_subtract_mean", "obs_scale", "env_frameskip",
    "env_framestack", "pixel_format", "res_w", "res_h", "wide_aspect_ratio", "optimizer",
)  # fmt: skip
# and with --algo=DQN, whose buffer and environments are kept
IDENTITY_OF_DQN = (
    "dqn_beta", "dqn_keep_exploration", "dqn_random_share", "dqn_buffer", "num_envs_per_worker", "counts_of",
    "counts_power", "counts_global", "counts_first", "counts_epsilon", "counts_coeff",
)  # fmt: skip
BEFORE = {"explore_schedule": CONSTANT, "context_goals": RANDOM}  # what runs had that are older than these flags


def check_same_run(saved: dict[str, Any], given: dict[str, Any], folder: Path) -> None:
    """`given` are the flags of the command line. Refuses those that would make it another run, all at once."""
    explorer = given.get("explorer", saved.get("explorer", "random"))
    identity = (*IDENTITY, *resolve_explorer(explorer).identity)
    if saved.get("algo") == "DQN":
        identity = (*identity, *IDENTITY_OF_DQN)
    if "env" in given:
        identity = (*identity, *world_of(given["env"]).identity)
    saved = BEFORE | saved
    differing = [name for name in identity if name in given and name in saved and given[name] != saved[name]]
    if differing:
        differences = ", ".join(f"--{name}={given[name]} (saved: {saved[name]})" for name in differing)
        raise UsageError(
            f"{folder} cannot be resumed with other settings: {differences}; leave these flags out, choose another"
            " --experiment, or pass --restart_behavior=restart to start over and keep the old run beside it"
        )


def check_trusted(saved: dict[str, Any], given: dict[str, Any], path: Path) -> None:
    """An explorer from outside this package is code: a file that names it is not enough to run it."""
    explorer = saved.get("explorer")
    if ":" in str(explorer) and "explorer" not in given:
        raise UsageError(
            f"{path} names an explorer from outside this package; pass --explorer={explorer} to run its code"
        )


def check_trusted_world(saved: dict[str, Any], given: str | None, path: Path) -> None:
    """A world from outside this package is code too: `given` is the name on the command line."""
    env = saved.get("env")
    if is_foreign(env) and given != env:
        raise UsageError(f"{path} names a world from outside this package; pass --env={env} to run its code")
    if given is not None and given != env:
        raise UsageError(f"--env={given}: the run in {path.parent} was trained with --env={env}")


def check_checkpoints(cfg: Any, folder: Path, warn: Any) -> int:
    """Read what a resume will read, in this process, which can still end with a sentence and exit status 2.

    Returns the total of frames that the run has.
    """
    frames = 0
    check_best(cfg, folder)
    for policy_id in range(cfg.num_policies):
        kind = cfg.load_checkpoint_kind if policy_id == AGENT else "latest"  # see abandoned.py
        state = read_newest(checkpoints_in(policy_folder(folder, policy_id), kind), "cpu", warn)
        if state is not None and policy_id == AGENT:
            frames = frames_of(state, folder)
        elif state is not None:
            explorer = resolve_explorer(cfg.explorer)
            assert issubclass(explorer, LearnedExplorer)
            explorer.check_checkpoint(state)
    return frames


def check_best(cfg: Any, folder: Path) -> None:
    agent = policy_folder(folder, AGENT)
    if cfg.load_checkpoint_kind == "best" and checkpoints_in(agent) and not checkpoints_in(agent, "best"):
        raise UsageError(
            f"--load_checkpoint_kind=best: {agent} has no best checkpoint; leave the flag out to resume from the newest"
        )


def can_go_on(cfg: Any, folder: Path) -> bool:
    """Whether the same command would find something to resume from."""
    try:
        check_checkpoints(cfg, folder, log.warning)
    except UsageError:
        return False
    return bool(checkpoints_in(policy_folder(folder, AGENT)))


def frames_of(state: dict[str, Any], folder: Path) -> int:
    frames = state.get("frames")
    if not (isinstance(frames, list) and len(frames) == 2 and all(isinstance(n, int) and n >= 0 for n in frames)):
        raise UsageError(f"the newest checkpoint of {folder} has frames={frames!r}; it must be two whole numbers")
    return sum(frames)
