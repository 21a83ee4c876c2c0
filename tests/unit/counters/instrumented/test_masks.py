"""Masked instructions: the engine and the host agree which they are, in what order, and which mask bits count."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable

import pytest
from iced_x86 import Code, Decoder, EncodingKind, Instruction

from flopwatch.counters.instrumented.masks import masked_offsets
from flopwatch.flops.filter import is_watched, opcode_filter
from flopwatch.flops.forms import all_codes, code_info, form_of
from tests.unit.counters.instrumented import decoding

pytestmark = pytest.mark.engine

Assemble = Callable[..., bytes]
MASKABLE = sorted(
    name
    for name, code in all_codes().items()
    if code_info(code).encoding == EncodingKind.EVEX and code_info(code).can_use_op_mask_register and form_of(code).work
)


def lanes(code: bytes) -> int:
    memory = ctypes.create_string_buffer(code + bytes(16))
    return int(decoding.engine().flopwatch_mask_lanes(ctypes.addressof(memory)))


def test_there_are_many_forms() -> None:
    assert len(MASKABLE) > 300


def test_mask_bits_of_every_maskable_form() -> None:
    from tests.unit.flops.conftest import assemble_form

    for name in MASKABLE:
        work, info = form_of(all_codes()[name]).work, code_info(all_codes()[name])
        assert work is not None
        for options in ({}, {"broadcast": True}, {"rounding": True}):
            if options.get("broadcast") and not info.can_broadcast:
                continue
            if options.get("rounding") and not info.can_use_rounding_control:
                continue
            code = assemble_form(name, mask=3, **options)
            assert lanes(code) == work.mask_bits, (name, options, code.hex())


def watched_by_the_engine(code: bytes) -> list[int]:
    """Offsets as record() in translate.c finds them: a mask register, and an opcode that the bitmap holds."""
    memory = ctypes.create_string_buffer(code + bytes(16))
    native, at, found = decoding.Decoded(), 0, []
    while at < len(code):
        length = decoding.engine().flopwatch_decode(ctypes.addressof(memory) + at, at, ctypes.byref(native))
        assert length > 0
        if native.mask and is_watched(opcode_filter(), native.encoding, native.map, native.opcode):
            found.append(at)
        at += length
    return found


def valid_cases(seed: int) -> list[bytes]:
    """EVEX instructions of all kinds, among plain ones."""
    rng = random.Random(seed)
    cases = [*decoding.evex_cases(rng)]
    rng.shuffle(cases)
    found = []
    instruction = Instruction()
    for case in cases[:20000]:
        Decoder(64, case[:15]).decode_out(instruction)
        if instruction.code != Code.INVALID:
            found.append(case[: instruction.len])
    return [*found, b"\x90", b"\x48\x01\xd8", b"\xc5\xfc\x58\xc0", b"\x0f\x58\xc1"]


def test_both_number_masked_instructions_alike() -> None:
    rng = random.Random(3)
    cases = valid_cases(3)
    numbered = 0
    for _ in range(300):
        block = b"".join(rng.choices(cases, k=rng.randrange(1, 24)))
        offsets = list(masked_offsets(block))
        assert offsets == watched_by_the_engine(block), block.hex()
        numbered += len(offsets)
    assert numbered > 200
