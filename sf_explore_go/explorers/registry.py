"""Explorers by name: those that come with the package, and the user's own, from a module or a file."""

from sf_explore_go.core.arguments import did_you_mean
from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.plugins import load_class
from sf_explore_go.explorers.base import ActorExplorer, Explorer, LearnedExplorer

EXPLORERS: dict[str, str] = {
    "random": "sf_explore_go.explorers.random:RandomExplorer",
    "sticky": "sf_explore_go.explorers.sticky:StickyExplorer",
    "counts": "sf_explore_go.explorers.counts:CountsExplorer",
    "e3b": "sf_explore_go.explorers.e3b:E3BExplorer",
}
NONE = "none"  # in the place of an explorer: that of the baseline, where nobody explores
MUST_BE = f"it must be {', '.join(EXPLORERS)}, module:Class or path/to/file.py:Class"


def resolve_explorer(name: str, flag: str = "--explorer") -> type[Explorer]:
    """The explorer class behind a name.

    One from outside runs its module's code, so such a name must come from a command line (`flag`), never from a file
    alone.
    """
    target = EXPLORERS.get(name, name)
    if not all(target.rpartition(":")[::2]):
        raise UsageError(f"{flag}={name}: {MUST_BE}{did_you_mean(name, EXPLORERS)}")
    explorer = load_class(target, f"{flag}={name}")
    if not (isinstance(explorer, type) and issubclass(explorer, ActorExplorer | LearnedExplorer)):
        raise UsageError(f"{flag}={name}: it must be an ActorExplorer or a LearnedExplorer")
    return explorer
