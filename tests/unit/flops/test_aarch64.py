"""The AArch64 table: worked values by hand, bytes by an assembler, and a walk over everything that the decoder knows."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flopwatch.errors import CannotMeasureError
from flopwatch.events import Block
from flopwatch.flops import ARITHMETIC, PMU, Counted, DType, Free, Operation, Unknown, aarch64, classify, classify_block
from flopwatch.flops.forms import GENERAL_REGISTER
from flopwatch.flops.table import CountedRow, FreeRow, load_table
from flopwatch.flops.tally import Key
from flopwatch.scope import Scope

capstone = pytest.importorskip(
    "capstone", reason="the decoder of AArch64 is not installed: pip install 'flopwatch[aarch64]'"
)

DATA = Path(__file__).parents[2] / "data" / "aarch64"
TABLE = load_table("aarch64")
ARCHITECTURE = ".arch armv8.6-a+sve2+sme+sme-f64+sme-i64+f32mm+f64mm+crypto+sha3+fp16fml+crc"
RECORDED_DECODER = (5, 0)


def worked() -> list[tuple[str, bytes, str]]:
    """Assembly, bytes and worth of each recorded instruction."""
    lines = [line.split(" | ") for line in (DATA / "instructions.txt").read_text().splitlines()]
    return [(line[0], bytes.fromhex(line[1]), line[2]) for line in lines if len(line) == 3 and line[0][0] != "#"]


def words(name: str) -> list[str]:
    """The words of a recorded list without its comment."""
    lines = (DATA / name).read_text().splitlines()
    return " ".join(line for line in lines if not line.startswith("#")).split()


def worth(answer: Counted | Free | Unknown) -> str:
    if isinstance(answer, Free):
        return f"free {answer.reason}"
    assert isinstance(answer, Counted), answer
    ((key, count),) = answer.tally.items()
    assert count.instructions == 1 and count.active_lanes is None
    return f"{key.operation} {key.dtype} {key.lanes}" + (" masked" if key.masked else "")


def block(code: bytes, runs: int = 1, scalable_bits: int = 128) -> Block:
    return Block(Scope(), "aarch64", 0x1000, code, runs, scalable_bits=scalable_bits)


@pytest.mark.parametrize(
    ("text", "code", "expected"), worked(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_worth_by_hand(text: str, code: bytes, expected: str) -> None:
    assert worth(classify(code, isa="aarch64")) == expected


def test_the_recorded_bytes_are_what_an_assembler_makes(tmp_path: Path) -> None:
    assembler, copier = shutil.which("aarch64-linux-gnu-as"), shutil.which("aarch64-linux-gnu-objcopy")
    if assembler is None or copier is None:
        pytest.skip("no assembler for AArch64: apt install binutils-aarch64-linux-gnu")
    texts = [text.replace("#16", ".+16") if text.startswith("b.") else text for text, _, _ in worked()]
    source = "\n".join([ARCHITECTURE, *texts, ""])
    made = subprocess.run([assembler, "-o", tmp_path / "a.o", "-"], input=source, text=True, capture_output=True)
    if made.returncode and "unknown" in made.stderr:
        pytest.skip(f"the assembler is too old: {made.stderr.splitlines()[1]}")
    assert made.returncode == 0, made.stderr
    subprocess.run([copier, "-O", "binary", "-j", ".text", tmp_path / "a.o", tmp_path / "a.bin"], check=True)
    assert (tmp_path / "a.bin").read_bytes() == b"".join(code for _, code, _ in worked())


def test_every_row_is_tried_by_hand() -> None:
    """Each counted row has at least one worked value, and each reason."""
    tried = {text.split()[0] for text, _, _ in worked()}
    rows: tuple[CountedRow | FreeRow, ...] = (*TABLE.counted, *TABLE.free)
    untried = [
        row.names for row in rows if not tried & set(row.names.split()) and getattr(row, "reason", "") != "state"
    ]
    assert untried == []


def test_every_form_with_vector_registers_is_counted_or_free() -> None:
    forms = words("forms.txt")
    assert len(forms) > 5000
    wrong = []
    for word in forms:
        code = bytes.fromhex(word)
        answer = classify(code, isa="aarch64")
        if isinstance(answer, Unknown) or answer == Free(GENERAL_REGISTER):
            wrong.append((word, answer))
    assert wrong == []


def test_every_instruction_of_the_decoder_has_a_row_or_works_on_general_registers() -> None:
    if capstone.cs_version()[:2] != RECORDED_DECODER:
        pytest.skip(
            f"the list of instructions was recorded with capstone {RECORDED_DECODER}, not {capstone.cs_version()}"
        )
    decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_LITTLE_ENDIAN)
    ids = [value for name, value in vars(capstone.arm64_const).items() if name.startswith("ARM64_INS_")]
    names = {decoder.insn_name(value) for value in ids} - {None}
    rows = set(TABLE.by_mnemonic())
    general = set(words("general.txt"))
    assert len(names) > 1200
    assert rows - names == set()
    assert rows & general == set()
    assert names == rows | general


def test_random_words_are_never_silently_general() -> None:
    """Whatever decodes with a vector register is counted or free; what does not decode is unknown by its bytes."""
    rng = random.Random(64)
    undecoded = 0
    for _ in range(20_000):
        code = (rng.getrandbits(32) & ~0x0E00_0000 | rng.choice((0x0E00_0000, 0x0400_0000, 0x0C00_0000))).to_bytes(
            4, "little"
        )
        answer = classify(code, isa="aarch64")
        if isinstance(answer, Unknown):
            assert answer == Unknown(code.hex(" "))
            undecoded += 1
    assert 0 < undecoded < 20_000


def test_lanes_fill_the_register() -> None:
    """A cross-check of every counted form: the lanes of one whole vector fill 64 or 128 bits, or there is one."""
    odd = []
    for word in words("forms.txt"):
        code = bytes.fromhex(word)
        answer = classify(code, isa="aarch64")
        if not isinstance(answer, Counted):
            continue
        ((key, _),) = answer.tally.items()
        if key.lanes == 1 or key.operation is Operation.TILE_DOT:
            continue
        bits = key.lanes * key.dtype.bits
        if bits not in (64, 128) and not (bits == 256 and key.operation is Operation.DOT):
            odd.append((word, key))
    # Long forms have factors half as wide as their sums: FMLAL takes two fp16 factors out of 64-bit vectors.
    assert {(key.operation, key.dtype, key.lanes) for _, key in odd} <= {(Operation.FMA, DType.FP16, 2)}


@pytest.mark.parametrize("bits", [128, 256, 512, 2048])
def test_scalable_vectors_have_the_lanes_of_their_length(bits: int) -> None:
    cases = {
        "fmla z0.s, p1/m, z2.s, z3.s": bits // 32,
        "fadd z0.s, z1.s, z2.s": bits // 32,
        "bfmmla z0.s, z1.h, z2.h": 16 * (bits // 128),
        "sdot z0.s, z1.b, z2.b": bits // 8,
        "fmla v0.4s, v1.4s, v2.4s": 4,
        "fadd d0, d1, d2": 1,
        "fmopa za0.s, p0/m, p1/m, z2.s, z3.s": (bits // 32) ** 2,
        "bfmopa za0.s, p0/m, p1/m, z2.h, z3.h": (bits // 32) ** 2 * 2,
    }
    codes = {text: code for text, code, _ in worked()}
    for text, lanes in cases.items():
        ((key, count),) = classify_block(block(codes[text], runs=7, scalable_bits=bits)).tally.items()
        assert (key.lanes, count.instructions) == (lanes, 7), text


@pytest.mark.parametrize("bits", [0, 64, 129, 200])
def test_no_other_vector_length(bits: int) -> None:
    with pytest.raises(ValueError, match="multiple of 128"):
        classify_block(block(b"\x00\x38\x22\x0e", scalable_bits=bits))


def test_a_dot_product_loop_by_hand() -> None:
    """ldr q1; ldr q2; fmla v0.4s; subs; b.ne, 250 rounds, then faddp twice: 250 * 4 * 2 + 4 + 1 FLOP."""
    codes = {text: code for text, code, _ in worked()}
    fmla, faddp, last = (
        codes[text] for text in ("fmla v0.4s, v1.4s, v2.4s", "faddp v0.4s, v1.4s, v2.4s", "faddp s0, v1.2s")
    )
    load, branch = codes["ldr q0, [x1]"], codes["b.ne #16"]
    rounds = 250
    loop = classify_block(block(load + load + fmla + branch, rounds), by_instruction=True)
    assert loop.tally.flop(PMU) == {DType.FP32: rounds * 4 * 2}
    assert loop.vector_instructions == rounds * 3
    assert set(loop.by_instruction) == {"fmla"}
    end = classify_block(block(faddp + last))
    assert end.tally.flop(PMU) == end.tally.flop(ARITHMETIC) == {DType.FP32: 4 + 1}
    assert loop.coverage == end.coverage == 1


def test_an_undecodable_word_is_one_unknown_and_the_rest_is_read() -> None:
    codes = {text: code for text, code, _ in worked()}
    answer = classify_block(block(b"\xff\xff\xff\xff" + codes["fadd v0.4s, v1.4s, v2.4s"] + b"\x01", runs=3))
    assert answer.unknown == {"ff ff ff ff": 3, "01": 3}
    assert answer.tally == {Key(Operation.ADD, DType.FP32, 4): (3, None)}
    assert answer.vector_instructions == 3 * 3


def test_integer_dot_products_are_op_not_flop() -> None:
    codes = {text: code for text, code, _ in worked()}
    tally = classify_block(block(codes["smmla v0.4s, v1.16b, v2.16b"], runs=10)).tally
    assert tally.flop() == {}
    assert tally.op() == {DType.INT8: 10 * 32 * 2}


def test_without_the_decoder_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "capstone", None)
    aarch64._decoder.cache_clear()
    aarch64._disassemble.cache_clear()
    try:
        with pytest.raises(CannotMeasureError, match=re.escape("pip install 'flopwatch[aarch64]'")):
            classify(b"\x1f\x20\x03\xd5", isa="aarch64")
    finally:
        aarch64._decoder.cache_clear()


def test_every_row_has_a_source_and_every_reason_a_note() -> None:
    rows: tuple[CountedRow | FreeRow, ...] = (*TABLE.counted, *TABLE.free)
    assert all(row.source.strip() and row.names.split() for row in rows)
    assert all(row.note for row in TABLE.free)
    assert len({row.reason for row in TABLE.free}) == len(TABLE.free)


def test_another_architecture_is_refused() -> None:
    with pytest.raises(CannotMeasureError, match="riscv64"):
        classify(b"\x13\x00\x00\x00", isa="riscv64")
