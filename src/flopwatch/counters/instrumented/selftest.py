"""Does the engine keep a program's state and count right on this very processor? Asked on demand, in some milliseconds."""

from __future__ import annotations

import ctypes
import mmap
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from flopwatch.counters import Availability
from flopwatch.counters.instrumented.inprocess import Engine, LabelledBlock
from flopwatch.errors import FlopwatchError

ROUNDS = 1000
ACTIVE_LANES = 2  # bits of the mask 5

# Places in the buffer that the code fills the registers from, and in the one that it leaves them in.
VECTORS, MASKS, MXCSR, CONTROL, X87, FLAGS, GENERAL, SIZE = 0, 2048, 2112, 2116, 2128, 2256, 2264, 2304
IN, OUT = 7, 6  # numbers of the registers rdi and rsi, which hold the two buffers
GENERALS = (3, 5, 0, 1, 2)  # rbx, rbp; r8, r9, r10
PARTS = (
    ("vector registers", VECTORS, MASKS),
    ("mask registers", MASKS, MXCSR),
    ("MXCSR", MXCSR, CONTROL),
    ("the x87 control word", CONTROL, CONTROL + 2),
    ("x87 registers", X87, FLAGS),
    ("flags", FLAGS, FLAGS + 1),
    ("general registers", GENERAL, SIZE),
)


def run() -> Availability:
    """Fill all registers, cross blocks and a system call under the engine, compare, and check known counts; never raises."""
    try:
        flags = _processor_flags()
        return _run(_Code("avx512bw" in flags, "avx" in flags))
    except (FlopwatchError, OSError, ValueError) as error:
        return Availability(False, f"the self-test of the engine could not run ({error}).")


def _run(code: _Code) -> Availability:
    given = _given(code)
    left = ctypes.create_string_buffer(SIZE)
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(bytes(code.text))
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    function: Callable[[object, object], None] = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(start)
    engine = Engine()
    engine.open()
    engine.start()
    try:
        function(ctypes.addressof(given), ctypes.addressof(left))
        engine.settle(0)
    finally:
        engine.stop()
    memory.close()
    wrong = [name for name, begin, end in PARTS if given.raw[begin:end] != left.raw[begin:end]]
    if wrong:
        return Availability(False, f"the engine does not keep {', '.join(wrong)} on this processor.")
    return _counted(code, [block for block in engine.read() if start <= block.address < start + len(code.text)], start)


def _counted(code: _Code, blocks: list[LabelledBlock], start: int) -> Availability:
    loop = start + code.loop
    runs = sum(block.runs for block in blocks if block.address <= loop < block.address + len(block.code))
    if runs != ROUNDS:
        return Availability(False, f"the engine counted {runs} rounds of a loop of {ROUNDS}.")
    active = sum(lanes for block in blocks for _, lanes in block.active)
    expected = ROUNDS * ACTIVE_LANES if code.masks else 0
    if active != expected:
        return Availability(False, f"the engine counted {active} switched-on lanes instead of {expected}.")
    return Availability(True)


def _processor_flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split())
    return set()


def _given(code: _Code) -> ctypes.Array[ctypes.c_char]:
    """What the registers are to hold; zeros where this processor has none."""
    rng = random.Random(1)
    state = bytearray(SIZE)
    for i in range(code.vectors):
        state[VECTORS + 64 * i : VECTORS + 64 * i + code.width] = rng.randbytes(code.width)
    if code.masks:
        state[MASKS:MXCSR] = rng.randbytes(64)
    state[MXCSR:CONTROL] = (0x5F80).to_bytes(4, "little")  # rounds up
    state[CONTROL : CONTROL + 2] = (0x0F7F).to_bytes(2, "little")  # rounds to zero
    for i in range(8):
        state[X87 + 16 * i : X87 + 16 * i + 10] = rng.randbytes(7) + bytes([0x80 + i, i, 0x40])
    state[FLAGS] = 1
    state[GENERAL:SIZE] = rng.randbytes(SIZE - GENERAL)
    return ctypes.create_string_buffer(bytes(state), SIZE)


