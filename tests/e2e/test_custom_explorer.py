"""The explorers that docs/explorers.md builds work from a user's own folder, through the command line."""

import re
from pathlib import Path

import pytest

from tests.e2e.cli import scalars, sf_explore_go

PAGE = Path("docs/explorers.md")
EXAMPLES = ("sticky_explorer", "picture_counts")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_documented_explorer_trains_from_another_folder(name: str, tmp_path: Path) -> None:
    number = EXAMPLES.index(name)
    (tmp_path / f"{name}.py").write_text(blocks("python")[number])
    command = [block for block in blocks("bash") if block.startswith("sf-explore-go train")][number].split()[1:]
    result = sf_explore_go(*command, "--train_for_env_steps=1000", "--seed=1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    explored = scalars(tmp_path / "train_dir" / name)["phases/explore_frames"]
    assert explored[-1][1] > 100


def test_its_flags_are_shown_checked_and_kept(tmp_path: Path) -> None:
    (tmp_path / "picture_counts.py").write_text(blocks("python")[1])
    chosen = ("--env=illustrative_train", "--explorer=picture_counts.py:PictureCounts", "--experiment=run")
    shown = sf_explore_go("train", *chosen, "--help", cwd=tmp_path)
    assert "--picture_power" in shown.stdout
    refused = sf_explore_go("train", *chosen, "--picture_power=0", cwd=tmp_path)
    assert (refused.returncode, refused.stderr) == (2, "sf-explore-go: --picture_power=0.0 must be above 0\n")
    assert not (tmp_path / "train_dir" / "run").exists()


@pytest.mark.parametrize("name", EXAMPLES)
def test_page_and_file_are_the_same_class(name: str) -> None:
    def bare(text: str) -> str:
        types = r"\"CountReward\"|torch\.Tensor|dict\[str, (float|Any)\]|None|Any"
        text = re.sub(rf'"""[^"]*"""|#[^\n]*| -> ({types})', "", text)
        names = r"gym\.Space|int|Any|float|ExploreBatch|Setting|argparse\._ArgumentGroup|dict\[.*\](?= =|\))"
        text = re.sub(rf": ({names})", "", text)
        return re.sub(r"\s+", "", text[text.index("class ") :])

    page = blocks("python")[EXAMPLES.index(name)]
    assert bare(page) == bare(Path(f"docs/examples/{name}.py").read_text())
