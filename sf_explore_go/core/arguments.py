"""An argument parser that refuses a bad flag the way the whole project does: in one sentence, as a UsageError."""

import argparse
from typing import Any, NoReturn

from sf_explore_go.core.errors import UsageError


class ArgumentParser(argparse.ArgumentParser):
    """`argparse`, without abbreviated flags, and without the usage text before an error."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog.split()[-1]}: {message}")


def require_at_least(options: argparse.Namespace, **least: int) -> None:
    """Refuse a flag whose number is too small, e.g. `require_at_least(options, episodes=1)`."""
    for name, allowed in least.items():
        if getattr(options, name) < allowed:
            raise UsageError(f"--{name}={getattr(options, name)}: allowed are whole numbers from {allowed}")
