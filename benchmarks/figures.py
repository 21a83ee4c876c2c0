"""The figures of docs/figures.md, measured again, each with what is expected of it beside.

    python benchmarks/figures.py [--python PYTHON] [--json FILE] [ROW ...]

ROW is one or more of matmul, conv, googlenet, resnet18, vision, closed_form, datatypes (default: all). PYTHON is one with torch,
torchvision and Chainer (default: FLOPWATCH_TORCH_PYTHON, else this one); flopwatch itself need not be installed there, but
what it depends on must. Prints a Markdown table and ends with exit code 1 if a figure is not as expected.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from figures_lab import Lab, by_instruction, flop, lanes, threads

N = 512
PANEL = 448  # rows of B that OpenBLAS packs at once for its AVX-512 kernel (SGEMM_DEFAULT_Q)
CHANNELS, SIDE, KERNEL = 64, 56, 3
PADDED = CHANNELS * CHANNELS * (SIDE * KERNEL) ** 2
SKIPPED = CHANNELS * CHANNELS * (SIDE * KERNEL - 2) ** 2
ROWS, FEATURES = 128, 512
LINEAR = ROWS * FEATURES * FEATURES
ARTICLE = 3_254_293_004
GOOGLENET = 1_581_647_872  # multiply-adds of its convolutions
GOOGLENET_PANELS = 5_477_024  # elements of their results, each once for every 448 products or part of them
CONV1 = 2 * (3 * 7 * 7) * (64 * 112 * 112)


@dataclass(frozen=True)
class Figure:
    """One row: what was measured, the figure, what is expected in words, and whether it is so."""

    what: str
    measured: str
    expected: str
    held: bool
    remark: str = ""


def matmul(lab: Lab) -> Iterator[Figure]:
    """A matrix product: twice its terms, and one fused multiply-add for each element of C and panel of K."""
    totals = []
    for number in (1, 2):
        none, one, three = (lab.stat("numpy_matmul.py", str(count), env=threads(number)) for count in (0, 1, 3))
        product = flop(one) - flop(none)
        panels, rest = divmod(product - 2 * N**3, 2 * N**2)
        split = {name: f for name, f in by_instruction(one).items() if name.startswith("vfm") and f > N}
        totals.append(product)
        yield Figure(
            f"numpy fp32 {N}³, {number} thread{'s' * (number > 1)}: fp32 of one product",
            f"{product:,}",
            f"2·{N}³ + panels·2·{N}²: {2 * N**3 + -(-N // PANEL) * 2 * N**2:,} with panels of at most {PANEL}",
            rest == 0 and 1 <= panels <= 4 and flop(three) - flop(one) == 2 * product,
            f"{panels} panels; " + ", ".join(f"{name} {f:,}" for name, f in split.items()),
        )
    yield Figure("the same, 1 thread less 2 threads", f"{totals[0] - totals[1]:,}", "0", totals[0] == totals[1])


def conv(lab: Lab) -> Iterator[Figure]:
    """A padded convolution: every product, or those with the padding left out."""
    for name, capped in (("", {}), (", AVX2", {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"})):
        for number in (1, 2):
            record = lab.layer("conv", env=threads(number) | capped)
            found = lanes(record, "fma", "fp32")
            said = {SKIPPED: "padding skipped", PADDED: "padding multiplied"}
            yield Figure(
                f"Conv2d(64, 64, 3, padding=1), 1×64×56×56, {number} thread{'s' * (number > 1)}{name}: fma lanes",
                f"{found:,}",
                f"{SKIPPED:,} (padding skipped) or {PADDED:,}",
                found in said,
                f"{said.get(found, 'neither')}; {flop(record):,} FLOP with bias and partial sums",
            )


def googlenet(lab: Lab) -> Iterator[Figure]:
    """The article's network: the whole process, and its first layer by the article's hook."""
    record = lab.stat("chainer_googlenet.py")
    whole = flop(record)
    yield Figure(
        "Chainer GoogLeNet, whole process under stat: fp32",
        f"{whole:,}",
        f"{ARTICLE:,} ± 1 % (the article, another processor)",
        abs(whole - ARTICLE) <= ARTICLE / 100,
        f"{whole / ARTICLE - 1:+.2%}",
    )
    gemm = sum(
        each["count"] * each["lanes"] * 2
        for cell in record["cells"]
        if cell.get("symbol", "").startswith("sgemm_kernel")
        for each in cell["operations"]
        if each["operation"] == "fma"
    )
    yield Figure(
        "of it in BLAS's sgemm kernel (all convolutions)",
        f"{gemm:,}",
        f"2·{GOOGLENET:,} + 2·{GOOGLENET_PANELS:,}: {2 * (GOOGLENET + GOOGLENET_PANELS):,} with panels of at most {PANEL}",
        2 * GOOGLENET <= gemm <= 2 * GOOGLENET * 1.01,
    )
    name, first = json.loads(lab.output("chainer_googlenet.py", "functions"))[0]
    yield Figure(
        f"the same, first call of CounterHook ({name}, conv1)",
        f"{first:,}",
        f"at least {CONV1:,}",
        name == "Convolution2DFunction" and CONV1 <= first < CONV1 * 1.02,
        "the article's tool saw one thread of eight: 30,507,008",
    )


def resnet18(lab: Lab) -> Iterator[Figure]:
    """Two ways to one figure: the counted step of `model`, and one inference more of a program under `stat`."""
    step = flop(lab.model("resnet18"))
    two, three = (flop(lab.stat("torch_resnet18.py", count)) for count in ("2", "3"))
    yield Figure("ResNet-18, one inference by model: fp32", f"{step:,}", "near 3.38e9", abs(step / 3.38e9 - 1) < 0.01)
    yield Figure(
        "the same: a program with three inferences under stat less one with two",
        f"{three - two:,}",
        f"{step:,}",
        three - two == step,
    )


def vision(lab: Lab) -> Iterator[Figure]:
    """Two torchvision models."""
    for name, near in (("resnet50", 7.956e9), ("vit_b_16", 35.54e9)):
        record = lab.model(name)
        found = flop(record)
        rows = sum(row["measured"].get("fp32", 0) for row in record["rows"])
        yield Figure(
            f"torchvision {name}, one inference: fp32",
            f"{found:,}",
            f"near {near:.4g}; rows sum to it",
            abs(found / near - 1) < 0.01 and rows == found,
            f"{sum(1 for row in record['rows'] if row['measured_flop'])} rows with work; {flop(record, 'fp64')} in fp64",
        )


def closed_form(lab: Lab) -> Iterator[Figure]:
    """All convolutions of a network: the multiply-adds that their shapes say, without the padding."""
    for name in ("resnet18", "resnet50"):
        every, inside = map(int, lab.output("torch_closed_form.py", name).split())
        cells = [cell for cell in lab.model(name)["cells"] if cell.get("op") == "aten::conv2d"]
        found = sum(lanes(cell, "fma", "fp32") for cell in cells)
        yield Figure(
            f"torchvision {name}, fma lanes of its convolutions",
            f"{found:,}",
            f"{inside:,} by shape (padding skipped) or {every:,}",
            found in (inside, every),
            "padding skipped" if found == inside else "",
        )


def datatypes(lab: Lab) -> Iterator[Figure]:
    """One layer in each datatype: the products are where they belong."""
    own_fp16 = "avx512_fp16" in lab.flags
    cases = [("fp32", "fp32"), ("fp64", "fp64"), ("bf16", "bf16"), ("fp16", "fp16" if own_fp16 else "fp32")]
    for dtype, shown in cases:
        for factory, size, least in (("linear", f"{ROWS}x{FEATURES}", LINEAR), ("conv", "1x64x56x56", SKIPPED)):
            record = lab.layer(factory, "--dtype", dtype, "--input", size)
            found, every = flop(record, shown), sum(record["flop"].values())
            others = ", ".join(f"{name} {count:,}" for name, count in record["flop"].items() if name != shown and count)
            yield Figure(
                f"{factory} in {dtype}: FLOP under {shown}",
                f"{found:,}",
                f"at least 2·{least:,}" + ("" if dtype == shown else f": no {dtype} arithmetic in this processor"),
                2 * least <= found <= 2 * least * 1.12 and found >= 0.99 * every and not record["op"],
                f"{found / every:.2%} of all FLOP" + (f"; {others}" if others else ""),
            )
    for factory in ("int8_product", "int8_linear"):
        record = lab.layer(factory)
        found, every = record["op"].get("int8", 0), sum(record["flop"].values())
        yield Figure(
            f"{factory} in int8: OP",
            f"{found:,}",
            f"at least 2·{LINEAR:,}; no FLOP of the products",
            2 * LINEAR <= found <= 2 * LINEAR * 1.02 and every < 2 * LINEAR / 100,
            f"{lanes(record, 'dot', 'int8'):,} products in dot instructions; {every:,} FLOP",
        )
    dots = []
    for passes in ("1", "2"):
        executed = by_instruction(lab.stat("torch_layers.py", "conv", "bfloat16", passes))
        dots.append({name: f for name, f in executed.items() if name.startswith("vdpbf16ps")})
    once = {name: f - dots[0].get(name, 0) for name, f in dots[1].items()}
    yield Figure(
        "conv in bf16, second pass: FLOP of vdpbf16ps",
        ", ".join(f"{name} {f:,}" for name, f in once.items()) or "none",
        f"2·{SKIPPED:,} where the processor has it",
        sum(once.values()) in ((2 * SKIPPED, 2 * PADDED) if "avx512_bf16" in lab.flags else (0,)),
    )


PARTS: dict[str, Callable[[Lab], Iterator[Figure]]] = {
    "matmul": matmul, "conv": conv, "googlenet": googlenet, "resnet18": resnet18, "vision": vision,
    "closed_form": closed_form, "datatypes": datatypes,
}  # fmt: skip


def main() -> int:
    """Measure what was asked for, print each row as it comes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rows", nargs="*", choices=(*PARTS, []), default=[], metavar="ROW", help=", ".join(PARTS))
    parser.add_argument("--python", default=os.environ.get("FLOPWATCH_TORCH_PYTHON", sys.executable))
    parser.add_argument("--json", help="save the rows in this file, too")
    arguments = parser.parse_args()
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(arguments.python, Path(folder), frozenset(flags[1].split() if flags else ()))
        print("| what | measured | expected | | |\n| --- | --- | --- | --- | --- |")
        for part in arguments.rows or PARTS:
            for figure in PARTS[part](lab):
                figures.append(figure)
                verdict = "held" if figure.held else "MISSED"
                print(
                    f"| {figure.what} | {figure.measured} | {figure.expected} | {verdict} | {figure.remark} |",
                    flush=True,
                )
    if arguments.json:
        Path(arguments.json).write_text(
            json.dumps([asdict(figure) for figure in figures], indent=1, ensure_ascii=False)
        )
    return 0 if all(figure.held for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
