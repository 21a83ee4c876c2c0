"""The engine's decoder beside the decoder library: what both say about the same bytes."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from iced_x86 import Code, Decoder, EncodingKind, FlowControl, Instruction, Mnemonic, Register

from flopwatch.counters.instrumented import library

PLAIN, JCC, JMP, CALL, JMP_INDIRECT, CALL_INDIRECT, RET, LOOP, SYSCALL, CPUID, XBEGIN, TRAP, UNSUPPORTED = range(13)
SLOT = 16  # an instruction has 15 bytes at most
BASE = 0x5000_0000_0000


class Decoded(ctypes.Structure):
    """struct Instruction of engine.h."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("branch", ctypes.c_uint64),
        *((name, ctypes.c_uint8) for name in ("length", "kind", "encoding", "map", "opcode", "prefixes", "rex")),
        *((name, ctypes.c_uint8) for name in ("opcode_at", "modrm_at", "displacement_at", "address32", "operand16")),
        *((name, ctypes.c_uint8) for name in ("repeat", "mask")),
    )


@cache
def engine() -> ctypes.CDLL:
    """The engine's shared object, loaded and otherwise left alone."""
    path = library.find()
    assert path is not None, "the engine has not been built"
    found = ctypes.CDLL(str(path))
    found.flopwatch_decode.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(Decoded))
    found.flopwatch_mask_lanes.argtypes = (ctypes.c_void_p,)
    return found


_LOOPS = {Mnemonic.LOOP, Mnemonic.LOOPE, Mnemonic.LOOPNE, Mnemonic.JRCXZ, Mnemonic.JECXZ}
_TRAPS = {Mnemonic.UD0, Mnemonic.UD1, Mnemonic.UD2, Mnemonic.INT3, Mnemonic.INT1, Mnemonic.HLT}
_FAR = {
    Mnemonic.SYSENTER,
    Mnemonic.SYSEXIT,
    Mnemonic.SYSRET,
    Mnemonic.IRET,
    Mnemonic.IRETD,
    Mnemonic.IRETQ,
    Mnemonic.INT,
}
_FAR |= {Mnemonic.SYSEXITQ, Mnemonic.SYSRETQ, Mnemonic.RETF, Mnemonic.UIRET}
# These go elsewhere only for an operating system; in a program they fault, as copies do too.
_PRIVILEGED = {Mnemonic.RSM, Mnemonic.SKINIT, Mnemonic.ERETU, Mnemonic.ERETS}


def kind_of(instruction: Instruction) -> int:
    """The engine's kind of an instruction, by the decoder library's facts."""
    mnemonic = instruction.mnemonic
    if mnemonic in _PRIVILEGED:
        return PLAIN
    if mnemonic in _LOOPS:
        return LOOP
    if mnemonic in _TRAPS:
        return TRAP
    if mnemonic in _FAR or instruction.is_call_far_indirect or instruction.is_jmp_far_indirect:
        return UNSUPPORTED
    if mnemonic == Mnemonic.SYSCALL:
        return SYSCALL
    if mnemonic == Mnemonic.CPUID:
        return CPUID
    if mnemonic == Mnemonic.XBEGIN:
        return XBEGIN
    if instruction.is_call_near:
        return CALL
    flow = instruction.flow_control
    if flow == FlowControl.CONDITIONAL_BRANCH:
        return JCC
    return {
        FlowControl.UNCONDITIONAL_BRANCH: JMP,
        FlowControl.INDIRECT_BRANCH: JMP_INDIRECT,
        FlowControl.INDIRECT_CALL: CALL_INDIRECT,
        FlowControl.RETURN: RET,
    }.get(flow, PLAIN)


