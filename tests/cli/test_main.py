"""The command line as a whole."""

import os
import subprocess
import sys

import pytest


def test_a_reader_that_has_gone_is_no_traceback() -> None:
    """As in `sf-explore-go train --help | head`."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "sf_explore_go", "train", "--help_all"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("verb", ["report", "sweep", "tensorboard", "map"])
def test_verbs_that_need_no_network_load_none(verb: str) -> None:
    """torch and Sample Factory take a second to load."""
    program = (
        f"import sys, sf_explore_go.cli.{verb}; print([n for n in ('torch', 'sample_factory') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
