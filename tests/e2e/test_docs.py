"""README and docs: every command parses, every link and picture exists."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from sf_explore_go.cli import coverage as coverage_command
from sf_explore_go.cli import enjoy, evaluate, sweep
from sf_explore_go.cli import map as map_command
from sf_explore_go.cli import tensorboard as tensorboard_command
from sf_explore_go.cli.main import VERBS
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.reporting import report

PAGES = [Path("README.md"), *sorted(Path("docs").glob("*.md"))]
OWN_EXPLORER = "sticky_explorer:StickyExplorer"  # docs/explorers.md tells the reader to make it; tested elsewhere


def commands(page: Path) -> list[list[str]]:
    """The words of every `sf-explore-go ...` line in the page's shell blocks."""
    blocks = re.findall(r"```bash\n(.*?)```", page.read_text(), re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("sf-explore-go ")]


def parse_sweep(argv: list[str]) -> None:
    action, words = (argv[0], argv[1:]) if argv[0] in sweep.ACTIONS else ("run", argv)
    assert sweep.make_parser(action).parse_args(words).file.is_file()


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_parse(page: Path) -> None:
    parsers: dict[str, Callable[[list[str]], object]] = {
        "train": lambda argv: parse_train_args([word.replace(OWN_EXPLORER, "random") for word in argv]),
        "evaluate": evaluate.make_parser().parse_args,
        "report": report.make_parser().parse_args,
        "coverage": coverage_command.make_parser().parse_args,
        "enjoy": enjoy.make_parser().parse_args,
        "tensorboard": tensorboard_command.make_parser().parse_args,
        "map": map_command.parse,
        "sweep": parse_sweep,
    }
    for verb, *argv in commands(page):
        assert verb in VERBS
        if verb in parsers:
            parsers[verb](argv)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())
    missing = [t for t in targets if not t.startswith("http") and not (page.parent / t).exists()]
    assert not missing


def test_the_pages_hold_commands() -> None:
    assert sum(len(commands(page)) for page in PAGES) >= 8
