"""AArch64 code that really runs, under QEMU, which tells each instruction: the table's worth against closed forms.

This is no counter of flopwatch: its engine translates x86-64 code. What is tested is that the bytes of real kernels are read right.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from flopwatch.events import Block
from flopwatch.flops import PMU, Classified, DType, classify_block
from flopwatch.scope import Scope

pytest.importorskip("capstone", reason="the decoder of AArch64 is not installed: pip install 'flopwatch[aarch64]'")
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
COPIER = "aarch64-linux-gnu-objcopy"
for tool, package in (
    (COMPILER, "gcc-aarch64-linux-gnu"),
    (COPIER, "binutils-aarch64-linux-gnu"),
    (EMULATOR, "qemu-user"),
):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is missing: apt install {package}", allow_module_level=True)

SOURCE = Path(__file__).parents[1] / "targets" / "aarch64" / "kernels.c"
N = 1000
SVE_BITS = 512
SVE_LANES = SVE_BITS // 32
SVE_ROUNDS = -(-N // SVE_LANES)
EXPECTED = {
    "scalar": ({DType.FP32: N * 2}, {}),
    "neon": ({DType.FP32: N // 4 * 4 * 2}, {}),
    "fp64": ({DType.FP64: N // 2 * 2 * 4}, {}),
    "int8": ({}, {DType.INT8: N * 16 * 2}),
    "bf16": ({DType.BF16: N * 8 * 2 + N * 16 * 2}, {}),
    # Lanes that the predicate switches off are counted in full, and the last sum as the lanes of a register.
    "sve": ({DType.FP32: SVE_ROUNDS * SVE_LANES * 2 + SVE_LANES}, {}),
}
TRACE = re.compile(r"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/", re.MULTILINE)


def built(kernel: str, folder: Path) -> Path:
    program = folder / kernel
    extra = "+sve" if kernel == "sve" else ""
    options = [
        "-O2",
        "-ffreestanding",
        "-fno-stack-protector",
        "-fno-tree-vectorize",
        "-nostdlib",
        "-static",
        "-no-pie",
    ]
    command = [COMPILER, *options, f"-march=armv8.6-a{extra}", f"-DKERNEL={kernel}", "-o", str(program), str(SOURCE)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode and "armv8.6-a" in made.stderr:
        pytest.skip(f"the cross compiler is too old: {made.stderr.splitlines()[0]}")
    assert made.returncode == 0, made.stderr
    return program


def executed(program: Path) -> Counter[int]:
    """How often the instruction at each address ran."""
    log = program.with_suffix(".log")
    # One instruction in a block, so that the log has each; the option has another name since QEMU 8.1.
    for single in (["-singlestep"], ["-one-insn-per-tb"]):
        command = [
            EMULATOR,
            "-cpu",
            f"max,sve{SVE_BITS}=on",
            *single,
            "-d",
            "exec,nochain",
            "-D",
            str(log),
            str(program),
        ]
        if subprocess.run(command, capture_output=True).returncode == 0:
            return Counter(int(address, 16) for address in TRACE.findall(log.read_text()))
    pytest.skip("this QEMU does not run the program instruction by instruction")


def text_of(program: Path) -> tuple[int, bytes]:
    """Address and bytes of the program's code, which is one function."""
    copy = program.with_suffix(".bin")
    subprocess.run([COPIER, "-O", "binary", "-j", ".text", program, copy], check=True)
    head = program.read_bytes()
    return int.from_bytes(head[24:32], "little"), copy.read_bytes()


@pytest.mark.parametrize("kernel", EXPECTED)
def test_executed_kernels_are_worth_their_closed_forms(kernel: str, tmp_path: Path) -> None:
    program = built(kernel, tmp_path)
    start, code = text_of(program)
    counts = executed(program)
    assert counts and set(counts) <= {start + offset for offset in range(0, len(code), 4)}
    found = Classified.total(
        classify_block(Block(Scope(), "aarch64", at, code[at - start : at - start + 4], runs, scalable_bits=SVE_BITS))
        for at, runs in counts.items()
    )
    flop, op = EXPECTED[kernel]
    assert found.tally.flop(PMU) == flop
    assert found.tally.op(PMU) == op
    assert found.unknown == {}
