"""Worlds by name: those that come with the package, and the user's own, from a module or a file.

`--env` names an environment, that is, a world and a split: `my_way_home_train`, or `my_worlds:Corridor` for the
training split of a world of the user's own; its other splits are `my_worlds:Corridor@test` and so on.
"""

from functools import cache
from typing import NamedTuple

from sf_explore_go.core.arguments import did_you_mean
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.plugins import is_foreign, load_class
from sf_explore_go.worlds.base import TRAIN, World

WORLDS: dict[str, str] = {
    "my_way_home": "sf_explore_go.worlds.doom.world:MyWayHome",
    "my_way_home_small": "sf_explore_go.worlds.doom.world:SmallMyWayHome",
    "four_rooms": "sf_explore_go.worlds.grid.four_rooms_world:FourRooms",
    "illustrative": "sf_explore_go.worlds.grid.world:Illustrative",
}


class Place(NamedTuple):
    """What `--env` names."""

    world: World
    split: str


@cache
def make_world(target: str, flag: str) -> World:
    """The world of `module:Class` or `file.py:Class`."""
    found = load_class(target, flag)
    if not (isinstance(found, type) and issubclass(found, World)):
        raise UsageError(f"{flag}: it must be a World")
    return found()


def known_worlds() -> list[World]:
    """Those that come with the package."""
    return [make_world(target, f"--env={name}") for name, target in WORLDS.items()]


def known_places() -> dict[str, Place]:
    """By the names that `--env` takes, of the worlds that come with the package."""
    return {f"{world.name}_{split}": Place(world, split) for world in known_worlds() for split in world.splits}


def place_of(env_name: str | None) -> Place:
    """The world and the split behind a name. One from outside runs its code, so it must come from a command line."""
    name = env_name or ""
    if is_foreign(name):
        target, _, split = name.partition("@")
        world = make_world(target, f"--env={name}")
        if split and split not in world.splits:
            raise UsageError(f"--env={name}: the split must be {' or '.join(world.splits)}")
        return Place(world, split or TRAIN)
    places = known_places()
    if name not in places:
        raise UsageError(
            f"--env={env_name}: it must be {', '.join(places)}, or a world of your own: module:World or FILE.py:World"
            f"{did_you_mean(name, places)}"
        )
    return places[name]


def world_of(env_name: str | None) -> World:
    return place_of(env_name).world


def split_of(env_name: str | None) -> str:
    return place_of(env_name).split


def sibling(env_name: str, split: str) -> str:
    """The environment of the same world with another split."""
    if is_foreign(env_name):
        target = env_name.partition("@")[0]
        return target if split == TRAIN else f"{target}@{split}"
    return f"{world_of(env_name).name}_{split}"
