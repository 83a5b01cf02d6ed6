"""Read and write WAD files: a 12-byte header, the lumps' bytes, and a directory of (offset, size, name) entries.

omgifol 0.5.1 (MIT, no dependencies, last released in 2023) was tried and left aside: it opens files for writing, makes
those that are missing, returns short data for a lump that lies outside the file, and its `rewrite` fails on Python 3.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sf_explore_go.core.errors import UsageError

HEADER = struct.Struct("<4sii")  # kind, number of lumps, offset of the directory
ENTRY = struct.Struct("<ii8s")  # offset, size, name padded with NUL
MAX_BYTES = 1 << 28  # 256 MiB, ten times a commercial game; keeps a wrong path from filling the memory


class WadError(UsageError):
    """A file that is not a sound WAD; the text names the file and what is wrong with it."""


class Lump(NamedTuple):
    name: str  # at most 8 characters, Latin-1
    data: bytes


@dataclass(frozen=True)
class Wad:
    kind: str  # "IWAD" or "PWAD"
    lumps: tuple[Lump, ...]


def read_wad(path: str | Path) -> Wad:
    """The WAD in this file."""
    return parse_wad(read_file(path), path)


def read_file(path: str | Path) -> bytes:
    """The bytes of a file of reasonable size, or a WadError."""
    path = Path(path)
    try:
        if not path.is_file():
            raise WadError(f"{path}: " + ("not a regular file" if path.exists() else "no such file"))
        if path.stat().st_size > MAX_BYTES:
            raise WadError(f"{path}: it has {path.stat().st_size} bytes; a WAD must have at most {MAX_BYTES}")
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise WadError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error


def parse_wad(data: bytes, source: str | Path = "WAD") -> Wad:
    """The WAD in these bytes; `source` is how errors name it.

    Lumps that share bytes (some WAD compressors make them) are refused once they add up to more than the file.
    """
    if len(data) < HEADER.size:
        raise WadError(f"{source}: it has {len(data)} bytes; the header of a WAD alone has {HEADER.size}")
    kind, count, directory = HEADER.unpack_from(data)
    if kind not in (b"IWAD", b"PWAD"):
        raise WadError(f"{source}: it is not a WAD: it starts with {kind!r} instead of b'IWAD' or b'PWAD'")
    if count < 0 or directory < 0:
        raise WadError(f"{source}: the header has negative numbers ({count} lumps, directory at {directory})")
    if directory + count * ENTRY.size > len(data):
        raise WadError(
            f"{source}: the directory ({count} lumps, at byte {directory}) ends outside the file of {len(data)} bytes"
        )
    raw_entries = ENTRY.iter_unpack(data[directory : directory + count * ENTRY.size])
    entries = [_entry(data, source, *entry) for entry in raw_entries]
    if sum(size for _, _, size in entries) > len(data):
        raise WadError(f"{source}: the lumps together are larger than the file of {len(data)} bytes")
    return Wad(kind.decode(), tuple(Lump(name, data[offset : offset + size]) for name, offset, size in entries))


def _entry(data: bytes, source: str | Path, offset: int, size: int, raw_name: bytes) -> tuple[str, int, int]:
    """Name, offset and size of a lump, checked."""
    name = raw_name.split(b"\0")[0].decode("latin-1")
    if offset < 0 or size < 0:
        raise WadError(f"{source}: lump {name!r} has negative numbers (offset {offset}, size {size})")
    # Markers are empty, and their offset means nothing.
    if size and offset + size > len(data):
        raise WadError(
            f"{source}: lump {name!r} (offset {offset}, size {size}) ends outside the file of {len(data)} bytes"
        )
    return name, offset, size


def wad_bytes(wad: Wad) -> bytes:
    """The file for this WAD: header, lumps in order without gaps, directory. The same WAD gives the same bytes."""
    body, directory = bytearray(), bytearray()
    for lump in wad.lumps:
        directory += ENTRY.pack(HEADER.size + len(body), len(lump.data), _raw_name(lump.name))
        body += lump.data
    return HEADER.pack(wad.kind.encode(), len(wad.lumps), HEADER.size + len(body)) + bytes(body + directory)


def _raw_name(name: str) -> bytes:
    raw = name.encode("latin-1")
    if len(raw) > 8 or b"\0" in raw:
        raise ValueError(f"lump name {name!r}: it must have at most 8 characters and no NUL")
    return raw


def find_lump(lumps: Iterable[Lump], name: str) -> Lump | None:
    """The first lump of this name."""
    return next((lump for lump in lumps if lump.name == name), None)
