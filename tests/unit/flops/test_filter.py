"""The bitmap for the engine against what bytes really mean."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flopwatch.flops import Counted, Unknown, classify, opcode_filter
from flopwatch.flops.filter import EVEX, LEGACY, VEX, XOP, is_watched, opcode_place
from flopwatch.flops.forms import all_codes, code_info, form_of

Assemble = Callable[..., bytes]

FILTER = opcode_filter()
KNOWN = {opcode_place(code_info(code)) for code in all_codes().values()}

Place = tuple[int, int, int]


def place_of_bytes(code: bytes) -> Place:
    """Kind, map and opcode, read from the bytes as an engine would."""
    at = 0
    while code[at] in (0x66, 0xF2, 0xF3) or code[at] & 0xF0 == 0x40 or code[at] == 0x9B:
        at += 1
    first = code[at]
    if first == 0x62:
        return EVEX, code[at + 1] & 7, code[at + 4]
    if first == 0xC5:
        return VEX, 1, code[at + 2]
    if first == 0xC4:
        return VEX, code[at + 1] & 31, code[at + 3]
    if first == 0x8F and code[at + 1] & 31 >= 8:
        return XOP, (code[at + 1] & 31) - 8, code[at + 3]
    if first != 0x0F:
        return LEGACY, 0, first
    if code[at + 1] == 0x38:
        return LEGACY, 2, code[at + 2]
    if code[at + 1] == 0x3A:
        return LEGACY, 3, code[at + 2]
    return LEGACY, 1, code[at + 1]


def test_size() -> None:
    assert len(FILTER) == 4 * 8 * 256 // 8


def test_every_counted_form_is_watched_where_its_bytes_are(assemble: Assemble) -> None:
    seen = 0
    for name, code in all_codes().items():
        info, form = code_info(code), form_of(code)
        if form.work is None or opcode_place(info) is None:
            continue
        machine_code = assemble(name, mask=1 if info.require_op_mask_register else 0)
        assert place_of_bytes(machine_code) == opcode_place(info), name
        assert is_watched(FILTER, *place_of_bytes(machine_code)), name
        seen += 1
    assert seen > 700


@pytest.mark.parametrize(
    ("place", "watched"),
    [
        ((LEGACY, 0, 0xD8), True),  # fadd and its like
        ((LEGACY, 0, 0xD9), True),  # fsin, among loads
        ((LEGACY, 0, 0xDB), False),  # loads, compares, conditional moves
        ((LEGACY, 0, 0x90), False),
        ((LEGACY, 0, 0x9B), False),  # wait
        ((LEGACY, 1, 0x58), True),  # addps
        ((LEGACY, 1, 0x28), False),  # movaps
        ((LEGACY, 1, 0x0F), True),  # 3DNow!
        ((LEGACY, 1, 0xF5), True),  # pmaddwd
        ((LEGACY, 3, 0x40), True),  # dpps
        ((VEX, 1, 0x6F), False),  # vmovdqu
        ((VEX, 2, 0xB8), True),  # vfmadd231ps
        ((VEX, 2, 0x5C), True),  # tdpbf16ps
        ((VEX, 7, 0x00), True),  # nothing known there
        ((EVEX, 5, 0x58), True),  # vaddph
        ((EVEX, 6, 0x56), True),  # vfmaddcph
        ((EVEX, 1, 0x6F), False),  # vmovdqu32
        ((EVEX, 3, 0x25), False),  # vpternlogd
        ((XOP, 0, 0x95), True),  # vpmacsww
        ((XOP, 1, 0xC1), False),  # vphaddbw
    ],
)
def test_places(place: Place, watched: bool) -> None:
    assert is_watched(FILTER, *place) is watched


byte = st.integers(0, 255)
tail = st.binary(min_size=12, max_size=12)
legacy = st.builds(
    lambda prefix, escape, opcode, rest: prefix + escape + bytes([opcode]) + rest,
    st.sampled_from([b"", b"\x66", b"\xf2", b"\xf3", b"\x48", b"\x66\x48"]),
    st.sampled_from([b"\x0f", b"\x0f\x38", b"\x0f\x3a"]),
    byte,
    tail,
)
x87 = st.builds(lambda opcode, rest: bytes([opcode]) + rest, st.integers(0xD8, 0xDF), tail)
vex2 = st.builds(lambda a, opcode, rest: bytes([0xC5, a, opcode]) + rest, byte, byte, tail)
vex3 = st.builds(
    lambda top, table, a, opcode, rest: bytes([0xC4, top << 5 | table, a, opcode]) + rest,
    st.integers(0, 7),
    st.integers(0, 7),
    byte,
    byte,
    tail,
)
xop = st.builds(
    lambda top, table, a, opcode, rest: bytes([0x8F, top << 5 | table, a, opcode]) + rest,
    st.integers(0, 7),
    st.integers(8, 10),
    byte,
    byte,
    tail,
)
evex = st.builds(
    lambda top, table, a, b, opcode, rest: bytes([0x62, top << 4 | table, a | 4, b, opcode]) + rest,
    st.integers(0, 15),
    st.integers(0, 7),
    byte,
    byte,
    byte,
    tail,
)


@settings(max_examples=3000, deadline=None)
@given(st.one_of(legacy, x87, vex2, vex3, xop, evex))
def test_the_filter_overlooks_nothing(code: bytes) -> None:
    place = place_of_bytes(code)
    answer = classify(code)
    if isinstance(answer, Counted):
        assert is_watched(FILTER, *place), code.hex(" ")
    if isinstance(answer, Unknown) and place[0] != LEGACY and place not in KNOWN:
        assert is_watched(FILTER, *place), code.hex(" ")
