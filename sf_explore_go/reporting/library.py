"""Reports from Python: evaluated runs, their arms, the final table and the main figure."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from sf_explore_go.core.table import Table
from sf_explore_go.reporting.arms import group
from sf_explore_go.reporting.figures import main_figure
from sf_explore_go.reporting.runs import Arm, Run, find_runs
from sf_explore_go.reporting.tables import final_rows

__all__ = ["final_table", "group_runs", "main_figure", "read_runs"]


def tell(sentence: str) -> None:
    """What the reader of a report must know."""
    warnings.warn(sentence, stacklevel=2)


def read_runs(folders: str | Path | Iterable[str | Path], *, actions: str | None = None) -> list[Run]:
    """Every evaluated run in the given folders (a run, an experiment, or a folder of them, also deeper).

    `actions`: sampled or greedy evaluations; None: as each run says. Warns of runs that are left out.
    """
    given = [folders] if isinstance(folders, str | Path) else folders
    return find_runs([Path(folder) for folder in given], actions, tell)


def group_runs(runs: Sequence[Run], *, arm_by: Sequence[str] = (), mixed: bool = False) -> list[Arm]:
    """Runs by arm, the baseline first; `arm_by` and `mixed` as on the command line of `sf-explore-go report`."""
    return group(runs, arm_by=arm_by, mixed=mixed, say=tell)


def final_table(arms: Sequence[Arm]) -> Table:
    """One row for each arm, with the columns of final.csv: success where the runs are compared, intervals over seeds,
    the gain over the baseline."""
    return Table(final_rows(arms))
