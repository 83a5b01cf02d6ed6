"""The programs of docs/api.md run as they stand, for fewer episodes; and importing the package stays light."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sf_explore_go
from sf_explore_go.cli import export

PAGE = Path("docs/api.md")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
FEWER = ("episodes=100)", "episodes=2)")
NAMES = ("play", "evaluate", "report", "onnx")
PRINTED = (
    r"goal reached: (True|False) decisions: \d+\n$",
    r"train [\d.]+ [\d.]+ [\d.]+\ntest [\d.]+ [\d.]+ [\d.]+\n$",
    r"baseline \(K = 0\) 20 0\.695 [\d.]+ [\d.]+\nExplore-Go, K = 8, random 20 0\.934 [\d.]+ [\d.]+\n$",
    r"goal reached: (True|False)\n$",
)


def python(*words: str, cwd: Path) -> str:
    paths = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "already registered" not in result.stderr
    return result.stdout


@pytest.mark.parametrize(("program", "printed"), list(zip(PROGRAMS, PRINTED, strict=True)), ids=NAMES)
def test_the_program_runs(program: str, printed: str, tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(Path("docs").resolve())
    if "agent.onnx" in program:
        flags = ["--pretrained", f"--train_dir={tmp_path / 'runs'}", f"--out={tmp_path / 'agent.onnx'}"]
        assert export.main(flags) == 0
    (tmp_path / "program.py").write_text(program.replace(*FEWER))
    assert re.match(printed, written := python("program.py", cwd=tmp_path)), written


def test_what_is_shortened_is_on_the_page() -> None:
    assert FEWER[0] in PAGE.read_text()


def test_every_public_name_is_there_and_on_the_page() -> None:
    for name in sf_explore_go.__all__:
        assert getattr(sf_explore_go, name) is not None
    public = set(sf_explore_go.__all__) - {"__version__", "ExploreGo"}  # those have pages of their own
    assert [name for name in public if f"{name}" not in PAGE.read_text()] == []
    assert set(sf_explore_go.LATER) == set(sf_explore_go.__all__) - {"__version__"}


def test_importing_the_package_loads_no_large_library(tmp_path: Path) -> None:
    large = ("torch", "sample_factory", "vizdoom", "matplotlib", "onnx", "onnxruntime")
    assert (
        python("-c", f"import sys, sf_explore_go; print([n for n in {large} if n in sys.modules])", cwd=tmp_path)
        == "[]\n"
    )