@dataclass
class _Code:
    """The machine code of a C function, void f(const void *given, void *left)."""

    masks: bool
    avx: bool
    text: bytearray = field(default_factory=bytearray)
    loop: int = 0

    def __post_init__(self) -> None:
        self.width = 64 if self.masks else 32 if self.avx else 16
        self.vectors = 32 if self.masks else 16
        self._put("53 55 41 54 48 83 EC 08 0F AE 1C 24")  # push rbx, rbp, r12; stmxcsr [rsp]
        self._count()
        self._fill()
        self._wander()
        self._leave()
        self._put("DB E3 0F AE 14 24 48 83 C4 08 41 5C 5D 5B")  # fninit; ldmxcsr [rsp]; pop
        if self.avx:
            self._put("C5 F8 77")  # vzeroupper
        self._put("C3")

    def _put(self, text: str) -> None:
        self.text += bytes.fromhex(text)

    def _memory(self, opcode: bytes, register: int, base: int, place: int) -> None:
        self.text += opcode + bytes([0x80 | (register & 7) << 3 | base]) + place.to_bytes(4, "little")

    def _count(self) -> None:
        self._put(
            "B8 05 00 00 00 0F 57 C0 0F 57 C9 B9" + ROUNDS.to_bytes(4, "little").hex()
        )  # mov eax, 5; xorps; mov ecx
        if self.masks:
            self._put("C5 F8 92 C8")  # kmovw k1, eax
        self.loop = len(self.text)
        self._put("66 0F 58 C0 F3 0F 59 C9")  # addpd xmm0, xmm0; mulss xmm1, xmm1
        if self.masks:
            self._put("62 F1 7C 49 58 C0")  # vaddps zmm0 {k1}, zmm0, zmm0
        self._put("FF C9 75")  # dec ecx; jnz to the loop
        self.text.append(self.loop - len(self.text) - 1 & 0xFF)

    def _vector(self, load: bool, i: int) -> None:
        opcode, base = (b"\x10", IN) if load else (b"\x11", OUT)
        if self.masks:
            prefix = bytes([0x62, (~i & 8) << 4 | 0x61 | (~i & 16), 0x7C, 0x48])
        elif self.avx:
            prefix = bytes([0xC5, 0xFC if i < 8 else 0x7C])
        else:
            prefix = b"\x0f" if i < 8 else b"\x44\x0f"
        self._memory(prefix + opcode, i, base, VECTORS + 64 * i)

    def _fill(self) -> None:
        for i in range(self.vectors):
            self._vector(True, i)
        for i in range(8 if self.masks else 0):
            self._memory(bytes.fromhex("C4 E1 F8 90"), i, IN, MASKS + 8 * i)  # kmovq
        self._memory(b"\x0f\xae", 2, IN, MXCSR)
        self._put("DB E3")  # fninit
        self._memory(b"\xd9", 5, IN, CONTROL)
        for i in range(8):
            self._memory(b"\xdb", 5, IN, X87 + 16 * i)
        for i, register in enumerate(GENERALS):
            self._memory(b"\x48\x8b" if i < 2 else b"\x4c\x8b", register, IN, GENERAL + 8 * i)

    def _wander(self) -> None:
        """Blocks that no one has run yet: branches taken and not, a loop, a call, an indirect jump, a system call, cpuid."""
        self._put("49 89 DC F9")  # mov r12, rbx; stc
        for _ in range(12):
            self._put("72 02 0F 0B 73 00")  # jc over ud2; jnc to what follows
        self._put("B9 03 00 00 00 E2 FE")  # mov ecx, 3; loop to itself
        self._put("E8 02 00 00 00 EB 01 C3")  # call the ret behind the jump over it
        self._put("48 8D 05 02 00 00 00 FF E0")  # lea rax, [rip + 2]; jmp rax
        self._put("B8 6E 00 00 00 0F 05")  # getppid
        self._put("B8 00 00 00 00 B9 00 00 00 00 0F A2 4C 89 E3")  # cpuid; mov rbx, r12

    def _leave(self) -> None:
        self._memory(b"\x0f\x92", 0, OUT, FLAGS)  # setc
        for i in range(self.vectors):
            self._vector(False, i)
        for i in range(8 if self.masks else 0):
            self._memory(bytes.fromhex("C4 E1 F8 91"), i, OUT, MASKS + 8 * i)  # kmovq
        self._memory(b"\x0f\xae", 3, OUT, MXCSR)
        self._memory(b"\xd9", 7, OUT, CONTROL)
        for i in reversed(range(8)):
            self._memory(b"\xdb", 7, OUT, X87 + 16 * i)
        for i, register in enumerate(GENERALS):
            self._memory(b"\x48\x89" if i < 2 else b"\x4c\x89", register, OUT, GENERAL + 8 * i)
