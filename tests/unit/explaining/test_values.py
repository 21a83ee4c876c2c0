"""Causes in operators without products: functions, sums, norms, pools, and what is no operator at all."""

from __future__ import annotations

from flopwatch.flops.operations import DType
from flopwatch.record import Shapes
from tests.unit.explaining.sides import asked, causes, lanes, needs, of, ran

CHANNELS, SIDE = 512, 8
VALUES = CHANNELS * SIDE * SIDE
IMAGE = (1, CHANNELS, SIDE, SIDE)


def alike(op: str, shape: tuple[int, ...] = IMAGE, inputs: int = 1, calls: int = 1) -> Shapes:
    return Shapes(op, calls, (shape,) * inputs, (shape,))


def test_a_function_is_a_polynomial() -> None:
    op = "aten::gelu"
    ours = ran(lanes(fma=5 * VALUES, mul=2 * VALUES, add=VALUES), op)
    found = of(ours, asked(needs(add=VALUES, mul=3 * VALUES, transcendental=VALUES), op, alike(op)))
    assert causes(found) == {"polynomials of functions": (2 * 5 + 2 + 1 - 5) * VALUES}
    assert found.rows[0].evidence == ("gelu: 9 FLOP for each function value",)


def test_no_function_costs_thousands() -> None:
    op = "aten::exp"
    found = of(ran(lanes(fma=500 * VALUES), op), asked(needs(transcendental=VALUES), op, alike(op)))
    assert causes(found) == {}
    assert found.share == 0


def test_rows_of_a_softmax_fill_whole_vectors() -> None:
    op, rows, length, up = "aten::softmax", 1024, 49, 64
    values, computed = rows * length, rows * up
    vectors = up // 16
    # Of each vector: an exponential of 8 multiply-adds and 7 others, a maximum, a difference, a sum, a product.
    ours = lanes(fma=8 * computed, mul=5 * computed, minmax=2 * computed, add=4 * computed - 16 * rows)
    ours += lanes(wide=1, div=rows)
    theirs = needs(minmax=values - rows, add=2 * values - rows, transcendental=values, div=values)
    found = of(ran(ours, op), asked(theirs, op, alike(op, (rows, length))))
    each = 2 * 8 + 5 + 2 + 4
    assert causes(found) == {
        "polynomials of functions": (each - 5) * values,
        "padded lanes": each * (computed - values),
        "accumulators in lanes": -16 * rows + rows + 2 * rows,
    }
    assert vectors == 4


def test_attention_is_products_and_a_softmax() -> None:
    op, heads, length, inner = "aten::scaled_dot_product_attention", 4, 50, 64
    scores, rows, up = heads * length * length, heads * length, 64
    shape = (1, heads, length, inner)
    mac = 2 * scores * inner
    shapes = Shapes(op, 1, (shape, shape, shape), (shape,), mac=mac)
    products = heads * length * (52 + 50) * inner  # columns of the scores in tiles of 4
    computed = rows * up
    ours = lanes(wide=8, fma=products) + lanes(
        fma=8 * computed, mul=5 * computed, minmax=2 * computed, add=4 * computed
    )
    scaled = 2 * rows * inner
    theirs = {"minmax": scores - rows, "transcendental": scores, "div": scores, "mul": scaled}
    added = 2 * scores - rows
    found = of(ran(ours, op), asked(needs(fma=mac, add=added, **theirs), op, shapes))
    each = 2 * 8 + 5 + 2 + 2  # the exponential's own two additions; the others are of the softmax
    assert causes(found) == {
        "padded lanes": 2 * (products - mac) + each * (computed - scores),
        "polynomials of functions": each * scores - sum(theirs.values()),
        "partial sums": 4 * computed - 2 * computed - added,
    }
    assert any("columns to a multiple of 4" in shown for row in found.rows for shown in row.evidence)


def test_a_sum_of_tensors_multiplies_by_alpha() -> None:
    op = "aten::add_"
    found = of(ran(lanes(fma=VALUES), op), asked(needs(add=VALUES), op, alike(op, inputs=2)))
    assert causes(found) == {"sums with a factor": VALUES}


def test_values_that_lie_apart_fill_short_vectors_only_in_part() -> None:
    op = "aten::div"
    found = of(ran(lanes(wide=4, div=2 * VALUES), op), asked(needs(div=VALUES), op, alike(op, inputs=2)))
    assert causes(found) == {"padded lanes": VALUES}
    found = of(ran(lanes(div=2 * VALUES), op), asked(needs(div=VALUES), op, alike(op, inputs=2)))
    assert causes(found) == {"another formulation": VALUES}


def test_maxima_by_comparison() -> None:
    op = "aten::max_pool2d"
    theirs = asked(needs(minmax=3 * VALUES), op, Shapes(op, 1, ((1, CHANNELS, 2 * SIDE, 2 * SIDE),), (IMAGE,)))
    assert causes(of((), theirs)) == {"maxima by comparison": -3 * VALUES}
    assert of((), theirs, convention="arithmetic").gap == 0


