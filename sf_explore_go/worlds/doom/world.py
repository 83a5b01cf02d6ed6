"""My Way Home as a world: the whole labyrinth, and half of it."""

import argparse
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from sf_explore_go.core.contexts import RANDOM, WAYS, Context, draw_context_set
from sf_explore_go.worlds.base import TRAIN, World
from sf_explore_go.worlds.cells import CellGrid
from sf_explore_go.worlds.doom.presets import ABOUT, PRESETS
from sf_explore_go.worlds.doom.scenario import Scenario, ensure_wad, load_scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sf_explore_go.worlds.doom.env import MyWayHomeEnv
    from sf_explore_go.worlds.doom.oracle import Oracle

EPISODE_TICS = 2100
TICS_PER_SECOND = 35


class MyWayHome(World):
    """The whole labyrinth."""

    name: ClassVar[str] = "my_way_home"
    about: ClassVar[str] = "the labyrinth: 4 training goals, 14 test goals"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    about_presets: ClassVar[Mapping[str, str]] = ABOUT
    identity: ClassVar[Sequence[str]] = ("context_goals",)
    steps_outside: ClassVar[bool] = True

    @cached_property
    def scenario(self) -> Scenario:
        return load_scenario(self.name)

    # -- environments --------------------------------------------------------------------------------------------

    def make_env(self, split: str, cfg: Any, render_mode: str | None = None) -> "MyWayHomeEnv":
        from sf_explore_go.worlds.doom.env import MyWayHomeEnv

        return MyWayHomeEnv(
            split=split,
            **context_flags(cfg, split),
            res_w=getattr(cfg, "res_w", 128),
            res_h=getattr(cfg, "res_h", 72),
            wide_aspect_ratio=getattr(cfg, "wide_aspect_ratio", False),
            frameskip=getattr(cfg, "env_frameskip", 4),
            pixel_format=getattr(cfg, "pixel_format", "CHW"),
            render_mode=render_mode,
            scenario=self.name,
        )

    def decisions_per_episode(self, cfg: Any) -> int:
        return int(EPISODE_TICS // cfg.env_frameskip)

    def evaluation_contexts(self, cfg: Any, split: str, count: int, seed: int) -> Sequence[Context]:
        flags = context_flags(cfg, split)
        drawn = draw_context_set(
            self.scenario.goals(split), flags["num_contexts"], flags["context_seed"], flags["context_goals"]
        )
        return drawn.balanced(count, seed)

    def prepare(self, split: str) -> None:
        ensure_wad(self.scenario, split)

    # -- flags ---------------------------------------------------------------------------------------------------

    def add_arguments(self, group: argparse._ArgumentGroup) -> None:
        group.add_argument(
            "--context_goals",
            choices=WAYS,
            default=RANDOM,
            help="how the goals of the training contexts are drawn: random, each by itself, or balanced, which is ours"
            " and not the paper's: every goal equally often, give or take one",
        )

    # -- where things are ----------------------------------------------------------------------------------------

    def cells(self) -> CellGrid:
        from sf_explore_go.worlds.doom.geometry import free_cells

        return free_cells(self.scenario)

    def make_oracle(self, cfg: Any) -> "Oracle":
        from sf_explore_go.worlds.doom.oracle import Oracle

        return Oracle(self.scenario, cfg.env_frameskip)

    def map_figure(self, **options: Any) -> "Figure":
        from sf_explore_go.worlds.doom.mapview import map_figure

        return map_figure(self.scenario, **options)

    def goal_position(self, goal: int) -> tuple[float, float]:
        point = self.scenario.point(goal)
        return point.x, point.y

    def film_fps(self, cfg: Any) -> int:
        """Twice as fast as the game."""
        return round(2 * TICS_PER_SECOND / cfg.env_frameskip)


class SmallMyWayHome(MyWayHome):
    """Half of the labyrinth, for machines without a GPU."""

    name: ClassVar[str] = "my_way_home_small"
    about: ClassVar[str] = "half the labyrinth: 3 training goals, 6 test goals; ten minutes to learn"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        name: PRESETS[name]
        for name in ("laptop", "paper", "smoke")  # the first is the default
    }


def context_flags(cfg: Any, split: str) -> dict[str, Any]:
    """What decides a run's set of contexts. Test environments play the whole test distribution."""
    context_seed = getattr(cfg, "context_seed", None)
    return {
        "num_contexts": getattr(cfg, "num_contexts", 10) if split == TRAIN else 0,
        "context_seed": context_seed if context_seed is not None else getattr(cfg, "seed", None) or 0,
        "context_goals": getattr(cfg, "context_goals", RANDOM),  # runs that are older than this flag have none
    }
