"""What a context is, and how a training or test set is drawn from a seed.

A context is a goal and a seed for the engine; the seed fixes where the player starts and which way it looks. Nothing
here knows Doom or torch, so a set can be inspected, compared or reproduced anywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sf_explore_go.core.errors import UsageError
from sf_explore_go.core.seeding import derive_seed

T = TypeVar("T")
RANDOM, BALANCED = "random", "balanced"  # how the goals of a set are drawn
WAYS = (RANDOM, BALANCED)


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

    def balanced(self, count: int, seed: int) -> list[Context]:
        """`count` contexts to evaluate on: those of the set, or the goals of the distribution, in equal numbers."""
        if self.contexts:
            return in_equal_numbers(self.contexts, count, seed)
        goals = in_equal_numbers(self.goals, count, seed)
        return [Context(goal, derive_seed(seed, "engine", index)) for index, goal in enumerate(goals)]

    def __contains__(self, context: Context) -> bool:
        return context in self.contexts if self.contexts else context.goal in self.goals


def draw_context_set(goals: Sequence[int], num_contexts: int, seed: int, way: str = RANDOM) -> ContextSet:
    """A set of `num_contexts` different contexts, goals and engine seeds uniform; 0 = the whole distribution.

    With the way `balanced` all goals have as many contexts, give or take one, and the seed decides which have one more.
    The n-th context does not depend on `num_contexts`: a larger set with the same seed holds the smaller one.
    """
    if num_contexts < 0:
        raise UsageError(f"--num_contexts={num_contexts}: it must be positive, or 0 for the whole distribution")
    if way not in WAYS:
        raise UsageError(f"--context_goals={way}: it must be {' or '.join(WAYS)}")
    drawn: dict[Context, None] = {}
    stream = ",".join(str(goal) for goal in goals)  # so that sets over other goals have starts of their own
    in_turn = in_equal_numbers(goals, num_contexts, derive_seed(seed, "context", stream, BALANCED))
    trial = 0
    while len(drawn) < num_contexts:
        alone = goals[derive_seed(seed, "context", stream, trial, "goal") % len(goals)]
        goal = in_turn[len(drawn)] if way == BALANCED else alone
        drawn[Context(goal, derive_seed(seed, "context", stream, trial, "engine"))] = None
        trial += 1
    return ContextSet(tuple(goals), tuple(drawn))


def in_equal_numbers(items: Sequence[T], count: int, seed: int) -> list[T]:
    """`count` of the items, each as often as any other, give or take one.

    They come block by block, each block with every item once in an order drawn from the seed. So the seed decides which
    items have one more, and a longer list begins with the shorter one.
    """
    blocks = -(-count // len(items))
    return [item for block in range(blocks) for item in _shuffled(items, derive_seed(seed, "block", block))][:count]


def _shuffled(items: Sequence[T], seed: int) -> list[T]:
    order = sorted(range(len(items)), key=lambda index: derive_seed(seed, index))
    return [items[index] for index in order]
