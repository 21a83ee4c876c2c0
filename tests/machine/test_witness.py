"""The table of expected counts is right: each program, run one instruction at a time under ptrace, retires exactly what the table says.

This needs nothing of flopwatch but the decoder library, and names operations by rules of its own, so it checks the table, not the counter.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import iced_x86
import pytest

from tests.machine import helpers
from tests.machine.test_targets import BUILT, IDS
from tests.targets.expected import CASES, Build, Counts, Key, sizes

pytestmark = pytest.mark.witness

FORMATTER = iced_x86.Formatter(iced_x86.FormatterSyntax.NASM)
BITS = {"x": 128, "y": 256, "z": 512}
NAMES = {"sub": "add", "addsub": "add", "hadd": "add", "hsub": "add", "min": "minmax", "max": "minmax"}
X87 = {
    "fadd": "add",
    "fiadd": "add",
    "fsub": "add",
    "fisub": "add",
    "fmul": "mul",
    "fimul": "mul",
    "fdiv": "div",
    "fidiv": "div",
}


def operation(code: bytes) -> Key | None:
    """The kind of operation at the start of `code`, by its mnemonic; None if it is not a floating-point operation."""
    instruction = iced_x86.Decoder(64, code).decode()
    text = FORMATTER.format(instruction)
    mnemonic, _, operands = text.partition(" ")
    masked = instruction.op_mask != iced_x86.Register.NONE
    if mnemonic in ("fsqrt",):
        return ("sqrt", "x87", 1, False)
    if found := re.fullmatch(r"(f(?:i?add|i?sub|i?mul|i?div)r?)p?", mnemonic):
        return (X87[found[1].removesuffix("r")], "x87", 1, False)
    if re.match(r"f(yl2x|sin|cos|ptan|patan|2xm1|prem|scale)", mnemonic):
        return ("transcendental", "x87", 1, False)
    width = BITS[match[1]] if (match := re.search(r"\b([xyz])mm\d", operands)) else 0
    if mnemonic == "vdpbf16ps":
        return ("dot", "bf16", width // 16, masked)
    if mnemonic == "vpdpbusd":
        return ("dot", "int8", width // 8, masked)
    pattern = r"v?(?:(fn?m(?:add|sub)\w*)|(addsub|hadd|hsub|add|sub|mul|div|sqrt|min|max|rcp|rsqrt|dp))([ps])([sd])"
    if not width or not (found := re.fullmatch(pattern, mnemonic)):
        return None
    fused, plain, packed, kind = found.groups()
    bits = 32 if kind == "s" else 64
    lanes = width // bits if packed == "p" else 1
    return ("fma" if fused else NAMES.get(plain, plain), f"fp{bits}", lanes, masked)


def witnessed(program: Path, stdin: bytes) -> tuple[int, Counts]:
    """The exit code and the retired operations of a program and of all that it starts."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "retired"
        command = (str(helpers.build_stepper()), str(out), str(program))
        done = subprocess.run(command, input=stdin, capture_output=True, env=helpers.environment(), timeout=600)
        counts = Counts()
        for line in out.read_text().splitlines():
            number, code = line.split()
            if key := operation(bytes.fromhex(code)):
                counts[key] += int(number)
    return done.returncode, counts


@pytest.mark.parametrize(("name", "way"), BUILT, ids=IDS)
def test_retires_what_the_table_says(name: str, way: Build) -> None:
    case = CASES[name]
    helpers.need_machine(*way.needs, *case.needs)
    if case.steppable:
        pytest.skip(case.steppable)
    code, counts = witnessed(helpers.build(name, way), case.stdin)
    named = sizes(*(case.sources or (helpers.source(name).name,)))
    assert dict(counts) == {key: number for key, number in case.counts(named, way).items() if number}
    assert code == case.code
