"""The verb that draws values: numbers on the screen against a calculation here, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

from sf_explore_go.cli.train import main as train
from sf_explore_go.cli.values import main
from sf_explore_go.core.errors import UsageError
from sf_explore_go.worlds.grid.rooms import draw_contexts, table_of
from tests.training.test_states import SMALL


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("values")
    for name, flags in {"a": ("--max_pure_expl_steps=0",), "b": (), "c": ("--context_seed=5",)}.items():
        words = (*SMALL, *flags, f"--train_dir={folder}", f"--experiment={name}", "--seed=1")
        assert train([*words, "--train_for_env_steps=500", "--milestone_step_freq=0"]) == 0
    return folder


def test_two_runs_side_by_side(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "pictures" / "values.png"
    words = [f"--train_dir={runs}", "--experiment", "a", "b", "--context=2", "--split=train", f"--out={out}"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["a", "b", "picture"]
    assert all(line.endswith("of 156 states") for line in lines[:2])
    assert out.stat().st_size > 10_000


def test_places_are_where_the_agent_is_seen() -> None:
    table = table_of(draw_contexts("test", 9, 5, 3, seed=4), 9)
    for state in range(0, table.states, 11):
        context, row, column = table.places[state]
        picture = table.observe(np.array([state]))[0]
        assert (row, column) == tuple(np.argwhere(picture[0] == 10)[0])
        assert context == state // 156


def test_what_it_refuses(runs: Path) -> None:
    where = [f"--train_dir={runs}", "--experiment"]
    with pytest.raises(UsageError, match=r"^--experiment: the runs must have the same contexts; choose runs of one"):
        main([*where, "a", "c"])
    with pytest.raises(UsageError, match=r"^--context=9: it must be from 0 to 2$"):
        main([*where, "a", "--split=train", "--context=9"])
    with pytest.raises(UsageError, match=r"^--split=all: it must be train, test, reachable or validation$"):
        main([*where, "a", "--split=all"])
    with pytest.raises(UsageError, match=r"^--experiment: its world must be one whose states can be listed, not four"):
        main([*where, "a", "--split=validation"])
    with pytest.raises(UsageError, match=r"^--out=values.txt: it must end in .png, .pdf or .svg$"):
        main([*where, "a", "--out=values.txt"])
