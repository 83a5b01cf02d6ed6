"""WAD files: exact round trips, and one sentence for anything malformed."""

import contextlib
import struct
import tracemalloc
from pathlib import Path

import pytest
import vizdoom
from hypothesis import given, settings
from hypothesis import strategies as st

from sf_explore_go.worlds.doom.wad import Lump, Wad, WadError, find_lump, parse_wad, read_wad, wad_bytes

STOCK = Path(vizdoom.scenarios_path) / "my_way_home.wad"
STOCK_BYTES = STOCK.read_bytes()

names = st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=8)
wads = st.builds(
    Wad,
    st.sampled_from(["IWAD", "PWAD"]),
    st.lists(st.builds(Lump, names, st.binary(max_size=200)), max_size=12).map(tuple),
)


def header(kind: bytes = b"PWAD", count: int = 0, directory: int = 12) -> bytes:
    return struct.pack("<4sii", kind, count, directory)


def one_lump(offset: int, size: int) -> bytes:
    return header(count=1) + struct.pack("<ii8s", offset, size, b"DATA")


@given(wads)
def test_round_trip_is_exact(wad: Wad) -> None:
    data = wad_bytes(wad)
    assert parse_wad(data) == wad
    assert wad_bytes(parse_wad(data)) == data


def test_layout_is_the_documented_one() -> None:
    data = wad_bytes(Wad("PWAD", (Lump("MAP01", b""), Lump("TEXTMAP", b"abc"))))
    directory = struct.pack("<ii8sii8s", 12, 0, b"MAP01", 12, 3, b"TEXTMAP")
    assert data == struct.pack("<4sii", b"PWAD", 2, 15) + b"abc" + directory


@pytest.mark.parametrize("path", sorted(Path(vizdoom.scenarios_path).glob("*.wad")), ids=lambda path: path.stem)
def test_the_lumps_of_every_scenario_of_vizdoom_survive(path: Path) -> None:
    wad = read_wad(path)
    assert parse_wad(wad_bytes(wad)) == wad
    assert sum(len(lump.data) for lump in wad.lumps) + 16 * len(wad.lumps) + 12 <= path.stat().st_size


def test_the_stock_scenario_comes_back_to_the_byte() -> None:
    wad = read_wad(STOCK)
    assert " ".join(lump.name for lump in wad.lumps) == "MAP01 TEXTMAP BEHAVIOR DIALOGUE ZNODES SCRIPTS ENDMAP"
    assert wad_bytes(wad) == STOCK_BYTES
    assert find_lump(wad.lumps, "BEHAVIOR") == wad.lumps[2]
    assert find_lump(wad.lumps, "NOSUCH") is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it has 0 bytes; the header"),
        (b"PWAD\0\0\0\0\0\0\0", "it has 11 bytes; the header"),
        (b"\x89PNG" + bytes(20), "starts with b'\\x89PNG'"),
        (header(count=-1), "negative numbers (-1 lumps"),
        (header(directory=-12), "directory at -12"),
        (header(count=1), "ends outside the file of 12 bytes"),
        (header(count=2**31 - 1), "2147483647 lumps"),
        (header(count=1, directory=2**31 - 1), "at byte 2147483647"),
        (one_lump(12, 17), "lump 'DATA' (offset 12, size 17) ends outside the file of 28 bytes"),
        (one_lump(2**31 - 1, 1), "offset 2147483647"),
        (one_lump(-1, 4), "offset -1"),
        (one_lump(12, -4), "size -4"),
    ],
)
def test_malformed_input_is_named_in_one_sentence(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "bad.wad"
    path.write_bytes(data)
    with pytest.raises(WadError) as caught:
        read_wad(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_not_a_readable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WadError, match="no such file"):
        read_wad(tmp_path / "missing.wad")
    with pytest.raises(WadError, match="not a regular file"):
        read_wad(tmp_path)
    with pytest.raises(WadError, match="not a regular file"):
        read_wad("/dev/zero")
    huge = tmp_path / "huge.wad"
    with huge.open("wb") as file:
        file.truncate(1 << 33)  # sparse: takes no room
    with pytest.raises(WadError, match="it has 8589934592 bytes; a WAD must have at most"):
        read_wad(huge)


def test_an_empty_marker_may_point_anywhere() -> None:
    assert parse_wad(one_lump(2**31 - 1, 0)).lumps == (Lump("DATA", b""),)


@given(st.binary(max_size=400) | st.binary(max_size=400).map(lambda tail: b"PWAD" + tail))
def test_arbitrary_bytes_parse_or_raise_wad_error(data: bytes) -> None:
    parse_or_refuse(data)


@settings(max_examples=300)
@given(st.data())
def test_mutated_real_wad_parses_or_raises_wad_error(data: st.DataObject) -> None:
    mutated = bytearray(STOCK_BYTES)
    # Header and directory are where the numbers are, so most of the damage goes there.
    places = st.integers(0, 11) | st.integers(28357, len(STOCK_BYTES) - 1) | st.integers(0, len(STOCK_BYTES) - 1)
    for place, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)), min_size=1, max_size=8)):
        mutated[place] = value
    parse_or_refuse(bytes(mutated[: data.draw(st.none() | st.integers(0, len(mutated)))]))


def parse_or_refuse(data: bytes) -> None:
    with contextlib.suppress(WadError):
        wad = parse_wad(data)
        assert sum(len(lump.data) for lump in wad.lumps) <= len(data)
        assert parse_wad(wad_bytes(wad)) == wad


def test_lumps_that_overlap_cannot_fill_the_memory() -> None:
    count, size = 20_000, 500_000  # 10 GB, were every lump copied out
    body = bytes(size)
    data = header(count=count, directory=12 + size) + body + struct.pack("<ii8s", 12, size, b"BOMB") * count
    tracemalloc.start()
    try:
        with pytest.raises(WadError, match="together are larger than the file"):
            parse_wad(data)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["NINECHARS", "A\0B"])
def test_a_name_that_does_not_fit_is_not_written(name: str) -> None:
    with pytest.raises(ValueError, match="at most 8 characters"):
        wad_bytes(Wad("PWAD", (Lump(name, b""),)))
