"""Which opcodes an engine has to watch: everything else it may pass over without decoding it in full."""

from __future__ import annotations

from functools import cache

from iced_x86 import DecoderOptions, EncodingKind, OpCodeInfo, OpCodeTableKind

from flopwatch.flops.forms import all_codes, code_info, form_of

LEGACY, VEX, EVEX, XOP = range(4)
KINDS = 4
MAPS = 8
OPCODES = 256

_KINDS: dict[int, int] = {
    EncodingKind.LEGACY: LEGACY,
    EncodingKind.D3NOW: LEGACY,
    EncodingKind.VEX: VEX,
    EncodingKind.EVEX: EVEX,
    EncodingKind.XOP: XOP,
}
_MAPS: dict[int, int] = {
    OpCodeTableKind.NORMAL: 0,
    OpCodeTableKind.T0F: 1,
    OpCodeTableKind.T0F38: 2,
    OpCodeTableKind.T0F3A: 3,
    OpCodeTableKind.MAP5: 5,
    OpCodeTableKind.MAP6: 6,
    OpCodeTableKind.MAP8: 0,
    OpCodeTableKind.MAP9: 1,
    OpCodeTableKind.MAP10: 2,
}


@cache
def opcode_filter() -> bytes:
    """The opcodes that may do counted arithmetic or are unknown, as a bitmap of 4 x 8 x 256 bits = 1024 bytes.

    Opcode `o` of map `m` of encoding kind `k` is bit `o & 7` of byte `(k * 8 + m) * 32 + (o >> 3)`.

    kind 0, legacy   map 0: one-byte opcodes, of which x87 has D8 to DF; 1: 0F; 2: 0F 38; 3: 0F 3A. 3DNow! is 0F 0F in map 1.
    kind 1, VEX      map as in the prefix, 0 to 7
    kind 2, EVEX     map as in the prefix, 0 to 7 (5 and 6 hold half precision)
    kind 3, XOP      maps 8, 9, 10 are 0, 1, 2

    A bit is set if an instruction form with that kind, map and opcode, whatever its prefix, width or ModRM, is counted or
    unknown. For VEX, EVEX and XOP it is set too where no form is known at all, so that what comes later is not overlooked.
    It is clear where all known forms are free.
    """
    known: set[tuple[int, int, int]] = set()
    watched: set[tuple[int, int, int]] = set()
    for code in all_codes().values():
        info = code_info(code)
        place = opcode_place(info)
        if place is None:
            continue
        known.add(place)
        form = form_of(code)
        if form.work is not None or not form.reason:
            watched.add(place)
    bitmap = bytearray(KINDS * MAPS * OPCODES // 8)
    for kind in range(KINDS):
        for table in range(MAPS):
            for opcode in range(OPCODES):
                place = (kind, table, opcode)
                if place in watched or (kind != LEGACY and place not in known):
                    bitmap[(kind * MAPS + table) * 32 + (opcode >> 3)] |= 1 << (opcode & 7)
    return bytes(bitmap)


def is_watched(bitmap: bytes, kind: int, table: int, opcode: int) -> bool:
    """Whether the bit of one opcode is set in the bitmap."""
    return bool(bitmap[(kind * MAPS + table) * 32 + (opcode >> 3)] >> (opcode & 7) & 1)


def opcode_place(info: OpCodeInfo) -> tuple[int, int, int] | None:
    """Kind, map and opcode of a form as the bitmap has them; None for forms that 64-bit code as we decode it cannot hold."""
    if not info.mode64 or info.decoder_option != DecoderOptions.NONE or not info.is_instruction:
        return None
    if info.encoding == EncodingKind.D3NOW:
        return LEGACY, 1, 0x0F
    # Two-byte opcodes are an opcode and a fixed ModRM byte.
    return _KINDS[info.encoding], _MAPS[info.table], info.op_code >> 8 * (info.op_code_len - 1)
