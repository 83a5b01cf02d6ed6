"""What docs/results.md shows comes from the CSVs beside it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from launch.tables import PAGES, SHOWN, with_tables
from sf_explore_go.reporting.arms import group
from sf_explore_go.reporting.export import export
from sf_explore_go.reporting.runs import find_runs
from tests.reporting.test_export import contents

FIGURES = Path("docs/figures")
ROWS = (  # of an arm, or of an explorer
    "| baseline (K", "| Explore-Go, K", "| stock", "| ours,", "| counts, discount", "| E3B, discount", "| e3b, seed",
)  # fmt: skip
EXPERIMENTS = sorted(path for path in Path("docs/results").iterdir() if path.is_dir())
PUBLISHED = sorted(path for path in FIGURES.rglob("*") if path.suffix in (".png", ".md", ".csv"))


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("figures")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["launch/figures.sh", str(folder)], env=os.environ | {"PATH": path}, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("published", PUBLISHED, ids=str)
def test_redrawn_it_is_the_same(published: Path, redrawn: Path) -> None:
    again = redrawn / published.relative_to(FIGURES)
    if published.suffix == ".png":
        np.testing.assert_array_equal(imread(again), imread(published))
    else:
        assert again.read_text() == published.read_text()


def test_nothing_that_can_be_drawn_is_missing(redrawn: Path) -> None:
    drawn = {path.relative_to(redrawn) for path in redrawn.rglob("*") if path.suffix in (".png", ".md", ".csv")}
    assert drawn == {path.relative_to(FIGURES) for path in PUBLISHED}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=str)
def test_numbers_are_kept_as_export_writes_them(experiment: Path, tmp_path: Path) -> None:
    export(group(find_runs([experiment])), tmp_path / "again")
    assert contents(tmp_path / "again") == contents(experiment)


@pytest.mark.parametrize("page", PAGES)
def test_tables_in_pages_are_the_drawn_ones(page: str) -> None:
    text = Path(page).read_text()
    assert with_tables(text) == text
    drawn = {row for _, _, table in SHOWN.findall(text) for row in table.splitlines()}
    rows = {line for line in text.splitlines() if line.startswith(ROWS)}
    assert rows  # and none of them was typed by hand
    assert rows <= drawn


def test_a_table_is_replaced_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("docs/figures/a").mkdir(parents=True)
    Path("docs/figures/a/b.md").write_text("| new |\n| --- |\n| 1 |\n")
    page = "before\n\n<!-- docs/figures/a/b.md -->\n{}\nafter\n\n| other |\n"
    new = page.format("| new |\n| --- |\n| 1 |\n")
    assert with_tables(page.format("| old |\n")) == new
    assert with_tables(page.format("")) == new
