"""The explorer that docs/explorers.md shows works from a user's own folder."""

import re
from pathlib import Path

from tests.e2e.cli import scalars, sf_explore_go

EXAMPLE = Path("docs/examples/sticky_explorer.py")


def test_the_documented_explorer_trains_from_another_folder(tmp_path: Path) -> None:
    page = Path("docs/explorers.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    command = re.findall(r"```bash\nsf-explore-go (.*?)\n```", page, re.DOTALL)[0].split()
    (tmp_path / "sticky_explorer.py").write_text(code)
    result = sf_explore_go(*command, "--train_for_env_steps=1000", "--seed=1", cwd=tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    explored = scalars(tmp_path / "train_dir" / "sticky")["phases/explore_frames"]
    assert explored[-1][1] > 100


def test_page_and_file_are_the_same_class() -> None:
    def bare(text: str) -> str:
        text = re.sub(r'"""[^"]*"""|#[^\n]*|: (gym\.Space|int|Any|dict\[str, Any\])|-> (None|Any)', "", text)
        return re.sub(r"\s+", "", text[text.index("class ") :])

    page = Path("docs/explorers.md").read_text()
    assert bare(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]) == bare(EXAMPLE.read_text())
