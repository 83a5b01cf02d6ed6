"""Reports from Python hold the numbers of the command line's."""

import csv
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import sf_explore_go

PUBLISHED = Path("docs/results/illustrative")


def test_the_table_is_the_published_one() -> None:
    arms = sf_explore_go.group_runs(sf_explore_go.read_runs(str(PUBLISHED)))
    table = sf_explore_go.final_table(arms)
    with Path("docs/figures/illustrative/final.csv").open(newline="") as file:
        published = list(csv.DictReader(file))
    assert [row["arm"] for row in table] == [row["arm"] for row in published]
    for row, other in zip(table, published, strict=True):
        assert row["test"] == pytest.approx(float(other["test"]))
        assert row["test_low"] == pytest.approx(float(other["test_low"]))
    assert isinstance(sf_explore_go.main_figure(arms, "title"), Figure)


def test_several_folders_and_other_arms() -> None:
    runs = sf_explore_go.read_runs([PUBLISHED, Path("docs/results/illustrative_k")])
    arms = sf_explore_go.group_runs(runs, arm_by=["max_pure_expl_steps"])
    assert [arm.name for arm in arms][:2] == ["max_pure_expl_steps = 0", "max_pure_expl_steps = 2"]


def test_what_is_left_out_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/config.json").write_text('{"env": "illustrative_train", "max_pure_expl_steps": 0, "seed": 1}')
    with pytest.warns(UserWarning, match="not in this report: .*mine"):
        sf_explore_go.read_runs([PUBLISHED, tmp_path])


def test_a_folder_that_is_none() -> None:
    with pytest.raises(sf_explore_go.UsageError, match="nowhere is not a folder"):
        sf_explore_go.read_runs("nowhere")
