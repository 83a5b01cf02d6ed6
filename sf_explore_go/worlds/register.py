"""Make the worlds of this package known to Gymnasium by their ids."""

import gymnasium

DOOM, ROOMS = "sf_explore_go.worlds.doom.env:MyWayHomeEnv", "sf_explore_go.worlds.grid.four_rooms:FourRoomsEnv"
GYMNASIUM_IDS = {
    "SfExploreGo/MyWayHome-v0": (DOOM, {"scenario": "my_way_home"}),
    "SfExploreGo/MyWayHomeSmall-v0": (DOOM, {"scenario": "my_way_home_small"}),
    "SfExploreGo/FourRooms-v0": (ROOMS, {}),
}


def register_gymnasium_envs() -> None:
    """So that `gymnasium.make` finds the environments; loads neither the engine nor torch."""
    for name, (entry_point, kwargs) in GYMNASIUM_IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point, kwargs=kwargs)
