"""Products of real numbers by quantised weights, and of numbers of few bits."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, formula, numbers_of, work
from flopwatch.flops.formulas.aten.arguments import first_of, result_of
from flopwatch.flops.formulas.epilogue import unary
from flopwatch.flops.formulas.low_precision import scaled_product, weights_by_column, weights_by_group
from flopwatch.flops.formulas.work import Numbers
from flopwatch.flops.operations import DType


@formula("aten::_weight_int8pack_mm", "aten::_mixed_dtypes_linear")
def by_bytes(op: Op) -> Work | Unknown:
    """Real numbers by integer weights with a scale for each column."""
    given = op.arguments
    inputs: Array = first_of(given, "self", "input")
    result = result_of(op)
    columns = result.shape[-1]
    rows = result.size // columns if columns else 0
    function = unary(inputs, given.get("activation"), result.size)
    if function is None:
        return Unknown(op.name)
    bias = work(inputs, add=0 if given.get("bias") is None else result.size)
    return weights_by_column(inputs, rows, inputs.shape[-1], columns) + bias + function


@formula(
    "aten::_weight_int4pack_mm",
    "aten::_weight_int4pack_mm_for_cpu",
    "aten::_weight_int4pack_mm_with_scales_and_zeros",
    "aten::_dyn_quant_matmul_4bit",
    "quantized::int4mm_packed_weight_cpu",
)
def by_half_bytes(op: Op) -> Work:
    """Real numbers by weights of four bits, in groups with scale and zero; how many columns there are is seen from the result."""
    inputs: Array = first_of(op.arguments, "self", "inp")
    result = result_of(op)
    columns = result.shape[-1]
    rows = result.size // columns if columns else 0
    return weights_by_group(inputs, rows, inputs.shape[-1], columns)


@formula("aten::_scaled_mm", "aten::_scaled_mm_v2", "aten::_scaled_grouped_mm", "aten::_scaled_grouped_mm_v2")
def scaled(op: Op) -> Work:
    """Numbers of 8 bits, or two of 4 bits in a byte; grouped as in `_grouped_mm`."""
    given = op.arguments
    left: Array = given["self"]
    right: Array = given["mat2"]
    stretch = 2 if left.dtype.startswith("float4") else 1
    numbers = Numbers(DType.FP8) if stretch == 2 else numbers_of(left)
    result = result_of(op)
    batch = left.shape[0] if len(left.shape) == len(right.shape) == 3 else 1
    (rows, inner), columns = left.shape[-2:], right.shape[-1]
    # Groups have rows and columns of their own, even where they share an inner dimension.
    groups = result.shape[0] if len(result.shape) == 3 else 1
    matrices = max(groups, right.shape[0] if len(right.shape) == 3 else 1)
    every = (max(prod(left.shape[:-1]), prod(result.shape[:-1])), columns * matrices)
    scales = (_scales(given["scale_a"]), _scales(given["scale_b"]))
    blocks = None
    if max(scales) > matrices:
        blocks = max(1, *(count // max(1, of) for count, of in zip(scales, every, strict=True)))
    return scaled_product(
        numbers,
        batch * rows * inner * stretch * columns,
        result.size,
        inner=inner * stretch,
        blocks=blocks,
        matrices=matrices,
        bias=given.get("bias") is not None,
    )


def _scales(given: Array | Sequence[Array]) -> int:
    return given.size if isinstance(given, Array) else max((each.size for each in given), default=1)
