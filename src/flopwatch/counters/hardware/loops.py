"""Loops of which it is known how much they compute, as machine code: what counters are checked by. The code is data, in loops.toml."""

from __future__ import annotations

import ctypes
import platform
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from importlib import resources

import msgspec

from flopwatch.counters.hardware.perf_event import executable
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally

BASIC = (Operation.ADD, Operation.MUL, Operation.FMA)
"""What every counter of FLOP has to count right; about the others, makers differ."""


class Loop(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A function f(rounds) in machine code, and what one round computes; `needs` are the instruction sets that it takes."""

    name: str
    machine: str
    needs: tuple[str, ...]
    text: str
    code: str
    operation: Operation | None = None
    dtype: DType | None = None
    lanes: int = 1
    instructions: int = 0
    masked: bool = False
    active: int | None = None
    scalable: bool = False

    @property
    def machine_code(self) -> bytes:
        """Its bytes."""
        return bytes.fromhex(self.code)

    def tally(self, rounds: int, vector_bits: int = 128) -> Tally:
        """What so many rounds compute: the closed form."""
        if self.operation is None or self.dtype is None:
            return Tally()
        lanes = self.lanes * (vector_bits // 128 if self.scalable else 1)
        instructions = self.instructions * rounds
        active = None if self.active is None else self.active * instructions
        return Tally.of(
            self.operation,
            self.dtype,
            lanes=lanes,
            instructions=instructions,
            masked=self.masked,
            active_lanes=active,
        )

    @property
    def basic(self) -> bool:
        """Whether it does what every counter of FLOP has to count right."""
        return self.operation in BASIC and self.dtype in (DType.FP32, DType.FP64) and not self.masked


@cache
def loops() -> tuple[Loop, ...]:
    """All loops, of all machines."""
    text = (resources.files("flopwatch.counters.hardware") / "loops.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(each, Loop) for each in tomllib.loads(text)["loop"])


def runnable(flags: Iterable[str], machine: str | None = None) -> tuple[Loop, ...]:
    """The loops that a processor with these instruction sets can run."""
    had = set(flags)
    here = platform.machine() if machine is None else machine
    return tuple(loop for loop in loops() if loop.machine == here and had.issuperset(loop.needs))


class Runner:
    """Runs loops in this thread; their code lies in memory of its own. OSError where the system forbids such memory."""

    def __init__(self) -> None:
        self._functions: dict[str, tuple[object, Callable[[int], None]]] = {}

    def prepare(self, loop: Loop) -> Callable[[int], None]:
        """The function of a loop."""
        if loop.name not in self._functions:
            memory = executable(loop.machine_code)
            start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            # With the interpreter's lock held: no other thread of Python runs between the readings.
            self._functions[loop.name] = (memory, ctypes.PYFUNCTYPE(None, ctypes.c_uint32)(start))
        return self._functions[loop.name][1]

    def __call__(self, loop: Loop, rounds: int) -> None:
        """Run a loop so many times round."""
        self.prepare(loop)(rounds)
