"""What a context is, and how a training or test set is drawn from a seed.

A context is a goal and a seed for the engine; the seed fixes where the player starts and which way it looks. Nothing
here knows Doom or torch, so a set can be inspected, compared or reproduced anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import derive_seed


class IntegerGenerator(Protocol):
    """The part of ``numpy.random.Generator`` that is used here."""

    def integers(self, low: int, high: int) -> int: ...


@dataclass(frozen=True, order=True)
class Context:
    """A goal (id of a point of the map) and the engine's seed (0 .. 2^32 - 1)."""

    goal: int
    seed: int


@dataclass(frozen=True)
class ContextSet:
    """The contexts that an environment may be put into; without `contexts`, the whole distribution over `goals`."""

    goals: tuple[int, ...]
    contexts: tuple[Context, ...] = ()

    def sample(self, rng: IntegerGenerator) -> Context:
        """One context, uniformly: of the set, or of the whole distribution."""
        if self.contexts:
            return self.contexts[int(rng.integers(0, len(self.contexts)))]
        goal = self.goals[int(rng.integers(0, len(self.goals)))]
        return Context(goal, int(rng.integers(0, 2**32)))

    def __contains__(self, context: Context) -> bool:
        return context in self.contexts if self.contexts else context.goal in self.goals


def draw_context_set(goals: Sequence[int], num_contexts: int, seed: int) -> ContextSet:
    """A set of `num_contexts` different contexts, goals and engine seeds uniform; 0 = the whole distribution.

    The n-th context does not depend on `num_contexts`: a larger set with the same seed holds the smaller one.
    """
    if num_contexts < 0:
        raise UsageError(f"--num_contexts={num_contexts}: allowed are 0 (the whole distribution) and positive numbers")
    drawn: dict[Context, None] = {}
    stream = ",".join(str(goal) for goal in goals)  # so that sets over other goals have starts of their own
    trial = 0
    while len(drawn) < num_contexts:
        goal = goals[derive_seed(seed, "context", stream, trial, "goal") % len(goals)]
        drawn[Context(goal, derive_seed(seed, "context", stream, trial, "engine"))] = None
        trial += 1
    return ContextSet(tuple(goals), tuple(drawn))
