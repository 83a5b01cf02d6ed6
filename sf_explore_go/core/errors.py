"""Errors that are the user's to mend."""


class UsageError(Exception):
    """Bad input. Its text is one sentence that names the flag or file, its value and what is allowed.

    Command lines print it on stderr, without a traceback, and exit with status 2.
    """
