"""Named sets of flags. A flag on the command line wins over a preset, a preset over the parser's default.

Every world brings its own; a user's world that has none gets the one below.
"""

from collections.abc import Mapping
from typing import Any

from sf_explore_go.core.arguments import did_you_mean
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.machine import cores
from sf_explore_go.offpolicy.arguments import APPO
from sf_explore_go.worlds.base import World
from sf_explore_go.worlds.registry import known_worlds

# Steps taken at random before training would be a small Explore-Go of their own, so both arms go without them.
EVERY_RUN: dict[str, Any] = {
    "decorrelate_experience_max_seconds": 0,
    "decorrelate_envs_on_one_worker": False,
}

ANY_WORLD: dict[str, dict[str, Any]] = {
    # A small environment on a machine without a GPU. What is not here is Sample Factory's own.
    "small": {
        "num_workers": min(4, cores()),
        "num_envs_per_worker": 16,
        "rollout": 32,
        "batch_size": 512,
        "num_epochs": 4,
        "learning_rate": 1e-3,
        "use_rnn": False,
        "encoder_mlp_layers": [64, 64],
        "nonlinearity": "tanh",
        "normalize_input": True,
        "normalize_returns": True,
        "exploration_loss_coeff": 0.01,
        "ppo_clip_ratio": 0.2,
        "train_for_env_steps": 500_000,
        "milestone_step_freq": 100_000,
        "max_pure_expl_steps": 0,
        "explorer": "random",
        "num_contexts": 0,
        "device": "cpu",
        "env_frameskip": 1,
    },
}
ABOUT = {"small": "a world of your own that has no preset: small networks, no GPU"}


def presets_of(world: World) -> Mapping[str, Mapping[str, Any]]:
    """Name -> flags; the first is the default. A preset of a user's own world stands on top of `small`."""
    if not world.presets:
        return ANY_WORLD
    if world.name:
        return world.presets
    return {name: ANY_WORLD["small"] | dict(flags) for name, flags in world.presets.items()}


def algorithm_of(flags: Mapping[str, Any]) -> str:
    """Which one a preset is for."""
    return str(flags.get("algo", APPO))


def presets_for(world: World, algo: str) -> list[str]:
    return [name for name, flags in presets_of(world).items() if algorithm_of(flags) == algo]


def default_preset(world: World, algo: str = APPO) -> str:
    """The first one for this algorithm, or the world's first if it has none for it."""
    return [*presets_for(world, algo), *presets_of(world)][0]


def flags_of(world: World, preset: str) -> dict[str, Any]:
    """What a preset sets. One of another world is found too, since an older run may go on with it."""
    known = {**all_presets(), **presets_of(world)}
    if preset not in known:
        names = list(presets_of(world))
        raise UsageError(f"--preset={preset}: it must be {' or '.join(names)}{did_you_mean(preset, names)}")
    return EVERY_RUN | dict(known[preset])


def all_presets() -> dict[str, Mapping[str, Any]]:
    """Of every world that comes with the package."""
    return {name: flags for world in known_worlds() for name, flags in presets_of(world).items()}
