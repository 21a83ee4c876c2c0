"""Which instructions of a block have a lane counter, in the order in which the engine numbers them."""

from __future__ import annotations

from functools import lru_cache

from iced_x86 import Decoder, EncodingKind, Register

from flopwatch.flops.filter import is_watched, opcode_filter, opcode_place


@lru_cache(maxsize=1 << 16)
def masked_offsets(code: bytes) -> tuple[int, ...]:
    """Byte offsets of the masked instructions that the opcode filter watches."""
    bitmap = opcode_filter()
    found: list[int] = []
    for instruction in Decoder(64, code):
        if instruction.op_mask == Register.NONE:
            continue
        info = instruction.op_code()
        place = opcode_place(info)
        if info.encoding == EncodingKind.EVEX and (place is None or is_watched(bitmap, *place)):
            found.append(instruction.ip)
    return tuple(found)
