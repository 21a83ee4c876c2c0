"""The engine's decoder agrees with the decoder library about length, kind, branch target, far data and mask register."""

from __future__ import annotations

import ctypes
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iced_x86 import DecoderOptions, EncodingKind

from flopwatch.flops.forms import all_codes, code_info
from tests.unit.counters.instrumented import decoding

pytestmark = pytest.mark.engine

PIECE = 1 << 18  # bytes of each library: the whole of them takes a minute
NAMES = {code: name for name, code in all_codes().items()}


def forms_of(encodings: tuple[int, ...]) -> set[int]:
    """All forms of 64-bit code with these encodings that the decoder library decodes by default."""
    infos = {code: code_info(code) for code in NAMES}
    return {
        code
        for code, info in infos.items()
        if info.encoding in encodings
        and info.mode64
        and info.is_instruction
        and info.decoder_option == DecoderOptions.NONE
    }


@pytest.mark.parametrize(
    ("cases", "encodings"),
    [
        (decoding.legacy_cases, (EncodingKind.LEGACY, EncodingKind.D3NOW)),
        (decoding.vex_cases, (EncodingKind.VEX,)),
        (decoding.evex_cases, (EncodingKind.EVEX,)),
        (decoding.xop_cases, (EncodingKind.XOP,)),
    ],
    ids=("legacy", "vex", "evex", "xop"),
)
def test_generated_encodings(cases: Callable[[random.Random], Iterator[bytes]], encodings: tuple[int, ...]) -> None:
    found, met = decoding.compare(cases(random.Random(1)))
    assert found == []
    wanted = forms_of(encodings)
    missing = wanted - met
    # Those with operands that few bytes encode (an address size, a gather that needs SIB) are met by chance only.
    assert len(missing) < len(wanted) // 8, sorted(NAMES[code] for code in missing)


def test_groups_that_the_register_field_tells_apart() -> None:
    found, met = decoding.compare(decoding.group_cases(random.Random(1)))
    assert found == []
    assert len(met) > 30


def sections(path: Path) -> Iterator[tuple[int, bytes]]:
    """Address and bytes of the executable sections of a library."""
    listing = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    content = path.read_bytes()
    for line in listing.splitlines():
        fields = line.partition("] ")[2].split()
        if len(fields) > 7 and fields[1] == "PROGBITS" and "X" in fields[6]:
            address, offset, size = (int(field, 16) for field in fields[2:5])
            yield address, content[offset : offset + size]


def libraries() -> list[Path]:
    """Libraries that this process has mapped, the biggest first."""
    import numpy.linalg  # noqa: F401  brings a BLAS

    paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "r-xp" in line}
    found = [Path(path) for path in paths if path.startswith("/") and ".so" in path]
    return sorted(found, key=lambda path: path.stat().st_size, reverse=True)[:6]


def test_whole_libraries() -> None:
    for path in [Path(sys.executable).resolve(), *libraries()]:
        for address, code in sections(path):
            middle = max(0, len(code) // 2 - PIECE // 2)
            assert decoding.compare_text(code[middle : middle + PIECE], address + middle) == [], path


PREFIXES = st.lists(
    st.sampled_from([0x66, 0x67, 0xF2, 0xF3, 0xF0, 0x2E, 0x36, 0x64, 0x65, *range(0x40, 0x50)]), max_size=4
)
STARTS = st.sampled_from(
    [b"", b"\x0f", b"\x0f\x38", b"\x0f\x3a", b"\xc4\xe2", b"\xc5", b"\x62\xf1", b"\x62\xf5", b"\x8f\xe9"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(PREFIXES, STARTS, st.binary(min_size=12, max_size=12)), min_size=20, max_size=60))
def test_any_bytes(cases: list[tuple[list[int], bytes, bytes]]) -> None:
    found, _ = decoding.compare(bytes(prefixes) + start + rest for prefixes, start, rest in cases)
    assert found == []


def test_what_the_engine_must_refuse() -> None:
    """Encodings of instruction sets that it hides from programs: wrong lengths would be worse than none."""
    native = decoding.Decoded()
    for code in (bytes.fromhex("62f47c08ff30"), bytes.fromhex("62f07c08ff30")):
        memory = ctypes.create_string_buffer(code, 32)
        assert decoding.engine().flopwatch_decode(ctypes.addressof(memory), 0, native) == 0
