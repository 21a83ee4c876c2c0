"""Causes in convolutions and matrix products: predicted from shapes, held against what ran."""

from __future__ import annotations

from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally
from flopwatch.record import Shapes
from tests.unit.explaining.sides import asked, causes, lanes, needs, of, ran

IN, OUT, SIDE, KERNEL = 64, 128, 14, 3
POSITIONS = SIDE * SIDE
RESULTS = OUT * POSITIONS
MAC = RESULTS * IN * KERNEL**2
INSIDE = OUT * IN * (SIDE * KERNEL - 2) ** 2
PADDING = MAC - INSIDE
CONV = "aten::conv2d"


def conv(inputs: int = IN, outputs: int = OUT, side: int = SIDE, kernel: int = KERNEL, padding: int = 0) -> Shapes:
    shapes = ((1, inputs, side, side), (outputs, inputs, kernel, kernel))
    results = outputs * side * side
    return Shapes(CONV, 1, shapes, ((1, outputs, side, side),), mac=results * inputs * kernel**2, padding=padding)


def matrices(rows: int, inner: int, columns: int) -> Shapes:
    return Shapes("aten::linear", 1, ((rows, inner), (columns, inner)), ((rows, columns),), mac=rows * inner * columns)


def test_products_with_padding_are_skipped() -> None:
    found = of(ran(lanes(fma=INSIDE), CONV), asked(needs(fma=MAC), CONV, conv(padding=PADDING)))
    assert causes(found) == {"skipped padding": -2 * PADDING}
    assert found.share == 1


def test_padding_that_was_computed_is_no_cause() -> None:
    found = of(ran(lanes(fma=MAC, add=RESULTS), CONV), asked(needs(fma=MAC), CONV, conv(padding=PADDING)))
    assert causes(found) == {"partial sums": RESULTS}


def test_partial_sums_beside_the_bias() -> None:
    pieces = IN // 16
    ours = ran(lanes(fma=INSIDE, add=pieces * RESULTS), CONV)
    found = of(ours, asked(needs(fma=MAC, add=RESULTS), CONV, conv(padding=PADDING)))
    assert causes(found) == {"skipped padding": -2 * PADDING, "partial sums": (pieces - 1) * RESULTS}
    assert found.rows[1].evidence == (f"additions beside the products: {pieces} for each result, the bias among them",)


def test_sums_that_begin_with_the_bias() -> None:
    found = of(ran(lanes(fma=INSIDE), CONV), asked(needs(fma=INSIDE, add=RESULTS), CONV, conv(padding=0)))
    assert causes(found) == {}  # 196 positions at 3 by 3 without padding: other shapes than the products that ran
    theirs = Shapes(CONV, 1, ((1, IN, 16, 16), (OUT, IN, 3, 3)), ((1, OUT, SIDE, SIDE),), mac=MAC)
    found = of(ran(lanes(fma=MAC), CONV), asked(needs(fma=MAC, add=RESULTS), CONV, theirs))
    assert causes(found) == {"bias as initial value": -RESULTS}


def test_positions_are_rounded_up_to_whole_tiles() -> None:
    side, tile = 7, 4
    shapes = conv(side=side, kernel=1)
    up = 52  # 49 in tiles of 4
    found = of(ran(lanes(fma=IN * OUT * up, add=3 * OUT * up), CONV), asked(needs(fma=shapes.mac), CONV, shapes))
    assert causes(found) == {"padded lanes": 2 * IN * OUT * (up - side**2), "partial sums": 3 * OUT * up}
    assert (
        f"positions to a multiple of {tile}"
        in next(row for row in found.rows if row.cause == "padded lanes").evidence[0]
    )


def test_channels_are_rounded_up_to_whole_vectors() -> None:
    inside, rounded = 24 * 24 * (SIDE * KERNEL - 2) ** 2, 32 * 32 * (SIDE * KERNEL - 2) ** 2
    shapes = conv(inputs=24, outputs=24, padding=24 * 24 * (SIDE * KERNEL) ** 2 - inside)
    found = of(ran(lanes(fma=rounded), CONV), asked(needs(fma=shapes.mac), CONV, shapes))
    assert causes(found) == {"padded lanes": 2 * (rounded - inside), "skipped padding": -2 * shapes.padding}


def test_lanes_that_masks_switch_off_count_in_full_and_explain_themselves() -> None:
    inner, columns = 40, 100
    shapes = matrices(1, inner, columns)
    full = inner * 112
    ours = ran(lanes(fma=full, masked=inner * columns), "aten::linear")
    theirs = asked(needs(fma=shapes.mac), "aten::linear", shapes)
    assert causes(of(ours, theirs)) == {"masked lanes": 2 * inner * 12}
    assert of(ours, theirs, lanes="active").gap == 0