def differs(native: Decoded, instruction: Instruction, places: Any) -> str:
    """What the engine says otherwise than the decoder library, in a word; empty if they agree."""
    if native.length != instruction.len:
        return f"length {native.length} instead of {instruction.len}"
    kind = kind_of(instruction)
    if native.kind != kind:
        return f"kind {native.kind} instead of {kind}"
    branches = (JCC, JMP, CALL, LOOP, XBEGIN)
    if kind in branches and native.branch != instruction.near_branch_target:
        return f"branch to {native.branch:#x} instead of {instruction.near_branch_target:#x}"
    far = places.displacement_offset if instruction.is_ip_rel_memory_operand else 0
    if native.displacement_at != far:
        return f"displacement at {native.displacement_at} instead of {far}"
    mask = instruction.op_mask
    if native.mask != (mask - Register.K0 if mask != Register.NONE else 0):
        return f"mask register {native.mask}"
    return ""


def is_excepted(instruction: Instruction) -> bool:
    """Forms that a followed program never gets to run: its processor lacks them, or the engine hides them from it."""
    return instruction.encoding == EncodingKind.MVEX


def compare(cases: Iterable[bytes]) -> tuple[list[str], set[int]]:
    """Decode each case, at most 15 bytes, both ways: the differences, and all forms that were met."""
    found: list[str] = []
    forms: set[int] = set()
    batch: list[bytes] = []
    for case in cases:
        batch.append(case[:15])
        if len(batch) == 1 << 15:
            found += _compare(batch, forms)
            batch = []
    return found + _compare(batch, forms), forms


def _compare(batch: list[bytes], forms: set[int]) -> list[str]:
    found = []
    code = b"".join(case.ljust(SLOT, b"\x90") for case in batch)
    memory = ctypes.create_string_buffer(code + bytes(SLOT))
    start = ctypes.addressof(memory)
    decoder = Decoder(64, code, ip=BASE)
    instruction, native = Instruction(), Decoded()
    decode, out = engine().flopwatch_decode, ctypes.byref(native)
    for at in range(0, len(code), SLOT):
        decoder.position = at
        decoder.ip = BASE + at
        decoder.decode_out(instruction)
        if instruction.code == Code.INVALID or is_excepted(instruction):
            continue
        forms.add(instruction.code)
        decode(start + at, BASE + at, out)
        problem = differs(native, instruction, decoder.get_constant_offsets(instruction))
        if problem:
            found.append(f"{code[at : at + instruction.len].hex()} {instruction}: {problem}")
    return found


def compare_text(code: bytes, address: int) -> list[str]:
    """Decode a piece of a library one instruction after the other, both ways: the differences."""
    found = []
    memory = ctypes.create_string_buffer(code + bytes(SLOT))
    start = ctypes.addressof(memory) - address
    decoder = Decoder(64, code, ip=address)
    instruction, native = Instruction(), Decoded()
    decode, out = engine().flopwatch_decode, ctypes.byref(native)
    while decoder.can_decode:
        decoder.decode_out(instruction)
        if instruction.code == Code.INVALID:
            continue
        decode(start + instruction.ip, instruction.ip, out)
        problem = differs(native, instruction, decoder.get_constant_offsets(instruction))
        if problem:
            at = instruction.ip - address
            found.append(f"{code[at : at + instruction.len].hex()} {instruction}: {problem}")
    return found


# ---- generated encodings ----


def operands(rng: random.Random, regs: Iterable[int] = range(8)) -> Iterator[bytes]:
    """ModRM with all that may follow it: each mode, each value of the register field, SIB and RIP-relative forms."""
    for reg in regs:
        for rm in (4, 5, rng.randrange(8)):
            for mode in (0, rng.randrange(4)):
                yield bytes([mode << 6 | reg << 3 | rm]) + rng.randbytes(10)
        yield bytes([reg << 3 | 4, rng.randrange(32) << 3 | 5]) + rng.randbytes(10)


