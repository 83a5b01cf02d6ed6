"""An argument parser that refuses a bad flag the way the whole project does: in one sentence, as a UsageError."""

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from sf_explore_go.core.errors import UsageError

FLAG = re.compile(r"--?[A-Za-z]")  # how a flag begins, and no number does


def whole_number(text: str) -> int:
    """What a flag of type int takes: 1000000, 1_000_000 and 1e6, but not 1.5."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not number.is_integer():
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, such as 20 or 1e6")
    return int(number)


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """A question to end a sentence with if one of the names resembles the word, else nothing."""
    close = difflib.get_close_matches(word, list(names), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def boolean(text: str) -> bool:
    """The type of a flag that is True or False."""
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text!r} must be True or False")
    return text.lower() == "true"


class ArgumentParser(argparse.ArgumentParser):
    """`argparse` without abbreviated flags, without the usage text before an error, and with 1e6 as a whole number."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_abbrev=False, **kwargs)
        self.register("type", int, whole_number)  # flags keep type=int, also those that Sample Factory adds

    def flags(self) -> dict[str, argparse.Action]:
        """What it understands, by name."""
        return dict(self._option_string_actions)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog.split()[-1]}: {message}")

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Refuse unknown flags first, so that the error names a misspelt flag and not the one that is then missing."""
        words = list(sys.argv[1:] if args is None else args)
        for word in words[: words.index("--")] if "--" in words else words:
            name = word.split("=")[0]
            if FLAG.match(word) and name not in self._option_string_actions:
                self.error(f"unknown flag {word}{did_you_mean(name, self._option_string_actions)}")
        return super().parse_known_args(args, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            sentence = f"{value!r} must be one of {', '.join(names)}{did_you_mean(str(value), names)}"
            raise argparse.ArgumentError(action, sentence)


def require_at_least(options: argparse.Namespace, **least: int) -> None:
    """Refuse a flag whose number is too small, e.g. `require_at_least(options, episodes=1)`."""
    for name, smallest in least.items():
        if getattr(options, name) < smallest:
            raise UsageError(f"--{name}={getattr(options, name)}: it must be a whole number, at least {smallest}")


def flag_words(flags: Mapping[str, Any], where: str) -> list[str]:
    """`{a: 1, b: [2, 3]}` as command-line words: `--a=1 --b 2 3`."""
    words: list[str] = []
    for name, value in flags.items():
        if not re.fullmatch(r"\w+", name):
            raise UsageError(f"{where}.{name}: it must be the name of a flag")
        if isinstance(value, list):
            if not value or not all(isinstance(one, int | float | str) for one in value):
                raise UsageError(f"{where}.{name} = {value!r}: it must be a non-empty list of numbers or words")
            words += [f"--{name}", *map(str, value)]
        elif isinstance(value, bool | int | float | str):
            words.append(f"--{name}={value}")
        else:
            raise UsageError(f"{where}.{name} = {value!r}: it must be a number, a word, true, false or a list")
    return words
