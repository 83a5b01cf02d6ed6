"""The picture of all explorers."""

import numpy as np

from sf_explore_go.evaluation.coverage import Coverage, Measured
from sf_explore_go.reporting.ladder import in_lines, ladder_figure
from sf_explore_go.worlds.cells import CellGrid

CELLS = CellGrid(np.ones((2, 4), bool), (0.0, 0.0), 10.0)


def measured(name: str, cells: int) -> Measured:
    coverage = Coverage(CELLS)
    for _ in range(3):
        coverage.add([(10 * x + 5, 5) for x in range(cells)], (5.0, 5.0))
    return Measured(name, coverage, steps=4)


def test_explorers_stand_in_the_order_of_what_they_see() -> None:
    some = [measured("oracle", 4), measured("none", 1), measured("e3b (seed_1)", 3)]
    figure = ladder_figure([(one, one.row()) for one in some])
    rungs, *maps = figure.axes
    assert [bar.get_height() for bar in rungs.patches] == [1 / 8, 3 / 8, 4 / 8]  # type: ignore[attr-defined]
    assert [axes.get_title() for axes in maps] == ["none", "e3b\n(seed_1)", "oracle"]


def test_names_fit() -> None:
    assert in_lines("docs/examples/sticky_explorer.py:StickyExplorer") == "StickyExplorer"
    assert in_lines("e3b (a_run_with_a_very_long_name)") == "e3b\n(a_run_with_a_v…"
