"""Tests may install what they need only as root, and say so."""

import os
from pathlib import Path

import pytest

from tests.system_packages import require

APT = """#!/bin/sh
echo "$@" >> {folder}/calls
[ "$1" != install ] || {{ echo '#!/bin/sh' > {folder}/rare-program; chmod +x {folder}/rare-program; }}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs besides the system's; its apt-get notes what it is called with."""
    (tmp_path / "apt-get").write_text(APT.format(folder=tmp_path))
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return tmp_path


def become(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)


def test_without_root_nothing_is_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    become(1000, monkeypatch)
    with pytest.raises(pytest.skip.Exception, match=r"rare-program missing; apt-get install rare-package .* only root"):
        require(["sh", "rare-program"], ["rare-package"])
    assert not (folder / "calls").exists()


def test_root_installs_and_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    become(0, monkeypatch)
    with pytest.warns(UserWarning, match="installing system packages: rare-program missing"):
        require(["sh", "rare-program"], ["rare-package"])
    calls = (folder / "calls").read_text().splitlines()
    assert calls == ["update -qq", "install -y -qq --no-install-recommends rare-package"]
    require(["rare-program"], ["rare-package"])  # no second time
    assert (folder / "calls").read_text().splitlines() == calls


def test_what_did_not_help_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    become(0, monkeypatch)
    skipped = pytest.raises(pytest.skip.Exception, match=r"other-program missing.*did not help")
    with pytest.warns(UserWarning, match="installing system packages"), skipped:
        require(["other-program"], ["rare-package"])
