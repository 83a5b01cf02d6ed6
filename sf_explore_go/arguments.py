"""An argument parser that refuses a bad flag the way the whole project does: in one sentence, as a UsageError."""

import argparse
from typing import Any, NoReturn

from sf_explore_go.errors import UsageError


class ArgumentParser(argparse.ArgumentParser):
    """`argparse`, without abbreviated flags, and without the usage text before an error."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog.split()[-1]}: {message}")
