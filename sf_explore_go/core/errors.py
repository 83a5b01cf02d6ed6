"""Errors that the user can fix, and how a command reports them."""

import sys
from collections.abc import Callable, Sequence


class UsageError(Exception):
    """Bad input. Its text is one sentence that names the flag or file, its value and what it must be.

    Command lines print it on stderr, without a traceback, and exit with status 2.
    """


class EnvironmentFailed(Exception):
    """An environment failed, through no fault of the agent or the user."""


def run(main: Callable[[Sequence[str]], int], argv: Sequence[str]) -> int:
    """Run a verb; what the user got wrong becomes one sentence on stderr and exit status 2."""
    try:
        return main(argv)
    except UsageError as error:
        print(f"sf-explore-go: {error}", file=sys.stderr)
        return 2
