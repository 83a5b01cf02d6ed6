"""Explore-Go on Sample Factory: explore first, then go, and generalise further."""

from sf_explore_go.worlds.register import register_gymnasium_envs

__version__ = "0.2.0"

register_gymnasium_envs()
