"""Read the TEXTMAP of a UDMF map, and change values in it without touching any other byte.

UDMF is text: assignments `key = value;` and blocks `kind { key = value; ... }`, with C comments.
Specification: https://github.com/ZDoom/gzdoom/blob/master/specs/udmf.txt
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sf_explore_go.core.errors import UsageError

Value = int | float | bool | str

# Neither pattern matches in two ways, so damaged input costs linear time. Possessive quantifiers would say so, but
# around alternatives they are wrong in the Python 3.11.2 that Debian ships.
BLANK = re.compile(r"\s+|//[^\n]*|/\*.*?\*/", re.ASCII | re.DOTALL)
TOKEN = re.compile(
    r"""(?P<word>[A-Za-z_]\w*)
       |(?P<number>[-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?))
       |(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
       |(?P<mark>[{}=;])
       |(?P<end>\Z)""",
    re.VERBOSE | re.ASCII | re.DOTALL,
)


class UdmfError(UsageError):
    """A text that is not UDMF; the sentence names the source and the line."""


@dataclass(frozen=True)
class Block:
    """A `kind { ... }` block; `spans` says where in the text each value stands, `start` where the first one may."""

    kind: str
    values: dict[str, Value] = field(default_factory=dict)
    spans: dict[str, tuple[int, int]] = field(default_factory=dict)
    start: int = 0

    def number(self, key: str, default: float | None = None) -> float:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UdmfError(f"a {self.kind} has {key} = {value!r}; it must be a number")
        return value

    def index(self, key: str, size: int, default: int | None = None) -> int:
        """The value as an index into a list of `size` entries (or the default, where there is none)."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not (0 <= value < size or value == default):
            raise UdmfError(f"a {self.kind} has {key} = {value!r}; it must be from 0 to {size - 1}")
        return value


@dataclass(frozen=True)
class TextMap:
    text: str
    blocks: tuple[Block, ...]

    def of_kind(self, kind: str) -> list[Block]:
        """The blocks of a kind, in order: a vertex, sidedef or sector is named by its place in this list."""
        return [block for block in self.blocks if block.kind == kind]

    @property
    def things(self) -> list[Block]:
        return self.of_kind("thing")

    @property
    def vertices(self) -> list[Block]:
        return self.of_kind("vertex")

    @property
    def linedefs(self) -> list[Block]:
        return self.of_kind("linedef")

    @property
    def sidedefs(self) -> list[Block]:
        return self.of_kind("sidedef")

    @property
    def sectors(self) -> list[Block]:
        return self.of_kind("sector")


def parse_textmap(data: bytes, source: str = "TEXTMAP") -> TextMap:
    """All blocks of a TEXTMAP lump. Latin-1 keeps offsets in text and bytes the same."""
    text = data.decode("latin-1")
    return TextMap(text, tuple(_Parser(text, source).blocks()))


def replace_values(textmap: TextMap, changes: Mapping[int, Mapping[str, str]]) -> bytes:
    """The TEXTMAP lump with new values: index of a block -> key -> the value's new text. All else stays as it was.

    A key that the block does not have yet is written at the block's beginning.
    """
    edits: list[tuple[tuple[int, int], str]] = []
    for i, keys in changes.items():
        block = textmap.blocks[i]
        for key, new in keys.items():
            span = block.spans.get(key)
            edits.append((span, new) if span else ((block.start, block.start), f"\n{key} = {new};"))
    text = textmap.text
    for (start, end), new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text.encode("latin-1")


class _Token(NamedTuple):
    kind: str  # word, number, string, mark or end
    text: str
    start: int
    end: int


class _Parser:
    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.position = text, source, 0

    def blocks(self) -> Iterator[Block]:
        while (name := self.take("word", "end")).kind != "end":
            if self.take("{", "=").text == "{":
                yield self.block(name.text.lower())
            else:
                self.value()

    def block(self, kind: str) -> Block:
        block = Block(kind, start=self.position)
        while (key := self.take("word", "}")).text != "}":
            self.take("=")
            block.values[key.text.lower()], block.spans[key.text.lower()] = self.value()
        return block

    def value(self) -> tuple[Value, tuple[int, int]]:
        token = self.take("word", "number", "string")
        self.take(";")
        try:
            return _literal(token), (token.start, token.end)
        except ValueError as error:  # Python refuses to read numbers of thousands of digits
            raise self.error("a number is too long", token.start) from error

    def take(self, *allowed: str) -> _Token:
        """The next token, which must be of an allowed kind or be one of the allowed marks."""
        while blank := BLANK.match(self.text, self.position):
            self.position = blank.end()
        match = TOKEN.match(self.text, self.position)
        if match is None or match.lastgroup is None:
            raise self.error("this is not UDMF", self.position)
        token = _Token(match.lastgroup, match[match.lastgroup], *match.span(match.lastgroup))
        if token.kind not in allowed and token.text not in allowed:
            found = "the text ends too early" if token.kind == "end" else f"{token.text[:20]!r} is out of place"
            raise self.error(found, token.start)
        self.position = token.end
        return token

    def error(self, what: str, position: int) -> UdmfError:
        return UdmfError(f"{self.source}: {what} at line {self.text.count(chr(10), 0, position) + 1}")


def _literal(token: _Token) -> Value:
    if token.kind == "string":
        return re.sub(r"\\(.)", r"\1", token.text[1:-1], flags=re.DOTALL)
    if token.kind == "word":
        return {"true": True, "false": False}.get(token.text.lower(), token.text)
    if re.fullmatch(r"[-+]?\d+", token.text):
        return int(token.text)
    return int(token.text, 16) if "x" in token.text.lower() else float(token.text)
