from pathlib import Path

import pytest

from sf_explore_go.demo import main
from sf_explore_go.errors import UsageError


def test_demo_ends_with_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "new" / "map.png"
    assert main(["--episodes=2", f"--picture={picture}"]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    lines = capsys.readouterr().out.strip().split("\n")
    assert sum(line.startswith("  goal ") for line in lines) == 2
    assert lines[-1].endswith(str(picture))


def test_demo_refuses_no_episodes() -> None:
    with pytest.raises(UsageError, match=r"^--episodes=0: allowed are whole numbers from 1$"):
        main(["--episodes=0"])
