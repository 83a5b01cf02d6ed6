"""The demo, shortened."""

from pathlib import Path

import pytest

from sf_explore_go.cli.demo import main
from sf_explore_go.core.errors import UsageError


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_demo_trains_both_arms_and_ends_with_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new"
    flags = [f"--folder={folder}", "--episodes=2", "--seeds=1", "--frames=1000", "--doom_frames=30000"]
    flags.append("--eval_episodes=2")
    assert main(flags) == 0
    for picture in ("map.png", "illustrative/figure.png", "my_way_home/figure.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")
    out = capsys.readouterr().out
    assert sum(line.startswith("  goal ") for line in out.splitlines()) == 2
    for run in ("k0_seed0", "k8_seed0", "k0", "k100"):
        assert f"  {run}: success " in out
    assert f"  k100: training; watch it with tail -f {folder / 'runs/my_way_home/k100.log'}" in out
    assert "frames" in (folder / "runs/my_way_home/k100.log").read_text()
    # a second call draws again, without training again
    assert main([*flags, "--doom_frames=0"]) == 0
    assert capsys.readouterr().out.count("already done") == 2


@pytest.mark.parametrize(("flag", "least"), [("--episodes=0", "1"), ("--seeds=-1", "0"), ("--frames=10", "1000")])
def test_demo_refuses_bad_numbers(flag: str, least: str) -> None:
    with pytest.raises(UsageError, match=rf"^{flag}: it must be a whole number, at least {least}$"):
        main([flag])