def test_sums_are_kept_in_lanes() -> None:
    op, window = "aten::adaptive_avg_pool2d", SIDE * SIDE
    more = 130  # 128 accumulators, and two more steps
    ours = lanes(wide=8, add=(window - 1 + more) * CHANNELS, div=CHANNELS)
    shapes = Shapes(op, 1, (IMAGE,), ((1, CHANNELS, 1, 1),))
    found = of(ran(ours, op), asked(needs(add=(window - 1) * CHANNELS, div=CHANNELS), op, shapes))
    assert causes(found) == {"accumulators in lanes": more * CHANNELS}
    beyond = lanes(wide=8, add=(window - 1 + 8 * more) * CHANNELS, div=CHANNELS)
    assert of(ran(beyond, op), asked(needs(add=(window - 1) * CHANNELS, div=CHANNELS), op, shapes)).share == 0


def test_windows_are_summed_up_from_zero() -> None:
    op, results = "aten::avg_pool2d", VALUES // 4
    shapes = Shapes(op, 1, (IMAGE,), ((1, CHANNELS, SIDE // 2, SIDE // 2),))
    ours = ran(lanes(wide=1, add=5 * results, div=results), op)
    found = of(ours, asked(needs(add=3 * results, div=results), op, shapes))
    assert causes(found) == {"accumulators in lanes": 2 * results}


def test_a_norm_in_other_steps() -> None:
    op, rows, length = "aten::layer_norm", 64, 768
    values, merging = rows * length, 8 * 40 * rows
    ours = lanes(wide=8, add=3 * values + merging, fma=3 * values, mul=values) + lanes(wide=1, div=3 * rows, sqrt=rows)
    theirs = needs(add=3 * values - rows, div=3 * rows, mul=2 * values, fma=values, sqrt=rows)
    found = of(ran(ours, op), asked(theirs, op, alike(op, (rows, length))))
    assert causes(found) == {"another formulation": 3 * values, "accumulators in lanes": merging + rows}


def test_channels_of_a_batch_norm_are_rounded_up() -> None:
    op, side, up = "aten::batch_norm", 7, 56
    values = CHANNELS * side * side
    each = {"add": CHANNELS, "div": CHANNELS, "mul": CHANNELS, "sqrt": CHANNELS}
    ours = lanes(wide=8, fma=CHANNELS * up) + lanes(wide=1, fma=CHANNELS, **each)
    found = of(ran(ours, op), asked(needs(fma=values + CHANNELS, **each), op, alike(op, (1, CHANNELS, side, side))))
    assert causes(found) == {"padded lanes": 2 * CHANNELS * (up - side * side)}
    assert found.rows[0].evidence[0].startswith("rows of 49 values")


def test_sums_in_double_precision_are_the_sums() -> None:
    op = "aten::batch_norm"
    single = {"add": VALUES, "mul": VALUES, "fma": VALUES, "div": 4 * CHANNELS}
    ours = lanes(wide=8, **single) + lanes(wide=1, dtype=DType.FP64, add=2 * VALUES, sqrt=CHANNELS)
    theirs = needs(add=3 * VALUES, mul=VALUES, fma=VALUES, div=4 * CHANNELS, sqrt=CHANNELS)
    assert of(ran(ours, op), asked(theirs, op, alike(op))).gap == 0
    ours += lanes(wide=1, dtype=DType.FP64, add=CHANNELS)
    found = of(ran(ours, op), asked(theirs, op, alike(op)))
    assert causes(found) == {"accumulators in lanes": CHANNELS}


def test_positions_of_a_resized_image() -> None:
    op, rows = "aten::upsample_nearest2d", CHANNELS * SIDE
    ours = lanes(wide=1, mul=rows) + lanes(wide=1, dtype=DType.FP64, div=rows)
    theirs = asked(needs(add=2 * SIDE, mul=2 * SIDE), op, alike("aten::mul", (SIDE,)), written=4 * VALUES)
    assert causes(of(ran(ours, op), theirs)) == {"division of work and addresses": 2 * rows - 4 * SIDE}


def test_one_kernel_for_several_operators() -> None:
    op = "aten::upsample_bilinear2d"
    parts = (alike("aten::sub", inputs=2), alike("aten::mul", inputs=2), alike("aten::add", inputs=2))
    ours = ran(lanes(wide=1, fma=3 * VALUES, mul=VALUES, add=SIDE), op)
    found = of(ours, asked(needs(add=6 * VALUES, mul=3 * VALUES), op, *parts))
    assert causes(found) == {"another formulation": 2 * 3 * VALUES + VALUES + SIDE - 9 * VALUES}


def test_between_operators() -> None:
    found = of(ran(lanes(wide=1, dtype=DType.FP64, add=15, fma=20), ""))
    assert causes(found) == {"between operators": 15 + 2 * 20}


def test_free_operators_that_compute() -> None:
    op = "aten::bernoulli_"
    found = of(ran(lanes(mul=VALUES), op), asked(needs(), op))
    assert causes(found) == {"arithmetic of free operators": VALUES}


def test_operators_without_a_formula() -> None:
    op = "mine::twist"
    found = of(ran(lanes(mul=VALUES), op), asked(needs(), op, alike(op)), unknown=[op])
    assert causes(found) == {"operator without formula": VALUES}
    assert found.rows[0].evidence == ("mine::twist has no formula",)


def test_work_without_any_counterpart_stays_unexplained() -> None:
    found = of(ran(lanes(mul=VALUES), "mine::twist"))
    assert causes(found) == {}
    assert (found.unexplained, found.missing, found.share) == (VALUES, VALUES, 0)


def test_branches_that_values_do_not_take() -> None:
    op = "aten::elu"
    ours = ran(lanes(mul=VALUES), op)
    found = of(ours, asked(needs(mul=VALUES, transcendental=VALUES), op, alike(op)))
    assert causes(found) == {"branches not taken": -VALUES}


def test_other_functions_have_no_branches() -> None:
    op = "aten::gelu"
    ours = ran(lanes(mul=VALUES), op)
    assert causes(of(ours, asked(needs(add=VALUES, mul=3 * VALUES, transcendental=VALUES), op, alike(op)))) == {}


def test_boxes_that_are_suppressed_are_compared_with_no_other() -> None:
    op, boxes = "torchvision::nms", 300
    shapes = Shapes(op, 1, ((boxes, 4), (boxes,)), ((68,),))
    found = of(ran(lanes(wide=1, add=boxes), op), asked(needs(add=boxes**2, minmax=4 * boxes), op, shapes))
    assert causes(found) == {"maxima by comparison": -4 * boxes, "branches not taken": boxes - boxes**2}


def test_weights_of_a_resized_image_for_each_value() -> None:
    op = "UpsampleBilinear2DBackward0"
    shapes = Shapes("aten::upsample_bilinear2d_backward", 1, (IMAGE,), ((1, CHANNELS, SIDE // 2, SIDE // 2),))
    ours = ran(lanes(wide=1, fma=5 * VALUES, add=3 * VALUES, mul=4 * VALUES), op)
    found = of(ours, asked(needs(fma=4 * VALUES, mul=2 * VALUES), op, shapes))
    assert causes(found) == {"division of work and addresses": 2 * VALUES + 3 * VALUES + 2 * VALUES}


def test_loops_of_the_textbook() -> None:
    op = "aten::fft_rfft"
    shapes = Shapes(op, 1, ((8, 100),), ((8, 51),))
    found = of(ran(lanes(wide=4, add=4000, mul=2400), op), asked(needs(add=2000, fma=1000, mul=500), op, shapes))
    assert causes(found) == {"another formulation": 4000 + 2400 - 2000 - 2 * 1000 - 500}
    assert of(ran(lanes(wide=4, add=40000), op), asked(needs(add=2000, fma=1000), op, shapes)).share == 0


def test_ends_of_rows_in_the_derivative_of_a_softmax() -> None:
    op, rows, length, up = "SoftmaxBackward0", 128, 33, 48
    values = rows * length
    shapes = Shapes("aten::_softmax_backward_data", 1, ((rows, length),) * 2, ((rows, length),))
    ours = lanes(mul=2 * rows * up, add=2 * rows * up + 16 * rows)
    found = of(ran(ours, op), asked(needs(mul=2 * values, add=2 * values - rows), op, shapes))
    assert causes(found) == {
        "padded lanes": 2 * rows * (up - length),
        "accumulators in lanes": 2 * rows * (up - length) + 17 * rows,
    }


def test_few_maxima_by_instructions() -> None:
    op = "aten::max_pool1d"
    theirs = asked(needs(minmax=3 * VALUES), op, Shapes(op, 1, ((1, CHANNELS, 2 * SIDE * SIDE),), (IMAGE,)))
    assert causes(of(ran(lanes(minmax=VALUES // 2), op), theirs)) == {"maxima by comparison": VALUES // 2 - 3 * VALUES}


def test_magnitudes_of_complex_numbers() -> None:
    op = "aten::abs"
    ours = ran(lanes(add=50 * VALUES, mul=40 * VALUES, fma=10 * VALUES, div=VALUES, sqrt=VALUES), op)
    found = of(ours, asked(needs(mul=VALUES, fma=VALUES, sqrt=VALUES), op, alike(op)))
    assert causes(found) == {"polynomials of functions": (50 + 40 + 20 + 1 + 1 - 1 - 2 - 1) * VALUES}
