"""What each program of this folder must count, as products of the sizes that its source names.

A count is executed instructions by (operation, datatype, lanes, masked). Nothing else in these programs is a floating-point operation:
`empty` and `prints_integers` say that the loader and libc add none, and tests/machine/test_witness.py has every table entry confirmed
by single-stepping the program.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent

Key = tuple[str, str, int, bool]


@dataclass(frozen=True)
class Build:
    """One way to build the targets: the compiler's flags, the processor's flags needed, floats in a register, fused or not."""

    name: str
    flags: tuple[str, ...]
    needs: tuple[str, ...]
    lanes: int
    fma: bool


SSE2 = Build("sse2", ("-msse2",), (), 4, False)
AVX2 = Build("avx2", ("-mavx2", "-mfma"), ("avx2", "fma"), 8, True)
AVX512 = Build(
    "avx512",
    ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"),
    ("avx512f", "avx512bw", "avx512dq", "avx512vl"),
    16,
    True,
)
BUILDS = (SSE2, AVX2, AVX512)


class Sizes(dict[str, int]):
    """The `#define NAME number` lines of a source file, as attributes."""

    def __getattr__(self, name: str) -> int:
        return self[name]


def sizes(*sources: str) -> Sizes:
    """The named sizes of source files in this folder; sources are file names."""
    found = Sizes()
    for source in sources:
        for name, value in re.findall(r"^#define (\w+) (\d+)$", (FOLDER / source).read_text(), re.MULTILINE):
            found[name] = int(value)
    return found


class Counts(Counter[Key]):
    """Executed instructions by kind; counts add."""

    def __add__(self, other: Counter[Key]) -> Counts:  # type: ignore[override]
        total = Counts(self)
        total.update(other)
        return total

    def flop(self) -> dict[str, int]:
        """FLOP by datatype as Intel's FP_ARITH events count: all lanes, 2 for a fused or dot product lane, else 1."""
        found: Counter[str] = Counter()
        for (operation, dtype, lanes, _), count in self.items():
            if not dtype.startswith("int"):
                found[dtype] += count * lanes * (2 if operation in ("fma", "dot") else 1)
        return {dtype: count for dtype, count in found.items() if count}


def count(operation: str, number: int, dtype: str = "fp32", lanes: int = 1, masked: bool = False) -> Counts:
    """So many instructions of one kind."""
    return Counts({(operation, dtype, lanes, masked): number})


def steps(build: Build, number: int, dtype: str = "fp32") -> Counts:
    """So many vector multiply_adds (work.h): one fma each, or one mul and one add in a build that has no fma."""
    lanes = build.lanes if dtype == "fp32" else build.lanes // 2
    if build.fma:
        return count("fma", number, dtype, lanes)
    return count("mul", number, dtype, lanes) + count("add", number, dtype, lanes)


@dataclass(frozen=True)
class Case:
    """One program.

    counts      from the named sizes and the build
    active      switched-on lanes of the masked instructions, by kind
    code        exit code as a shell shows it (128 + signal)
    complete    whether the record must say so; None where either is right
    processes   rows of `--by process` that did work; 0: not looked at
    steppable   "" or why the single-stepping witness cannot run it
    """

    counts: Callable[[Sizes, Build], Counts]
    active: Callable[[Sizes], Mapping[Key, int]] = lambda s: {}
    code: int = 0
    complete: bool | None = True
    processes: int = 1
    builds: tuple[Build, ...] = BUILDS
    flags: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    stdin: bytes = b""
    steppable: str = ""


def worked(number: Callable[[Sizes], int], **other: object) -> Case:
    """A program whose whole work is calls of work(); `number` is the sum of their steps."""
    return Case(lambda s, build: steps(build, number(s)), **other)  # type: ignore[arg-type]


def added(number: Callable[[Sizes], int], **other: object) -> Case:
    """A program whose whole work is `addps` of 128 bits, written in assembly, whatever the build."""
    return Case(lambda s, build: count("add", number(s), lanes=4), **other)  # type: ignore[arg-type]


def _masked_loops(s: Sizes) -> Counts:
    rounds = s.ROUNDS * 16
    return (
        count("add", rounds, lanes=16, masked=True)
        + count("add", rounds, lanes=8, masked=True)
        + count("add", rounds, "fp64", lanes=8, masked=True)
        + count("add", rounds, lanes=1, masked=True)
    )


def _switched_on(s: Sizes, lanes: int) -> int:
    return s.ROUNDS * sum(min(on, lanes) for on in range(16))


