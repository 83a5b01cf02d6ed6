"""Explore-Go on Sample Factory: explore first, then go, and generalise further."""

from typing import TYPE_CHECKING, Any

from sf_explore_go.worlds.register import register_gymnasium_envs

if TYPE_CHECKING:
    from sf_explore_go.phases.wrapper import ExploreGo

__all__ = ["ExploreGo", "__version__"]
__version__ = "0.2.0"

register_gymnasium_envs()


def __getattr__(name: str) -> Any:
    """What is loaded only when somebody asks for it, so that importing the package stays light."""
    if name == "ExploreGo":
        from sf_explore_go.phases.wrapper import ExploreGo

        return ExploreGo
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
