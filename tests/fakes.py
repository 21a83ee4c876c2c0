"""A counter that runs the command for real and reports blocks that a test chose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from flopwatch.counters import (
    ANYTHING,
    Availability,
    CommandOptions,
    CommandResult,
    Needs,
    ProcessImage,
    Region,
    Thread,
)
from flopwatch.events import Block
from flopwatch.scope import Scope
from flopwatch.subjects import elf, process

# AT&T: mulss %xmm1,%xmm0; addss %xmm2,%xmm0
MULSS_ADDSS = bytes.fromhex("f30f59c1f30f58c2")
# vfmadd231ps zmm0{k1},zmm0,zmm1
MASKED_FMA = bytes.fromhex("62f27d49b8c1")
LIBRARY = "/opt/nowhere/libaxpy.so"


def block(code: bytes = MULSS_ADDSS, runs: int = 1, *, thread: int = 1, address: int = 0x1000, **more: object) -> Block:
    """A block of one thread at a place without symbols."""
    return replace(Block(Scope(thread=str(thread)), "x86_64", address, code, runs), **more)  # type: ignore[arg-type]


def image(*blocks: Block, pid: int = 1, argv: Sequence[str] = ("axpy",), **more: object) -> ProcessImage:
    """A process image with the threads that its blocks name."""
    threads = tuple(Thread(int(tid)) for tid in dict.fromkeys(each.scope.thread for each in blocks))
    regions = (Region(0x1000, 0x2000, 0, LIBRARY),)
    made = ProcessImage(pid, argv=tuple(argv), threads=threads, blocks=blocks, regions=regions)
    return replace(made, **more)  # type: ignore[arg-type]


class FakeCounter:
    """Runs the command uncounted; each run hands out the next result's processes, the last one for ever."""

    name = "fake"

    def __init__(self, *results: CommandResult) -> None:
        self._results = list(results) or [CommandResult(0, processes=(image(block(runs=1000)),))]
        self.commands: list[tuple[str, ...]] = []
        self.attached: list[int] = []

    def available(self, needs: Needs = ANYTHING) -> Availability:
        return Availability(True)

    def check(self, program: elf.Program, *, running: bool = False) -> None:
        elf.check(program, running=running)

    def run_command(self, argv: Sequence[str], options: CommandOptions) -> CommandResult:
        self.commands.append(tuple(argv))
        ended = process.run(argv, options.env)
        return replace(self._next(), exit_code=ended.exit_code, signal=ended.signal, interrupted=ended.interrupted)

    def attach(self, pid: int, wait: Callable[[], bool], needs: Needs = ANYTHING) -> CommandResult:
        self.attached.append(pid)
        return replace(self._next(), interrupted=wait())

    def _next(self) -> CommandResult:
        return self._results.pop(0) if len(self._results) > 1 else self._results[0]
