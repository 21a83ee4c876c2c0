"""Products of quantised numbers, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, estimate
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally

ROWS, INNER, COLUMNS = 3, 10, 5
MAC, OUT = ROWS * INNER * COLUMNS, ROWS * COLUMNS


def worth(name: str, result: Array, **arguments: Any) -> Work:
    found = estimate(Op(name, arguments, (result,)))
    assert isinstance(found, Work)
    return found


def done(integer: int = 0, dtype: DType = DType.FP32, **counts: int) -> Tally:
    parts = [Tally.of(Operation(name), dtype, instructions=count) for name, count in counts.items()]
    return Tally.total([Tally.of(Operation.INT_MAD, DType.INT8, instructions=integer), *parts])


PACKED = [Array((COLUMNS, INNER), "qint8"), Array((COLUMNS,))]


def test_quantised_inputs_and_results_leave_one_product_with_a_scale() -> None:
    found = worth(
        "quantized::linear", Array((ROWS, COLUMNS), "quint8"), X=Array((ROWS, INNER), "quint8"), W_prepack=PACKED
    )
    assert (found.mac, found.tally) == (MAC, done(MAC, mul=OUT))


def test_real_inputs_are_quantised_by_their_least_and_largest() -> None:
    found = worth("quantized::linear_dynamic", Array((ROWS, COLUMNS)), X=Array((ROWS, INNER)), W_prepack=PACKED)
    size = ROWS * INNER
    quantising = {"minmax": 2 * (size - 1) + 2, "add": 2 + OUT, "div": 2 + 1, "mul": size + OUT}
    assert (found.mac, found.tally) == (MAC, done(MAC, **quantising))


def test_weights_of_half_precision_are_multiplied_as_real_numbers() -> None:
    packed = [Array((COLUMNS, INNER), "float16"), None]
    found = worth("quantized::linear_dynamic_fp16", Array((ROWS, COLUMNS)), X=Array((ROWS, INNER)), W_prepack=packed)
    assert found.tally == done(fma=MAC)


def test_packed_parameters_that_do_not_show_what_is_in_them_are_unknown() -> None:
    op = Op(
        "quantized::linear", {"X": Array((ROWS, INNER), "quint8"), "W_prepack": object()}, (Array((ROWS, COLUMNS)),)
    )
    assert estimate(op) == Unknown("quantized::linear")


@pytest.mark.parametrize(("dims", "name"), [(1, "conv1d"), (2, "conv2d"), (3, "conv3d")])
def test_convolutions(dims: int, name: str) -> None:
    x, y = Array((2, 4, *(8,) * dims), "quint8"), Array((2, 6, *(8,) * dims), "quint8")
    weight = Array((6, 2, *(3,) * dims), "qint8")
    bare = worth(f"quantized::{name}", y, qx=x, packed_weight=[weight, None])
    mac = 2 * 8**dims * 6 * 2 * 3**dims
    assert (bare.mac, bare.avoidable, bare.tally) == (mac, {}, done(mac, mul=y.size))
    placed = worth(f"quantized::{name}", y, qx=x, packed_weight=[weight, None, [1] * dims, [1] * dims, [1] * dims])
    assert (placed.mac, placed.avoidable["padding"]) == (mac, mac - 2 * 22**dims * 6 * 2)


def test_one_dimension_may_be_packed_as_two() -> None:
    x, y = Array((2, 4, 8), "quint8"), Array((2, 6, 6), "quint8")
    found = worth("quantized::conv1d", y, qx=x, packed_weight=[Array((6, 4, 1, 3), "qint8"), None])
    assert found.mac == 2 * 6 * 6 * 4 * 3


def test_a_transposed_convolution_works_by_its_input() -> None:
    x, y = Array((1, 3, 2, 2), "quint8"), Array((1, 1, 4, 4), "quint8")
    found = worth("quantized::conv_transpose2d", y, qx=x, packed_weight=[Array((3, 1, 2, 2), "qint8"), None])
    assert found.mac == 3 * 2 * 2 * 4


def test_fused_quantised_products() -> None:
    given = {"qx": Array((ROWS, INNER), "uint8"), "qw": Array((INNER, COLUMNS), "int8"), "bias": Array((COLUMNS,))}
    real = worth(
        "onednn::qlinear_pointwise",
        Array((ROWS, COLUMNS)),
        **given,
        post_op_name="relu",
        post_op_args=[],
        post_op_algorithm="",
    )
    assert real.tally == done(MAC, mul=OUT, add=OUT, minmax=OUT)
    whole = worth(
        "onednn::qlinear_pointwise", Array((ROWS, COLUMNS), "uint8"), **given,
        other=Array((ROWS, COLUMNS), "uint8"), binary_post_op="add", unary_post_op="none",
    )  # fmt: skip
    assert whole.tally == done(MAC, mul=3 * OUT, add=2 * OUT)


def test_real_numbers_by_integer_weights() -> None:
    x = Array((ROWS, INNER), "bfloat16")
    y = Array((ROWS, COLUMNS), "bfloat16")
    by_column = worth(
        "aten::_weight_int8pack_mm", y, self=x, mat2=Array((COLUMNS, INNER), "int8"), scales=Array((COLUMNS,))
    )
    assert (by_column.mac, by_column.tally) == (MAC, done(dtype=DType.BF16, fma=MAC, mul=OUT))
    by_group = worth("aten::_weight_int4pack_mm", y, self=x, mat2=Array((1, 1, 32, 4), "int32"), qGroupSize=32)
    assert (by_group.mac, by_group.tally) == (MAC, done(dtype=DType.BF16, fma=MAC + INNER * COLUMNS))


def scaled(
    left: tuple[int, ...],
    right: tuple[int, ...],
    a: tuple[int, ...],
    b: tuple[int, ...],
    y: tuple[int, ...],
    dtype: str = "float8_e4m3fn",
) -> Work:
    name = "aten::_scaled_grouped_mm" if len(right) == 3 else "aten::_scaled_mm"
    given = {"self": Array(left, dtype), "mat2": Array(right, dtype), "scale_a": Array(a), "scale_b": Array(b)}
    return worth(name, Array(y, "bfloat16"), **given)


def test_numbers_of_eight_and_of_four_bits() -> None:
    eight = Tally.of(Operation.FMA, DType.FP8, instructions=16 * 32 * 64)
    whole = scaled((16, 32), (32, 64), (), (), (16, 64))
    assert (whole.mac, whole.tally) == (16 * 32 * 64, eight + done(mul=1 + 16 * 64))
    assert scaled((16, 32), (32, 64), (16, 1), (1, 64), (16, 64)).tally == eight + done(mul=2 * 16 * 64)
    blocks = 2
    assert scaled((16, 32), (32, 64), (16, blocks), (blocks, 1), (16, 64)).tally == eight + done(
        mul=2 * blocks * 16 * 64
    )
    assert scaled((16, 16), (16, 64), (), (), (16, 64), "float4_e2m1fn_x2").mac == 16 * 32 * 64


def test_a_layer_of_experts() -> None:
    tokens, inner, columns, experts = 8, 16, 32, 4
    found = scaled((tokens, inner), (experts, inner, columns), (tokens,), (experts, columns), (tokens, columns))
    assert found.mac == tokens * inner * columns
    assert (
        found.tally[next(key for key in found.tally if key.operation is Operation.MUL)].instructions
        == 2 * tokens * columns
    )


STEPS, BATCH, HIDDEN = 7, 2, 4


def test_a_recurrent_network_with_integer_weights() -> None:
    cell = [
        Array((4 * HIDDEN, INNER), "qint8"),
        Array((4 * HIDDEN, HIDDEN), "qint8"),
        Array((4 * HIDDEN,)),
        Array((4 * HIDDEN,)),
    ]
    given = {
        "params": [cell],
        "has_biases": True,
        "num_layers": 1,
        "dropout": 0.0,
        "train": False,
        "bidirectional": False,
    }
    inputs = Array((STEPS, BATCH, INNER))
    found = worth("aten::quantized_lstm", inputs, input=inputs, hx=[], **given)
    mac = STEPS * BATCH * 4 * HIDDEN * (INNER + HIDDEN)
    assert (found.mac, sum(found.tally.op().values())) == (mac, 2 * mac)
    half = [Array(each.shape, "float16") for each in cell[:2]]
    real = worth("aten::quantized_lstm", inputs, input=inputs, hx=[], **given | {"params": [[*half, *cell[2:]]]})
    assert (real.mac, real.tally.op()) == (mac, {})
    hidden = estimate(Op("aten::quantized_lstm", {"input": inputs, "hx": [], **given, "params": [object()]}))
    assert hidden == Unknown("aten::quantized_lstm")


def test_a_cell_with_integer_weights_is_one_step_of_it() -> None:
    w, u, b = Array((4 * HIDDEN, INNER), "qint8"), Array((4 * HIDDEN, HIDDEN), "qint8"), Array((4 * HIDDEN,))
    inputs = Array((BATCH, INNER))
    one = worth(
        "quantized::quantized_lstm_cell_dynamic", inputs, input=inputs, w_ih=[w, b], w_hh=[u, b], bias_ih=b, bias_hh=b
    )
    step = Array((1, BATCH, INNER))
    given = {"hx": [], "num_layers": 1, "bidirectional": False}
    assert one == worth("aten::quantized_lstm", step, input=step, params=[[w, u, b, b]], **given)
