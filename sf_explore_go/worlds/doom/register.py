"""Make the environment known: to Gymnasium by its id, to Sample Factory by the names that `--env` takes."""

from typing import TYPE_CHECKING, Any

import gymnasium

from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.doom.scenario import SCENARIOS, SPLITS

if TYPE_CHECKING:
    from sf_explore_go.worlds.doom.env import MyWayHomeEnv

GYMNASIUM_IDS = {"SfExploreGo/MyWayHome-v0": "my_way_home", "SfExploreGo/MyWayHomeSmall-v0": "my_way_home_small"}
ENVS = {f"{scenario}_{split}": (scenario, split) for scenario in SCENARIOS for split in SPLITS}


def register_gymnasium_env() -> None:
    """So that `gymnasium.make` finds the environment; loads neither the engine nor torch."""
    for id, scenario in GYMNASIUM_IDS.items():
        if id not in gymnasium.registry:
            gymnasium.register(id, "sf_explore_go.worlds.doom.env:MyWayHomeEnv", kwargs={"scenario": scenario})


def make_my_way_home_env(env_name: str, cfg: Any, env_config: Any, render_mode: str | None = None) -> "MyWayHomeEnv":
    """The environment as Sample Factory's flags describe it. Test environments play the whole test distribution."""
    from sf_explore_go.worlds.doom.env import MyWayHomeEnv

    if env_name not in ENVS:
        raise UsageError(f"--env={env_name}: allowed are {', '.join(ENVS)}")
    scenario, split = ENVS[env_name]
    context_seed = getattr(cfg, "context_seed", None)
    return MyWayHomeEnv(
        split=split,
        num_contexts=getattr(cfg, "num_contexts", 10) if split == "train" else 0,
        context_seed=context_seed if context_seed is not None else getattr(cfg, "seed", None) or 0,
        res_w=getattr(cfg, "res_w", 128),
        res_h=getattr(cfg, "res_h", 72),
        wide_aspect_ratio=getattr(cfg, "wide_aspect_ratio", False),
        frameskip=getattr(cfg, "env_frameskip", 4),
        pixel_format=getattr(cfg, "pixel_format", "CHW"),
        render_mode=render_mode,
        scenario=scenario,
    )


def register_doom_envs() -> None:
    """Needed in every process that makes environments by name."""
    from sample_factory.envs.env_utils import register_env

    for name in ENVS:
        register_env(name, make_my_way_home_env)