def legacy_cases(rng: random.Random) -> Iterator[bytes]:
    """Every legacy opcode with every prefix that may change its meaning."""
    starts = [bytes([op]) for op in range(256)] + [bytes([0x0F, op]) for op in range(256)]
    starts += [bytes([0x0F, table, op]) for table in (0x38, 0x3A) for op in range(256)]
    rexes = (b"", b"\x48", b"\x41", b"\x4f")
    for start in starts:
        for prefix in (b"", b"\x66", b"\xf2", b"\xf3", b"\x66\xf2", b"\x66\xf3", b"\x67", b"\x64", b"\xf0"):
            rex = rng.choice(rexes)
            for rest in operands(rng):
                yield prefix + rex + start + rest
        for rex in rexes:
            for reg in range(8):
                yield rex + start + bytes([0xC0 | reg << 3 | rng.randrange(8)]) + rng.randbytes(10)
    for op in range(256):  # the opcode of these comes last
        yield b"\x0f\x0f\xc1" + bytes([op])
        yield b"\x0f\x0f\x05" + rng.randbytes(4) + bytes([op])
    for start in (
        b"\x0f\x01",
        b"\x0f\xae",
        b"\x0f\x1e",
        b"\x0f\xc7",
        b"\xc6",
        b"\xc7",
        *(bytes([op]) for op in range(0xD8, 0xE0)),
    ):
        for prefix in (b"", b"\x66", b"\xf2", b"\xf3", b"\x48", b"\xf3\x48"):
            for modrm in range(256):  # a fixed ModRM is part of these opcodes
                yield prefix + start + bytes([modrm]) + rng.randbytes(10)


def vex_cases(rng: random.Random, maps: Iterable[int] = (1, 2, 3, 5, 6, 7)) -> Iterator[bytes]:
    """Every opcode of every map with every mandatory prefix, width and length; two-byte and three-byte VEX."""
    for table in maps:
        for op in range(256):
            for last in range(16):  # W, L and the prefix
                w, low = last >> 3, last & 7
                for vvvv in (15, rng.randrange(16)):
                    for rest in operands(rng, (rng.randrange(8), rng.randrange(8))):
                        byte1 = rng.choice((0xE0, rng.randrange(8) << 5)) | table
                        yield bytes([0xC4, byte1, w << 7 | vvvv << 3 | low, op]) + rest
                if table == 1 and not w:
                    for rest in operands(rng, (rng.randrange(8),)):
                        yield bytes([0xC5, rng.choice((0x80, 0)) | 15 << 3 | low, op]) + rest


def group_cases(rng: random.Random) -> Iterator[bytes]:
    """VEX and XOP opcodes that the register field, a fixed ModRM or a missing operand tells apart."""
    for table, op in ((1, 0x71), (1, 0x72), (1, 0x73), (1, 0xAE), (2, 0xF3), (2, 0x49), (1, 0x77)):
        for last in range(16):
            for modrm in range(256):
                yield bytes([0xC4, 0xE0 | table, (last >> 3) << 7 | 15 << 3 | last & 7, op, modrm]) + rng.randbytes(8)


def xop_cases(rng: random.Random) -> Iterator[bytes]:
    """Every opcode of the three XOP maps."""
    for table in (8, 9, 10):
        for op in range(256):
            for w in (0, 0x80):
                for vvvv in (15, rng.randrange(16)):
                    for length in (0, 4):
                        for rest in operands(rng):
                            yield bytes([0x8F, 0xE0 | table, w | vvvv << 3 | length, op]) + rest


def evex_cases(rng: random.Random, maps: Iterable[int] = (1, 2, 3, 5, 6)) -> Iterator[bytes]:
    """Every opcode of every map with every prefix, width and length, masks, broadcasts and rounding."""
    for table in maps:
        for op in range(256):
            for last in range(32):  # W, prefix, length
                w, pp, length = last >> 4, last >> 2 & 3, last & 3
                for vvvv in (15, rng.randrange(16)):
                    for rest in operands(rng, (rng.randrange(8),)):
                        byte1 = rng.choice((0xF0, rng.randrange(16) << 4)) | table
                        byte2 = w << 7 | vvvv << 3 | 4 | pp
                        byte3 = length << 5 | rng.choice((0, 0x10)) | 8 | rng.choice((0, 0, rng.randrange(8)))
                        yield bytes([0x62, byte1, byte2, byte3, op]) + rest
    for op in (0x71, 0x72, 0x73):  # the register field tells these apart
        for w in (0, 0x80):
            for length in range(3):
                for modrm in range(256):
                    yield bytes([0x62, 0xF1, w | 15 << 3 | 5, length << 5 | 8, op, modrm]) + rng.randbytes(8)
