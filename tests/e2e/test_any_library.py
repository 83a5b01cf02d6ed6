"""The programs of docs/any_library.md run as they stand, for fewer steps."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path("docs/any_library.md")
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
FEWER = {
    r"total_timesteps=[\d_]+": "total_timesteps=300",
    r"BothPhases\([\d_]+\)": "BothPhases(500)",
    r"n_eval_episodes=\d+": "n_eval_episodes=2",
    r"global_step < [\d_]+": "global_step < 500",
}
NAMES = ("ppo", "sac", "loop", "both_phases")
PRINTED = (
    r"steps of both phases: \d+\ntrain success: [\d.]+\ntest success: [\d.]+\n$",
    r"explored: \d+ learned from: 300\nmean return: -\d+[\d.]*\n$",
    r"(\d+ return \[[\d.]+\]\n)+$",
    r"$",
)


@pytest.mark.parametrize(("program", "printed"), list(zip(PROGRAMS, PRINTED, strict=True)), ids=NAMES)
def test_the_program_runs(program: str, printed: str, tmp_path: Path) -> None:
    for what, instead in FEWER.items():
        program = re.sub(what, instead, program)
    (tmp_path / "program.py").write_text(program)
    paths = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:stable_baselines3", "program.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert re.match(printed, result.stdout), result.stdout
    assert "deprecated" not in result.stderr


def test_every_setting_that_is_shortened_is_on_the_page() -> None:
    assert all(re.search(what, PAGE.read_text()) for what in FEWER)
