"""The explorer that knows the cross: always to the nearest new cell, and last to the goal, which ends the episode."""

from collections import deque
from typing import Any

from sf_explore_go.worlds.grid.illustrative import CENTRE, MOVES, Cell, next_cell


class Oracle:
    """Chooses the actions of one explore phase after another, from `info`."""

    def begin(self, info: dict[str, Any], seed: int) -> None:
        self._seen: set[Cell] = set()

    def act(self, info: dict[str, Any]) -> int | None:
        column, row = info["position"]
        self._seen.add((row, column))
        step = first_step((row, column), self._seen | {CENTRE}, CENTRE)
        return first_step((row, column), self._seen) if step is None else step


def first_step(start: Cell, seen: set[Cell], *closed: Cell) -> int | None:
    """The first action on the shortest way to a cell that is not among `seen`, round those that are closed."""
    queue: deque[tuple[Cell, int | None]] = deque([(start, None)])
    found = {start, *closed}
    while queue:
        cell, first = queue.popleft()
        if cell not in seen:
            return first
        for action in MOVES:
            there = next_cell(cell, action)
            if there not in found:
                found.add(there)
                queue.append((there, action if first is None else first))
    return None
