"""Programs that pip cannot install, for the few tests that need them.

**This installs packages on your system**: as root on Debian, what is missing is installed with apt-get, and a
warning of the test says so. As anybody else nothing is installed and the test is skipped, saying why.
"""

import os
import shutil
import subprocess
import warnings
from collections.abc import Sequence

import pytest


def require(programs: Sequence[str], packages: Sequence[str]) -> None:
    """Skip the test unless these programs are there; as root, install the Debian packages that hold them first."""
    if not (lacking := missing(programs)):
        return
    what = f"{', '.join(lacking)} missing; apt-get install {' '.join(packages)}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip(f"{what} would help, and only root on Debian may")
    warnings.warn(f"installing system packages: {what}", stacklevel=2)
    install(packages)
    if missing(programs):
        pytest.skip(f"{what} was tried and did not help")


def missing(programs: Sequence[str]) -> list[str]:
    return [program for program in programs if shutil.which(program) is None]


def install(packages: Sequence[str]) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        subprocess.run(
            ["apt-get", *words], env=environment, check=False, timeout=600,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
