"""Explore-Go on Sample Factory: explore first, then go, and generalise further.

The Python interface is on docs/api.md.
"""

import importlib
from typing import TYPE_CHECKING, Any

from sf_explore_go.worlds.register import register_gymnasium_envs

if TYPE_CHECKING:
    from sf_explore_go.core.errors import UsageError
    from sf_explore_go.core.table import Table
    from sf_explore_go.evaluation.agent import Agent, load_agent
    from sf_explore_go.evaluation.library import evaluate
    from sf_explore_go.phases.wrapper import ExploreGo
    from sf_explore_go.reporting.library import final_table, group_runs, main_figure, read_runs

__all__ = [
    "Agent",
    "ExploreGo",
    "Table",
    "UsageError",
    "__version__",
    "evaluate",
    "final_table",
    "group_runs",
    "load_agent",
    "main_figure",
    "read_runs",
]
__version__ = "0.2.0"

# Loaded only when somebody asks for it, so that importing the package stays light: name -> module
LATER = {
    "Agent": "evaluation.agent",
    "ExploreGo": "phases.wrapper",
    "Table": "core.table",
    "UsageError": "core.errors",
    "evaluate": "evaluation.library",
    "final_table": "reporting.library",
    "group_runs": "reporting.library",
    "load_agent": "evaluation.agent",
    "main_figure": "reporting.library",
    "read_runs": "reporting.library",
}

register_gymnasium_envs()


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{LATER[name]}"), name)
