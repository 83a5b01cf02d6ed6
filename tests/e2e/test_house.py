"""The house is in order: who may know whom, and what the project says about itself."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
import yaml

import sf_explore_go
from launch.architecture import rooms, sentence

PACKAGE = Path("sf_explore_go")
OF_SAMPLE_FACTORY = ("sample_factory", "sf_examples")
PIN = re.compile(r"^([\w-]+)==(\S+)", re.MULTILINE)


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in Path(folder).rglob("*.py"))


def imported_names(tree: ast.AST) -> dict[str, str]:
    """Name in the module -> where it comes from, with dots."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


# --- who may know whom ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "line", "finding"),
    [
        ("core/bad.py", "import sf_explore_go.cli.main", "sf_explore_go.core.bad -> sf_explore_go.cli.main"),
        ("core/bad.py", "import torch", "sf_explore_go.core.bad -> torch"),
        ("config/bad.py", "import vizdoom", "sf_explore_go.config.bad -> vizdoom"),
        ("explorers/bad.py", "import sample_factory", "sf_explore_go.explorers.bad -> sample_factory"),
        ("cli/bad.py", "import sf_explore_go.cli.map", "sf_explore_go.cli.bad -> sf_explore_go.cli.map"),
        ("attic/__init__.py", "", "sf_explore_go.attic"),
    ],
)
def test_an_import_against_the_order_is_found(module: str, line: str, finding: str, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / PACKAGE, ignore=shutil.ignore_patterns("__pycache__", "*.pth"))
    shutil.copy("pyproject.toml", tmp_path)
    (tmp_path / PACKAGE / module).parent.mkdir(exist_ok=True)
    (tmp_path / PACKAGE / module).write_text(f"{line}\n")
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo", "--no-cache"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert finding in result.stdout


def subclasses(path: Path) -> Iterator[str]:
    """Classes of a module that extend one of Sample Factory's by its imported name."""
    tree = ast.parse(path.read_text())
    names = imported_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = (ast.unparse(base) for base in node.bases)
            if any(names.get(base.partition(".")[0], "").startswith(OF_SAMPLE_FACTORY) for base in bases):
                yield f"{path}: {node.name}"


def test_only_training_and_the_stock_arm_of_bench_subclass_sample_factory() -> None:
    found = [name for path in modules("sf_explore_go") for name in subclasses(path)]
    rooms = ("sf_explore_go/training/", "sf_explore_go/bench/arm.py")
    assert len(found) > 5  # those of training
    assert [name for name in found if not name.startswith(rooms)] == []


def test_nobody_asks_a_world_of_what_kind_it_is() -> None:
    asked = [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path in modules("sf_explore_go")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "kind" and "world" in ast.unparse(node.value).lower()
    ]
    assert asked == []


PAGE = Path("docs/architecture.md")


def private_of_others(path: Path, ours: set[str]) -> list[str]:
    """Attributes with an underscore that neither this module's classes nor any other of the package have made."""
    return [
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and re.match("_[a-z]", node.attr)
        and ast.unparse(node.value) not in ("self", "cls", "super()", "os")
        and node.attr not in ours
    ]


def made_here() -> set[str]:
    """Names of methods and of attributes that are set on `self`, in the whole package."""
    nodes = [node for path in modules("sf_explore_go") for node in ast.walk(ast.parse(path.read_text()))]
    methods = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    return methods | {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }


def test_modules_that_reach_into_a_library_are_on_the_page() -> None:
    ours = made_here()
    found = {str(path.relative_to(PACKAGE)) for path in modules("sf_explore_go") if private_of_others(path, ours)}
    section = PAGE.read_text().partition("## Private parts of libraries")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+/[\w/]+\.py)`", section))
    assert found
    assert found - named == set()
    assert [name for name in named if not (PACKAGE / name).is_file()] == []


def test_the_page_has_the_rooms_of_the_contract_in_their_order() -> None:
    section = PAGE.read_text().partition("## The rooms")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == rooms()
    assert all(sentence(room) for room in rooms())


# --- what a project says about itself ---------------------------------------------------------------------------------


def pins(file: str) -> dict[str, str]:
    text = Path(file).read_text()
    if file == "pyproject.toml":
        extras = tomllib.loads(text)["project"]["optional-dependencies"]
        text = "\n".join(line for lines in extras.values() for line in lines)
    return {plain(name): version for name, version in PIN.findall(text)}


def plain(distribution: str) -> str:
    """A name as pip compares it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def distributions(*folders: str) -> dict[str, str]:
    """Distribution -> a module that imports it, of everything that is neither Python's nor ours."""
    known, found = metadata.packages_distributions(), {}
    for path in modules(*folders):
        for place in imported_names(ast.parse(path.read_text())).values():
            top = place.partition(".")[0]
            if top not in sys.stdlib_module_names and top not in ("sf_explore_go", "tests", "launch"):
                found[plain(known[top][0])] = str(path)
    return found


@pytest.mark.parametrize(
    ("folders", "files"),
    [
        (["sf_explore_go"], ["requirements.txt", "pyproject.toml"]),  # there: optional extras
        (["launch", "tests", "docs"], ["requirements.txt", "requirements-dev.txt"]),
    ],
)
def test_everything_imported_is_pinned_as_installed(folders: list[str], files: list[str]) -> None:
    pinned = {name: version for file in files for name, version in pins(file).items()}
    imported = distributions(*folders)
    assert {name: path for name, path in imported.items() if name not in pinned} == {}
    installed = {name: metadata.version(name).partition("+")[0] for name in imported}  # "+cpu" is the same torch
    assert {name: pinned[name] for name in imported} == installed


def test_extras_are_installed_for_the_tests() -> None:
    assert pins("pyproject.toml").items() <= pins("requirements-dev.txt").items()


def test_there_is_one_version() -> None:
    version = sf_explore_go.__version__
    assert metadata.version("sf_explore_go") == version
    assert yaml.safe_load(Path("CITATION.cff").read_text())["version"] == version
    newest = re.search(r"^## \[(\d+\.\d+\.\d+)\]", Path("CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert newest[1] == version


def test_the_citation_has_what_its_format_demands() -> None:
    citation = yaml.safe_load(Path("CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert {"type", "title", "authors"} <= set(citation["preferred-citation"])
    urls = [line.partition(", ")[2] for line in metadata.metadata("sf_explore_go").get_all("Project-URL") or []]
    assert citation["repository-code"] in urls
    assert f"git clone {citation['repository-code']} " in Path("README.md").read_text()


def test_the_workflow_calls_verbs_of_the_makefile() -> None:
    jobs = yaml.safe_load(Path(".github/workflows/ci.yml").read_text())["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    verbs = re.findall(r"^([a-z-]+):", Path("Makefile").read_text(), re.MULTILINE)
    assert commands
    assert {command.removeprefix("make ") for command in commands} <= set(verbs)
    assert commands == re.findall(r"^make .+$", Path(".ci/run").read_text(), re.MULTILINE)
