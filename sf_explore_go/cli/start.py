"""`python -m sf_explore_go.cli.start FILE_NUMBER [--exit_file=FILE] VERB ...`: a verb that keeps a lock to itself.

The lock is inherited. Without this, programs that the training starts in turn (torch's helper for shared memory is one)
would hold it as well, and a run that has ended would look as if it were still going. FILE gets the exit status.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

from sf_explore_go.cli.main import main

EXIT_FILE = "--exit_file="


def start(lock: str, *words: str) -> int:
    os.set_inheritable(int(lock), False)
    if not words[0].startswith(EXIT_FILE):
        return main(words)
    status = main(words[1:])
    with suppress(OSError):  # a full disk does not undo what the run has reached
        Path(words[0].removeprefix(EXIT_FILE)).write_text(f"{status}\n")
    return status


if __name__ == "__main__":
    sys.exit(start(*sys.argv[1:]))
