"""Which episodes an evaluation of a run plays; `evaluate`, background evaluation and `enjoy` all ask here.

They follow from the run's seeds, the split and the evaluation seed, and from nothing else: arms of one seed are tested
on the same episodes, other seeds on others, so that intervals over seeds hold the choice of contexts too.
"""

from dataclasses import dataclass
from typing import Any

from sf_explore_go.core.seeding import derive_seed
from sf_explore_go.worlds.registry import world_of


@dataclass(frozen=True)
class PlannedEpisode:
    """An episode before it is played: its context, as `reset` takes it, and a seed for all that is random in it."""

    context: Any  # None: the environment draws it, from the seed
    seed: int

    @property
    def options(self) -> dict[str, Any] | None:
        """For `reset`."""
        return None if self.context is None else {"context": self.context}


def plan_episodes(cfg: Any, split: str, count: int, eval_seed: int) -> list[PlannedEpisode]:
    """The episodes of one split; a longer list begins with the shorter one."""
    seed = derive_seed(eval_seed, split, *seeds_of(cfg))
    contexts = world_of(cfg.env).evaluation_contexts(cfg, split, count, derive_seed(seed, "contexts"))
    if contexts is None:
        contexts = [None] * count
    return [PlannedEpisode(context, derive_seed(seed, "episode", index)) for index, context in enumerate(contexts)]


def seeds_of(cfg: Any) -> tuple[int, int]:
    """What tells a run from others of its arm; both, since runs may share a context seed and still differ."""
    seed = getattr(cfg, "seed", None) or 0
    context_seed = getattr(cfg, "context_seed", None)
    return seed if context_seed is None else context_seed, seed
