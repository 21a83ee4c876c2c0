"""The loops are what they say: assembled again, read by the instruction table, run under the instrumented counter."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest
from iced_x86 import Decoder

from flopwatch.counters.hardware.loops import Loop, Runner, loops, runnable
from flopwatch.counters.hardware.surroundings import processor_flags
from flopwatch.events import Block
from flopwatch.flops.classify import Classified, classify_block
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Count, Key, Tally
from flopwatch.labelled import Counting
from flopwatch.scope import Scope

X86 = [loop for loop in loops() if loop.machine == "x86_64"]
HERE = runnable(processor_flags())
ASSEMBLERS = {
    "x86_64": ("as" if platform.machine() == "x86_64" else "x86_64-linux-gnu-as", ".intel_syntax noprefix"),
    "aarch64": ("as" if platform.machine() == "aarch64" else "aarch64-linux-gnu-as", ".arch armv8.2-a+fp16+sve"),
}
ROUNDS = 1000


def without_masks(tally: Tally) -> Tally:
    return Tally({key: Count(count.instructions) for key, count in tally.items()})


@pytest.mark.parametrize("machine", ASSEMBLERS)
def test_the_text_assembles_to_the_code(machine: str, tmp_path: Path) -> None:
    assembler, head = ASSEMBLERS[machine]
    if not shutil.which(assembler):
        pytest.skip(f"needs {assembler}")
    copy = assembler.removesuffix("as") + "objcopy"
    for loop in loops():
        if loop.machine != machine:
            continue
        (tmp_path / "l.s").write_text(f"{head}\n{loop.text}")
        subprocess.run([assembler, "-o", tmp_path / "l.o", tmp_path / "l.s"], check=True)
        subprocess.run([copy, "-O", "binary", "-j", ".text", tmp_path / "l.o", tmp_path / "l.bin"], check=True)
        assert (tmp_path / "l.bin").read_bytes() == loop.machine_code, loop.name


@pytest.mark.parametrize("loop", X86, ids=lambda loop: loop.name)
def test_the_instruction_table_reads_the_closed_form(loop: Loop) -> None:
    code = loop.machine_code
    branch = next(each for each in Decoder(64, code) if each.is_jcc_short)
    body = code[branch.near_branch_target : branch.ip + branch.len]
    found = classify_block(Block(Scope(), "x86_64", 0, body, ROUNDS)).tally
    assert found == without_masks(loop.tally(ROUNDS))


def test_names_are_unique_and_everything_is_there() -> None:
    for machine in ASSEMBLERS:
        names = [loop.name for loop in loops() if loop.machine == machine]
        assert len(names) == len(set(names))
    kinds = {(loop.operation, loop.dtype, loop.lanes) for loop in X86}
    for dtype in (DType.FP32, DType.FP64):
        for lanes in (1, 128 // dtype.bits, 256 // dtype.bits, 512 // dtype.bits):
            for operation in (Operation.ADD, Operation.MUL, Operation.FMA, Operation.DIV, Operation.MINMAX):
                assert (operation, dtype, lanes) in kinds
    assert {loop.dtype for loop in X86} >= {DType.BF16, DType.FP16, DType.X87, None}
    assert any(loop.masked for loop in X86)


def test_a_scalable_vector_is_as_long_as_it_is() -> None:
    loop = next(loop for loop in loops() if loop.scalable and loop.dtype is DType.FP32)
    assert loop.tally(10, 256) == Tally({Key(Operation.FMA, DType.FP32, 8): Count(80)})


def test_a_processor_runs_what_it_has() -> None:
    assert runnable(("sse2",), "x86_64") and not any("512" in loop.name for loop in runnable(("sse2",), "x86_64"))
    assert runnable(("sse2",), "vax") == ()


@pytest.mark.engine
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the instrumented counter needs x86-64")
def test_the_instrumented_counter_finds_the_closed_form() -> None:
    run = Runner()
    for loop in HERE:
        run(loop, 1)
    counting = Counting()
    with counting:
        labels = {}
        for loop in HERE:
            label = labels[loop.name] = counting.scopes.fresh(Scope(span=loop.name))
            frame = counting.scopes.push(Scope(span=loop.name), label=label)
            run(loop, ROUNDS)
            counting.scopes.pop(frame)
    assert not counting.partial
    for loop in HERE:
        found, expected = counting.work.get(labels[loop.name], Classified()).tally, loop.tally(ROUNDS)
        for key, count in expected.items():
            assert found[key].instructions - count.instructions in range(20), loop.name
            if key.masked:
                assert found[key] == count, loop.name
        if not expected:
            assert sum(found.flop().values()) < 100, loop.name
