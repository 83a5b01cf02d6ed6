"""Make My Way Home known to Gymnasium by its ids."""

import gymnasium

GYMNASIUM_IDS = {"SfExploreGo/MyWayHome-v0": "my_way_home", "SfExploreGo/MyWayHomeSmall-v0": "my_way_home_small"}


def register_gymnasium_env() -> None:
    """So that `gymnasium.make` finds the environment; loads neither the engine nor torch."""
    for id, scenario in GYMNASIUM_IDS.items():
        if id not in gymnasium.registry:
            gymnasium.register(id, "sf_explore_go.worlds.doom.env:MyWayHomeEnv", kwargs={"scenario": scenario})