def test_products_as_multiplications_and_additions_cost_the_same() -> None:
    inner, columns = 512, 1000
    shapes = matrices(1, inner, columns)
    ours = ran(lanes(wide=4, mul=(inner + 1) * columns, add=(inner + 5) * columns), "aten::linear")
    found = of(ours, asked(needs(fma=shapes.mac, add=columns), "aten::linear", shapes))
    assert causes(found) == {"scaling by alpha and beta": columns, "partial sums": 4 * columns}


def test_an_outer_product_adds_nothing() -> None:
    shapes = Shapes("aten::mm", 1, ((64, 1), (1, 32)), ((64, 32),), mac=64 * 32)
    found = of(ran(lanes(mul=64 * 32), "aten::mm"), asked(needs(fma=64 * 32), "aten::mm", shapes))
    assert causes(found) == {"first products of sums": -64 * 32}


def test_panels_of_two_products_in_one_place() -> None:
    one, other, panel = matrices(64, 400, 32), matrices(64, 96, 32), 192
    results = 64 * 32
    panels = 3 + 1
    assert (-(-400 // panel), -(-96 // panel)) == (3, 1)
    found = of(
        ran(lanes(fma=one.mac + other.mac, add=panels * results), "aten::linear"),
        asked(needs(fma=one.mac + other.mac), "aten::linear", one, other),
    )
    assert causes(found) == {"partial sums": panels * results}


def test_gradients_of_data_and_weights() -> None:
    side, up = 7, 52
    op, positions = "ConvolutionBackward0", side * side
    out, data, weight = (1, OUT, side, side), (1, IN, side, side), (OUT, IN, 1, 1)
    each = positions * IN * OUT
    shapes = Shapes("aten::convolution_backward", 1, (out, data, weight), (data, weight), mac=2 * each)
    sums = 5 * IN * positions
    ours = ran(lanes(wide=4, fma=each + each * up // positions, add=sums), op, function="backward")
    found = of(ours, asked(needs(fma=2 * each), op, shapes, function="backward"))
    assert causes(found) == {"padded lanes": 2 * (up - positions) * IN * OUT, "partial sums": sums}


def test_gradients_of_single_channels_by_blocks() -> None:
    side, kernel, channels, block = 7, 5, 96, 16
    op, image, weight = "ConvolutionBackward0", (1, channels, side, side), (channels, 1, kernel, kernel)
    each, inside = channels * (side * kernel) ** 2, channels * (side * kernel - 6) ** 2
    shapes = Shapes(
        "aten::convolution_backward",
        1,
        (image, image, weight),
        (image, weight),
        mac=2 * each,
        padding=2 * (each - inside),
    )
    theirs = asked(needs(fma=2 * each), op, shapes, function="backward")
    found = of(ran(lanes(fma=inside + block * inside), op, function="backward"), theirs)
    assert causes(found) == {"padded lanes": 2 * (block - 1) * inside, "skipped padding": -4 * (each - inside)}
    # Or one gradient without padding, and the other one with it, in vectors of eight positions.
    filled = channels * kernel**2 * 56
    found = of(ran(lanes(fma=inside + filled), op, function="backward"), theirs)
    assert causes(found) == {"padded lanes": 2 * (filled - each), "skipped padding": -2 * (each - inside)}


def test_gradients_that_meet_are_summed_by_multiply_adds() -> None:
    shapes = matrices(32, 64, 16)
    met = Shapes("aten::add", 1, ((32, 16), (32, 16)), ((32, 16),))
    ours = ran(lanes(fma=shapes.mac + 32 * 16), "AddmmBackward0", function="backward")
    theirs = asked(needs(fma=shapes.mac, add=32 * 16), "AddmmBackward0", shapes, met, function="backward")
    assert causes(of(ours, theirs)) == {"sums with a factor": 32 * 16}


def test_sharing_out_the_work_in_double_precision() -> None:
    ours = ran(lanes(fma=INSIDE) + lanes(wide=1, dtype=DType.FP64, add=32, mul=24, div=8), CONV)
    found = of(ours, asked(needs(fma=MAC), CONV, conv(padding=PADDING)))
    assert causes(found) == {"skipped padding": -2 * PADDING, "division of work and addresses": 32 + 24 + 8}


def test_edges_of_matrices_fill_short_vectors() -> None:
    rows, inner, columns = 1024, 128, 31
    filled = 24 + 3 * 4  # 31 is three vectors of eight, and a four, a two and a one in vectors of four
    shapes = matrices(rows, inner, columns)
    found = of(
        ran(lanes(fma=rows * inner * filled), "aten::matmul"), asked(needs(fma=shapes.mac), "aten::matmul", shapes)
    )
    assert causes(found) == {"padded lanes": 2 * rows * inner * (filled - columns)}


def test_winograd_makes_fewer_products() -> None:
    fewer = MAC * 16 // 36  # F(2 x 2, 3 x 3): 16 products for 4 results of 9 each
    transforms = 32 * RESULTS
    shapes = Shapes(CONV, 1, ((1, IN, 16, 16), (OUT, IN, KERNEL, KERNEL)), ((1, OUT, SIDE, SIDE),), mac=MAC)
    found = of(ran(lanes(fma=fewer, add=transforms), CONV), asked(needs(fma=MAC), CONV, shapes))
    assert causes(found) == {"another algorithm for the products": 2 * fewer + transforms - 2 * MAC}
    assert "2.25 times fewer products" in found.rows[0].evidence[0]


def test_a_wrong_formula_is_no_other_algorithm() -> None:
    ours = ran(lanes(fma=MAC, add=RESULTS), CONV)
    twice = Shapes(CONV, 1, conv().inputs, conv().outputs, mac=2 * MAC)
    found = of(ours, asked(needs(fma=2 * MAC), CONV, twice))
    assert causes(found) == {}


def test_what_no_shape_predicts_stays_unexplained() -> None:
    more = MAC + 16 * (MAC // 999)
    found = of(ran(lanes(fma=more), CONV), asked(needs(fma=MAC), CONV, conv(padding=PADDING)))
    assert causes(found) == {}
    assert found.unexplained == found.gap == 2 * (more - MAC)
    assert found.share == 0


def test_edges_that_are_scaled_by_other_code() -> None:
    op, inner = "aten::conv2d", IN * KERNEL**2
    packed = inner * (POSITIONS - 4) + inner * OUT  # the last tile of positions is not packed
    scaled = packed + 3
    ours = lanes(wide=1, fma=MAC, mul=scaled)
    found = of(ran(ours, op), asked(needs(fma=MAC), op, conv(padding=PADDING)))
    assert causes(found) == {"scaling by alpha and beta": scaled}
    assert "fewer than three for each result" in found.rows[0].evidence[0]


def test_panels_that_are_scaled_when_they_are_added() -> None:
    op, panels = "aten::conv2d", 9
    ours = lanes(wide=8, fma=MAC, mul=panels * RESULTS, add=(panels - 1) * RESULTS)
    found = of(ran(ours, op), asked(needs(fma=MAC), op, conv(padding=PADDING)))
    assert causes(found) == {"scaling by alpha and beta": panels * RESULTS, "partial sums": (panels - 1) * RESULTS}


def test_recurrent_layers_are_products_and_functions() -> None:
    op, gates = "aten::lstm", 4 * 20 * 4 * 128
    mac = 20 * 4 * 512 * (64 + 128)
    shapes = Shapes(op, 1, ((4, 20, 64), (512, 64), (512, 128)), ((4, 20, 128),), mac=mac)
    values = gates + gates // 4
    theirs = needs(fma=mac, add=2 * gates, mul=gates, div=gates, transcendental=values)
    ours = ran(lanes(fma=mac + 5 * values, add=3 * values, mul=4 * values, div=values), op)
    found = of(ours, asked(theirs, op, shapes))
    assert causes(found) == {"polynomials of functions": 18 * values - 4 * gates - values}
    beyond = ran(lanes(fma=mac + 50 * values), op)
    assert causes(of(beyond, asked(theirs, op, shapes))) == {}


def test_the_derivative_of_attention_computes_the_scores_again() -> None:
    op, heads, length, inner = "ScaledDotProductBackward0", 4, 64, 32
    shape, scores = (1, heads, length, inner), heads * length * length
    each = scores * inner
    shapes = Shapes(
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward", 1, (shape,) * 5, (shape,) * 3, mac=4 * each
    )
    multiplied = 3 * scores
    ours = lanes(wide=8, fma=5 * each) + lanes(fma=8 * scores, mul=multiplied)
    found = of(
        ran(ours, op, function="backward"), asked(needs(fma=4 * each, mul=scores), op, shapes, function="backward")
    )
    assert causes(found) == {
        "computed again": 2 * each,
        "polynomials of functions": 2 * 8 * scores + multiplied - scores,
    }


def test_integer_products_take_quantization() -> None:
    op, rows, inner, columns = "quantized::linear_dynamic", 8, 64, 128
    shapes = matrices(rows, inner, columns)
    theirs = asked(Tally.of(Operation.INT_MAD, DType.INT8, instructions=shapes.mac), op, shapes)
    ours = lanes(minmax=2 * rows * inner, mul=rows * inner + rows * columns)
    assert causes(of(ran(ours, op), theirs)) == {"quantization": 3 * rows * inner + rows * columns}
    assert causes(of(ran(lanes(fma=shapes.mac), op), theirs)) == {}
