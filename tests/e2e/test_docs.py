"""README and docs: every command parses, every link, anchor and picture exists."""

import re
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sf_explore_go.bench import common as bench
from sf_explore_go.cli import doctor, enjoy, export, values
from sf_explore_go.cli import map as map_command
from sf_explore_go.cli import scenario as scenario_command
from sf_explore_go.cli import sweep as sweep
from sf_explore_go.cli import tensorboard as tensorboard_command
from sf_explore_go.cli.main import VERBS
from sf_explore_go.config.flags import parse_train_args
from sf_explore_go.evaluation.arguments import make_parser as evaluate_parser
from sf_explore_go.evaluation.ladder import parse as parse_coverage
from sf_explore_go.reporting.report import make_parser as report_parser

INDEX = Path("docs/index.md")
PAGES = [*(Path(name) for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(INDEX.parent.glob("*.md"))]
OWN_CODE = re.compile(
    r"^--(env|explorer)=(\w+?)(?:\.py)?:(?=\w)"
)  # what pages tell the reader to write: module or file


def commands(page: Path) -> list[list[str]]:
    """The words of every `sf-explore-go ...` line in the page's shell blocks, and of every such command in its text."""
    text = page.read_text()
    blocks = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"(?<!`)`(sf-explore-go [^`]+)`", without_blocks(text))
    whole = [line for line in lines if line.startswith("sf-explore-go ") and "..." not in line and "--help" not in line]
    return [shlex.split(line)[1:] for line in whole]


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def parse_sweep(argv: list[str]) -> None:
    action, words = sweep.split_action(argv)
    assert sweep.make_parser(action).parse_args(words).file.is_file()


def parse_bench(argv: list[str]) -> None:
    assert set(bench.make_parser().parse_args(argv).names) <= set(bench.BENCHMARKS)


def parse_doctor(argv: list[str]) -> None:
    """Its flags are those of `train`, and one of its own."""
    parse_train_args(["--env=my_way_home_train", *(word for word in argv if word != doctor.CLEAN)])


def with_examples(argv: list[str]) -> list[str]:
    return [OWN_CODE.sub(r"--\1=docs/examples/\2.py:", word) for word in argv]


PARSERS: dict[str, Callable[[list[str]], object]] = {
    "train": lambda argv: parse_train_args(with_examples(argv)),
    "evaluate": evaluate_parser().parse_args,
    "report": report_parser().parse_args,
    "coverage": lambda argv: parse_coverage(with_examples(argv)),
    "export": export.make_parser().parse_args,
    "values": values.make_parser().parse_args,
    "enjoy": enjoy.make_parser().parse_args,
    "tensorboard": tensorboard_command.make_parser().parse_args,
    "map": map_command.parse,
    "sweep": parse_sweep,
    "scenario": scenario_command.parse,
    "doctor": parse_doctor,
    "bench": parse_bench,
}


def test_no_verb_is_left_out() -> None:
    assert set(PARSERS) == set(VERBS)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_commands_parse(page: Path) -> None:
    for verb, *argv in commands(page):
        if argv:  # the name of a verb alone is no command
            PARSERS[verb](argv)
        assert verb in VERBS


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings: lower case, no punctuation, hyphens for spaces, a number for repeats."""
    headings = re.findall(r"^#{1,6} +(.+?) *$", without_blocks(page.read_text()), re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    seen: Counter[str] = Counter()
    found = set()
    for slug in slugs:
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def leads_somewhere(page: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    file = page.parent / path if path else page
    return file.exists() and (not anchor or anchor in anchors(file))


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", page.read_text())
    assert [t for t in targets if not t.startswith("http") and not leads_somewhere(page, t)] == []


def test_anchors_are_githubs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Speed\n## What `a_b` is, and why?\n```bash\n# no heading\n```\n## Speed\n### E3B: a - b\n")
    assert anchors(page) == {"speed", "what-a_b-is-and-why", "speed-1", "e3b-a---b"}


def test_the_index_leads_to_every_page() -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", INDEX.read_text())
    assert {(INDEX.parent / target).resolve() for target in targets} >= {p.resolve() for p in PAGES if p != INDEX}


def test_the_pages_hold_commands() -> None:
    assert sum(len(commands(page)) for page in PAGES) >= 8
