"""Explore-Go on Sample Factory: explore first, then go, and generalise further."""

from sf_explore_go.worlds.doom.register import register_gymnasium_env

__version__ = "0.2.0"

register_gymnasium_env()