def _runtime_code(s: Sizes) -> Counts:
    half = s.REPEAT // 2
    return (
        count("add", s.FRESH + s.REPEAT * s.BYTE, lanes=4)
        + count("mul", s.REPEAT * s.WHOLE + half * s.PROTECTED, lanes=4)
        + count("add", s.REPEAT * s.WHOLE + half * s.REMAPPED, "fp64", lanes=2)
        + count("div", s.REPEAT * s.BYTE + half * s.REMAPPED, lanes=4)
        + count("minmax", half * s.PROTECTED, lanes=4)
    )


def _both(s: Sizes, each: int) -> Counts:
    return count("add", each, lanes=4) + count("mul", each, lanes=4)


SSE2_ONLY = (SSE2,)  # nothing in the program depends on the build
AVX512_ONLY = (AVX512,)

CASES: dict[str, Case] = {
    # what counts, and what does not
    "empty": Case(lambda s, build: Counts()),
    "prints_integers": Case(lambda s, build: Counts(), builds=SSE2_ONLY),
    "free_instructions": Case(lambda s, build: Counts()),
    "integer_simd": Case(lambda s, build: Counts()),
    "axpy": Case(lambda s, build: steps(build, s.N * s.REPEAT // build.lanes)),
    "dot": Case(
        lambda s, build: steps(build, s.N * s.REPEAT // build.lanes) + count("add", build.lanes * s.REPEAT),
    ),
    "reduction": Case(
        lambda s, build: (
            count("add", (s.N + build.lanes - 1) * s.REPEAT)
            + count("add", s.N // build.lanes * s.REPEAT, lanes=build.lanes)
        ),
    ),
    "div_sqrt": Case(
        lambda s, build: (
            count("div", s.N // build.lanes, lanes=build.lanes)
            + count("sqrt", s.N // build.lanes, lanes=build.lanes)
            + count("div", s.SCALARS)
            + count("sqrt", s.SCALARS)
            + count("div", s.SCALARS, "fp64")
            + count("sqrt", s.SCALARS, "fp64")
        ),
    ),
    "minmax": Case(lambda s, build: count("minmax", 2 * s.N // build.lanes * s.REPEAT, lanes=build.lanes)),
    "masked_tails": Case(
        lambda s, build: (
            count("fma", s.ROWS * s.FULL_VECTORS, lanes=16)
            + count("fma", s.ROWS, lanes=16, masked=True)
            + count("add", s.ROWS, lanes=16, masked=True)
            + count("mul", s.ROWS, lanes=16, masked=True)
        ),
        active=lambda s: {
            ("fma", "fp32", 16, True): s.ROWS * s.TAIL,
            ("add", "fp32", 16, True): s.ROWS * s.TAIL,
            ("mul", "fp32", 16, True): 0,
        },
        builds=AVX512_ONLY,
    ),
    "masked_loops": Case(
        lambda s, build: _masked_loops(s),
        active=lambda s: {
            ("add", "fp32", 16, True): s.ROUNDS * s.LANES_OF_A_ROUND,
            ("add", "fp32", 8, True): _switched_on(s, 8),
            ("add", "fp64", 8, True): _switched_on(s, 8),
            ("add", "fp32", 1, True): _switched_on(s, 1),
        },
        builds=AVX512_ONLY,
    ),
    "fp64": Case(
        lambda s, build: (
            steps(build, s.N * s.REPEAT // (build.lanes // 2), "fp64")
            + count("mul", s.POINTS * s.DEGREE, "fp64")
            + count("add", s.POINTS * s.DEGREE, "fp64")
        ),
    ),
    "long_double": Case(
        lambda s, build: (
            count("add", 2 * s.N, "x87")
            + count("mul", s.N, "x87")
            + count("div", s.N, "x87")
            + count("sqrt", s.N, "x87")
        ),
        builds=SSE2_ONLY,
    ),
    "x87_memory": Case(
        lambda s, build: count("add", 3 * s.N, "x87") + count("mul", s.N, "x87") + count("div", s.N, "x87"),
        builds=SSE2_ONLY,
    ),
    "bf16_dot": Case(
        lambda s, build: count("dot", s.N, "bf16", lanes=32),
        builds=AVX512_ONLY,
        flags=("-mavx512bf16",),
        needs=("avx512_bf16",),
    ),
    "int8_dot": Case(
        lambda s, build: count("dot", s.N, "int8", lanes=64),
        builds=AVX512_ONLY,
        flags=("-mavx512vnni",),
        needs=("avx512_vnni",),
    ),
    "fpu_control": Case(
        lambda s, build: count("div", s.ROUNDS * s.MODES) + count("div", 2 * s.ROUNDS, "x87"),
    ),
    # threads
    "two_threads": worked(lambda s: s.MAIN + s.FIRST + s.SECOND),
    "many_threads": worked(lambda s: s.THREADS * s.STEPS),
    "pool_before_main": worked(lambda s: s.STEPS + s.JOBS * s.STEPS + s.AFTER_MAIN),
    "thread_signals": worked(lambda s: s.KILLS * s.IN_HANDLER + s.IN_CLEANUP + s.IN_DESTRUCTOR),
    # processes
    "fork_child": worked(lambda s: s.BEFORE + s.CHILD + s.GRANDCHILD + s.AFTER, processes=3),
    "fork_many": worked(lambda s: s.CHILDREN * s.STEPS + s.BESIDE, processes=13),
    "exec_child": worked(
        lambda s: s.BEFORE + s.BY_FORK + s.BY_VFORK + s.BY_SPAWN + s.BY_FEXECVE + s.BY_SYSTEM + s.LAST,
        code=3,
        processes=0,
    ),
    "exec_in_thread": worked(lambda s: s.MAIN + s.OTHER + s.CALLER + s.AFTER_EXEC, processes=0),
    "spawn_raw": worked(
        lambda s: s.BY_SYSCALL + 2 * s.BY_CLONE + s.KILLED + s.PARENT,
        complete=None,  # one of its children is killed
        processes=0,
    ),
    "daemonizes": worked(lambda s: s.FOREGROUND + s.DAEMON, processes=2),
    "closes_descriptors": worked(lambda s: s.BEFORE + s.AFTER + s.CHILD, code=11, processes=2),
    # jumps over frames
    "cpp_exceptions": worked(lambda s: s.THROWS * (s.DEPTH * (s.DOWN + s.UNWIND) + 2 * s.CAUGHT)),
    "cpp_thread_exceptions": worked(lambda s: s.TASKS * s.STEPS),
    "cpp_terminate": worked(lambda s: s.BEFORE, code=134, complete=None),
    "setjmp_longjmp": worked(lambda s: s.JUMPS * (s.DEPTH * s.DOWN + s.LANDED)),
    "swapcontext": worked(lambda s: 2 * s.SWITCHES * s.STEPS),
    # signals
    "signals": worked(lambda s: s.RAISES * (s.BETWEEN + s.IN_HANDLER + s.INNER) + s.PENDING * s.INNER),
    "signal_timer": worked(
        lambda s: s.TICKS * s.IN_HANDLER + 2 * s.IN_LOOP,
        steppable="its timer outruns a tracer",
    ),
    "signal_registers": worked(
        lambda s: 4 * s.ROUNDS * s.STEPS,
        steppable="it handles its own breakpoints, which a tracer cannot tell from its steps",
    ),
    "signal_jump": worked(lambda s: s.ROUNDS * s.KINDS * (s.BEFORE + s.IN_HANDLER + s.AFTER)),
    "fault_restart": added(
        lambda s: s.RESTARTS * (s.BEFORE + s.FAULTING + s.BEHIND) + s.JUMPS * s.BEFORE, builds=SSE2_ONLY
    ),
    "alternate_stack": worked(lambda s: (s.RAISES + s.OVERFLOWS) * s.IN_HANDLER),
    "sigaction_query": worked(lambda s: (s.NESTED + 1) * s.STEPS),
    "interrupted_calls": worked(lambda s: s.SIGNALS * s.IN_HANDLER),
    # libraries and code from elsewhere
    "dlopen_missing": worked(
        lambda s: s.BEFORE + s.BETWEEN + s.AFTER + s.ROUNDS * (s.AFTER + s.IN_THREAD),
    ),
    "dlopen_present": worked(
        lambda s: s.ROUNDS * (s.IN_CONSTRUCTOR + s.IN_FUNCTION + s.IN_DESTRUCTOR + s.IN_CALLBACK),
        sources=("dlopen_present.c", "plugin.c"),
    ),
    "libc_calls_back": worked(lambda s: s.STEPS + s.ONCE + s.AT_EXIT + s.RESOLVED + s.WRITTEN),
    "runtime_code": Case(lambda s, build: _runtime_code(s), builds=SSE2_ONLY),
    "runtime_code_alias": Case(lambda s, build: _both(s, s.REPEAT // 2 * s.ROUNDS), builds=SSE2_ONLY),
    "runtime_code_read": Case(lambda s, build: _both(s, s.REPEAT // 2 * s.ROUNDS), builds=SSE2_ONLY),
    "runtime_code_self": Case(lambda s, build: _both(s, s.CALLS // 2 + s.ROUNDS), builds=SSE2_ONLY),
    "runtime_code_threads": Case(lambda s, build: _both(s, s.HANDOVERS * s.ROUNDS), builds=SSE2_ONLY),
    "many_functions": Case(
        lambda s, build: _both(s, s.FUNCTIONS // 2 * s.ROUNDS * s.REPEAT),
        builds=SSE2_ONLY,
        steppable="it takes too many steps",
    ),
    # control flow and state
    "red_zone": added(lambda s: s.ROUNDS * s.PLACES, builds=SSE2_ONLY),
    "flags_across_branches": added(
        lambda s: s.ROUNDS * s.LIMBS + s.COMBINATIONS * s.PER_COMBINATION,
        builds=SSE2_ONLY,
        steppable="it reads and writes the flags, the trap flag among them",
    ),
    "registers": added(lambda s: s.ROUNDS * s.PER_ROUND, builds=SSE2_ONLY),
    "string_operations": added(
        lambda s: s.ROUNDS * s.PER_ROUND, builds=SSE2_ONLY, steppable="each element of a string is a step"
    ),
    "jump_tables": Case(
        lambda s, build: (
            count("add", 3 * s.ROUNDS * (s.ADDS + s.SUBS), lanes=4) + count("mul", 3 * s.ROUNDS * s.MULS, lanes=4)
        ),
        builds=SSE2_ONLY,
    ),
    "deep_recursion": Case(lambda s, build: _both(s, s.DEPTH // 2 + 1), builds=SSE2_ONLY),
    "big_stack": worked(lambda s: 2 * s.FRAMES * s.STEPS),
    "jump_into_middle": Case(
        lambda s, build: (
            count("mul", s.ROUNDS, lanes=4) + count("add", s.ROUNDS * (s.REENTERED // 2 + s.REENTERED), lanes=4)
        ),
        builds=SSE2_ONLY,
    ),
    "rip_relative": Case(
        lambda s, build: count("add", 2 * s.ROUNDS, lanes=4) + count("mul", s.ROUNDS, lanes=4), builds=SSE2_ONLY
    ),
    "return_address": added(lambda s: s.ROUNDS * s.REDIRECTED, builds=SSE2_ONLY),
    "system_calls": Case(
        lambda s, build: steps(build, s.ROUNDS * s.BETWEEN) + count("add", s.ROUNDS * s.BESIDE_SYSCALL, lanes=4),
    ),
    "wide_state": worked(lambda s: s.RAISES),
    # what a program sees of how it was started
    "environment": Case(lambda s, build: Counts(), builds=SSE2_ONLY),
    "environment_of_child": Case(lambda s, build: Counts(), builds=SSE2_ONLY, processes=0),
    "process_files": Case(lambda s, build: Counts(), builds=SSE2_ONLY),
    "standard_streams": worked(lambda s: s.PER_BYTE * len(b"twelve bytes"), code=3, stdin=b"twelve bytes"),
    # ends
    "end_exit_syscall": worked(lambda s: s.BEFORE, code=9),
    "end_quick_exit": worked(lambda s: s.BEFORE + s.IN_HANDLER, code=8),
    "end_exit_nested": worked(lambda s: s.BEFORE + s.FIRST + s.SECOND, code=6),
    "end_exit_in_thread": worked(lambda s: s.BEFORE + s.SLEEPER + s.EXITER, code=4),
    "end_pthread_exit": worked(lambda s: s.BEFORE + s.LASTING),
    "end_abort": worked(lambda s: s.BEFORE, code=134, complete=None),
    "end_sigkill": worked(lambda s: s.BEFORE, code=137, complete=None),
    "end_sigterm": worked(lambda s: s.BEFORE, code=143, complete=None),
    "end_sigpipe": worked(lambda s: s.BEFORE, code=141, complete=None),
    "end_illegal": worked(lambda s: s.BEFORE, code=132, complete=None),
    "end_crash": Case(
        lambda s, build: steps(build, s.BEFORE) + count("add", s.REACHED, lanes=4), code=139, complete=None
    ),
    "end_crash_in_thread": worked(lambda s: s.BEFORE + s.IN_THREAD, code=139, complete=None),
}
