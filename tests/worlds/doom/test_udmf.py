"""UDMF text: read as the specification says, changed only where asked, refused with the line where it is broken."""

import contextlib
import re
from pathlib import Path

import pytest
import vizdoom
from hypothesis import given, settings
from hypothesis import strategies as st

from sf_explore_go.worlds.doom.udmf import Block, UdmfError, parse_textmap, replace_values
from sf_explore_go.worlds.doom.wad import read_wad

STOCK = read_wad(Path(vizdoom.scenarios_path) / "my_way_home.wad").lumps[1].data


def test_values_of_every_kind() -> None:
    text = b"""
    namespace = "zdoom"; // a comment with { and ;
    Thing /* block
    comment */ { id = 7; x = -1.5e2; y=.5; Hex = 0x1F; name = "a \\"quoted\\" name";
    flag = TRUE; off = false; w = word; }
    thing{}
    """
    things = parse_textmap(text).things
    assert [thing.kind for thing in things] == ["thing", "thing"]
    assert things[0].values == {
        "id": 7, "x": -150.0, "y": 0.5, "hex": 31, "name": 'a "quoted" name', "flag": True, "off": False, "w": "word",
    }  # fmt: skip
    assert things[1].values == {}


def test_stock_map_has_the_blocks_that_a_plain_search_finds() -> None:
    textmap = parse_textmap(STOCK)
    for kind in ("thing", "vertex", "linedef", "sidedef", "sector"):
        assert len(textmap.of_kind(kind)) == len(re.findall(rf"^{kind} // \d+$".encode(), STOCK, re.MULTILINE)) > 0
    assert [thing.values["type"] for thing in textmap.things] == [2018, 1] + [9001] * 17
    assert (len(textmap.vertices), len(textmap.linedefs), len(textmap.sectors)) == (76, 94, 18)
    assert len(textmap.sidedefs) == sum(1 + ("sideback" in line.values) for line in textmap.linedefs)


def test_a_change_touches_nothing_else() -> None:
    text = b"thing { x = 1.000; y = 2; } /* x = 1 */ thing { x = 3; } // end"
    changed = replace_values(parse_textmap(text), {1: {"x": "-44.5"}, 0: {"y": "9", "x": "8.25"}})
    assert changed == b"thing { x = 8.25; y = 9; } /* x = 1 */ thing { x = -44.5; } // end"
    assert replace_values(parse_textmap(STOCK), {}) == STOCK


def test_a_new_key_goes_to_the_beginning_of_its_block() -> None:
    text = b"linedef // 0\n{\nv1 = 1;\n}\nlinedef{}"
    changed = replace_values(parse_textmap(text), {0: {"v1": "7", "blocking": "true"}, 1: {"blocking": "false"}})
    assert changed == b"linedef // 0\n{\nblocking = true;\nv1 = 7;\n}\nlinedef{\nblocking = false;}"
    assert [line.values for line in parse_textmap(changed).linedefs] == [
        {"v1": 7, "blocking": True},
        {"blocking": False},
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"thing", "the text ends too early at line 1"),
        (b"thing {", "the text ends too early"),
        (b"thing {\n x = 1 }", "'}' is out of place at line 2"),
        (b"\n\nthing { x = ; }", "';' is out of place at line 3"),
        (b"{ }", "'{' is out of place"),
        (b'thing { x = "unclosed; }', "not UDMF"),
        (b"/* unclosed", "not UDMF"),
        (b"thing { x = \x00; }", "not UDMF"),
        (b"thing { x = " + b"9" * 5000 + b"; }", "a number is too long"),
    ],
)
def test_broken_text_is_refused_with_its_line(text: bytes, reason: str) -> None:
    with pytest.raises(UdmfError, match=re.escape(reason)) as caught:
        parse_textmap(text, "a.wad: TEXTMAP")
    assert str(caught.value).startswith("a.wad: TEXTMAP: ")


nearly_udmf = st.text('thing{}=;/*"\\ \n0x1.e-', max_size=200).map(lambda text: text.encode("latin-1"))


@given(st.binary(max_size=300) | nearly_udmf)
def test_arbitrary_text_parses_or_raises_udmf_error(text: bytes) -> None:
    with contextlib.suppress(UdmfError):
        assert replace_values(parse_textmap(text), {}) == text


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, len(STOCK) - 1), st.integers(0, 255)), max_size=6), st.integers(0, len(STOCK)))
def test_damaged_stock_map_parses_or_raises_udmf_error(damage: list[tuple[int, int]], length: int) -> None:
    text = bytearray(STOCK)
    for place, value in damage:
        text[place] = value
    for candidate in (bytes(text), bytes(text[:length])):
        with contextlib.suppress(UdmfError):
            assert replace_values(parse_textmap(candidate), {}) == candidate


@pytest.mark.parametrize("text", [b"/*" * 150_000, b'"' + b"\\" * 300_000, b" " * 300_000 + b"\0"])
@pytest.mark.timeout(10)
def test_hostile_text_costs_linear_time(text: bytes) -> None:
    with pytest.raises(UdmfError):
        parse_textmap(text)


def test_numbers_and_indices_are_checked() -> None:
    block = Block("linedef", {"v1": 3, "x": "far", "flag": True})
    assert block.number("v1") == 3
    assert block.number("missing", 2.5) == 2.5
    assert block.index("v1", 4) == 3
    assert block.index("sideback", 4, default=-1) == -1
    for key in ("x", "flag", "missing"):
        with pytest.raises(UdmfError, match=f"a linedef has {key} = "):
            block.number(key)
        with pytest.raises(UdmfError, match=f"a linedef has {key} = "):
            block.index(key, 4)
    with pytest.raises(UdmfError, match="v1 = 3; it must be from 0 to 2"):
        block.index("v1", 3)
