"""Each layer type of Caffe: the shape that comes out, the weights, and what is computed, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch.errors import UsageError
from flopwatch.events import Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import Work, estimate
from flopwatch.flops.operations import Operation
from flopwatch.formats.caffe import trace

ADD, MUL, DIV, FMA = Operation.ADD, Operation.MUL, Operation.DIV, Operation.FMA
SQRT, MINMAX, FUNCTION = Operation.SQRT, Operation.MINMAX, Operation.TRANSCENDENTAL

N, C, H, W = 2, 6, 7, 9
SIZE = N * C * H * W
PLANE = H * W
Shape = tuple[int, ...]


def layer(folder: Path, text: str, *bottoms: Shape, tops: int = 1) -> tuple[Op, int]:
    """The operator that a layer becomes, fed with blobs of these shapes, and its parameters."""
    names = [f"in{number}" for number in range(len(bottoms))]
    dims = "".join(
        f'input: "{name}" input_shape {{ dim: {list(shape)} }}\n' for name, shape in zip(names, bottoms, strict=True)
    )
    fed = " ".join(f'bottom: "{name}"' for name in names)
    made = " ".join(f'top: "out{number}"' for number in range(tops))
    path = folder / "net.prototxt"
    path.write_text(f'{dims}layer {{ name: "it" {fed} {made}\n{text} }}')
    ops: list[Op] = []
    traced = trace(path, ops.append, keep_batch=True)
    return ops[0], traced.parts[0].params


def shapes(op: Op) -> list[Shape]:
    return [output.shape for output in op.outputs if output is not None]


def operations(op: Op) -> Mapping[Operation, int]:
    found = estimate(op)
    assert isinstance(found, Work)
    return {key.operation: count.instructions for key, count in found.tally.items()}


def mac(op: Op) -> int:
    found = estimate(op)
    assert isinstance(found, Work)
    return found.mac


def conv(**settings: object) -> str:
    written = " ".join(f"{name}: {value}" for name, value in settings.items())
    return f'type: "Convolution" convolution_param {{ {written} }}'


OUT = 4


@pytest.mark.parametrize(
    ("text", "after", "taps", "groups"),
    [
        (conv(num_output=OUT, kernel_size=3), (H - 2, W - 2), 9, 1),
        (conv(num_output=OUT, kernel_size=3, pad=1), (H, W), 9, 1),
        (conv(num_output=OUT, kernel_size=3, pad=1, stride=2), (4, 5), 9, 1),
        (conv(num_output=OUT, kernel_size=3, stride=4), (2, 2), 9, 1),
        (conv(num_output=OUT, kernel_size=3, pad=1, group=2), (H, W), 9, 2),
        (conv(num_output=OUT, kernel_size=3, dilation=2), (H - 4, W - 4), 9, 1),
        (conv(num_output=OUT, kernel_h=1, kernel_w=5), (H, W - 4), 5, 1),
        (conv(num_output=OUT, kernel_h=3, kernel_w=1, pad_h=1, pad_w=0, stride_h=2, stride_w=1), (4, W), 3, 1),
        (conv(num_output=OUT, kernel_h=3, kernel_w=3, pad_h=1), (H, W - 2), 9, 1),
        (conv(num_output=OUT, kernel_size="[3, 5]", pad="[1, 2]"), (H, W), 15, 1),
        (conv(num_output=OUT, kernel_size="3 kernel_size: 5"), (H - 2, W - 4), 15, 1),
    ],
)
def test_convolution(tmp_path: Path, text: str, after: Shape, taps: int, groups: int) -> None:
    op, params = layer(tmp_path, text, (N, C, H, W))
    outputs = N * OUT * after[0] * after[1]
    assert shapes(op) == [(N, OUT, *after)]
    assert params == OUT * C // groups * taps + OUT
    assert mac(op) == outputs * C // groups * taps
    assert operations(op) == {FMA: mac(op), ADD: outputs}


def test_convolution_without_a_bias(tmp_path: Path) -> None:
    op, params = layer(tmp_path, conv(num_output=OUT, kernel_size=1, bias_term="false"), (N, C, H, W))
    assert params == OUT * C
    assert operations(op) == {FMA: N * OUT * PLANE * C}


def test_convolution_counts_padding_and_tells_how_much(tmp_path: Path) -> None:
    op, _ = layer(tmp_path, conv(num_output=OUT, kernel_size=3, pad=1), (N, C, H, W))
    found = estimate(op)
    assert isinstance(found, Work)
    real = (3 * H - 2) * (3 * W - 2)
    assert found.avoidable == {"padding": N * OUT * C * (9 * PLANE - real)}


@pytest.mark.parametrize("dims", [1, 3])
def test_convolution_of_other_dimensions(tmp_path: Path, dims: int) -> None:
    op, params = layer(tmp_path, conv(num_output=OUT, kernel_size=3, pad=1), (N, C, *(8,) * dims))
    assert shapes(op) == [(N, OUT, *(8,) * dims)]
    assert params == OUT * C * 3**dims + OUT
    assert mac(op) == N * OUT * 8**dims * C * 3**dims


def test_convolution_along_a_later_axis(tmp_path: Path) -> None:
    op, _ = layer(tmp_path, conv(num_output=OUT, kernel_size=3, axis=2), (N, 3, C, H, W))
    assert shapes(op) == [(N, 3, OUT, H - 2, W - 2)]
    assert mac(op) == N * 3 * OUT * (H - 2) * (W - 2) * C * 9


def test_convolution_of_two_blobs_with_one_kernel(tmp_path: Path) -> None:
    op, params = layer(tmp_path, conv(num_output=OUT, kernel_size=1), (N, C, H, W), (N, C, H, W), tops=2)
    assert params == OUT * C + OUT
    assert mac(op) == 2 * N * OUT * PLANE * C


@pytest.mark.parametrize("name", ["ConvolutionDepthwise", "DepthwiseConvolution"])
def test_depthwise_convolution(tmp_path: Path, name: str) -> None:
    text = f'type: "{name}" convolution_param {{ num_output: {C} kernel_size: 3 pad: 1 bias_term: false }}'
    op, params = layer(tmp_path, text, (N, C, H, W))
    assert params == C * 9
    assert operations(op) == {FMA: SIZE * 9}


def test_deconvolution_multiplies_at_each_input_position(tmp_path: Path) -> None:
    text = f'type: "Deconvolution" convolution_param {{ num_output: {OUT} kernel_size: 4 stride: 2 pad: 1 }}'
    op, params = layer(tmp_path, text, (N, C, H, W))
    assert shapes(op) == [(N, OUT, 2 * H, 2 * W)]
    assert params == C * OUT * 16 + OUT
    assert operations(op) == {FMA: SIZE * OUT * 16, ADD: N * OUT * 4 * PLANE}


def test_deconvolution_in_groups(tmp_path: Path) -> None:
    text = f'type: "Deconvolution" convolution_param {{ num_output: {C} group: {C} kernel_size: 2 stride: 2 bias_term: false }}'
    op, params = layer(tmp_path, text, (N, C, H, W))
    assert params == C * 4
    assert operations(op) == {FMA: SIZE * 4}


@pytest.mark.parametrize(
    ("settings", "before", "after", "windows"),
    [
        # Windows of 3 at a stride of 2: rounded up, the last one is cut off.
        ("kernel_size: 3 stride: 2", (8, 8), (4, 4), (3 + 3 + 3 + 2) ** 2),
        ("kernel_size: 3 stride: 2", (7, 7), (3, 3), 9**2),
        ("kernel_size: 3 stride: 2 pad: 1", (8, 8), (5, 5), (2 + 3 + 3 + 3 + 1) ** 2),
        # A sixth window would begin behind image and padding before it.
        ("kernel_size: 2 stride: 2 pad: 1", (9, 9), (5, 5), (1 + 2 + 2 + 2 + 2) ** 2),
        ("kernel_size: 2 stride: 3", (7, 7), (3, 3), (2 + 2 + 1) ** 2),
        ("kernel_h: 2 kernel_w: 3 stride_h: 2 stride_w: 3", (4, 6), (2, 2), 4 * 6),
        ("global_pooling: true", (5, 3), (1, 1), 15),
        ("kernel_size: 3 stride: 2 ceil_mode: false", (8, 8), (3, 3), 9**2),
        ("kernel_size: 3 stride: 2 round_mode: FLOOR", (8, 8), (3, 3), 9**2),
    ],
)
def test_pooling(tmp_path: Path, settings: str, before: Shape, after: Shape, windows: int) -> None:
    made = N * C * after[0] * after[1]
    op, params = layer(tmp_path, f'type: "Pooling" pooling_param {{ {settings} }}', (N, C, *before))
    assert shapes(op) == [(N, C, *after)]
    assert params == 0
    assert operations(op) == {MINMAX: N * C * windows - made}
    op, _ = layer(tmp_path, f'type: "Pooling" pooling_param {{ pool: AVE {settings} }}', (N, C, *before))
    # One window for a whole plane is a mean; several of them are summed from zero each.
    assert operations(op) == {ADD: N * C * windows - (made if after == (1, 1) else 0), DIV: made}


SIDES = st.integers(1, 9)


@given(st.tuples(SIDES, SIDES), st.tuples(SIDES, SIDES), SIDES, st.integers(0, 4), st.booleans())
def test_pooling_is_what_caffes_loops_do(
    tmp_path_factory: pytest.TempPathFactory, before: Shape, kernel: Shape, stride: int, pad: int, average: bool
) -> None:
    def windows(length: int, side: int) -> list[int]:
        """Numbers in each window along one axis: as many as begin inside of image and padding before it, cut to the image."""
        found: list[int] = []
        while True:
            start = len(found) * stride - pad
            # Rounded up: the window before this one did not reach the end.
            if found and start - stride + side >= length + pad:
                return found
            if found and pad and start >= length:
                return found
            found.append(max(0, min(start + side, length) - max(start, 0)))

    settings = f"kernel_h: {kernel[0]} kernel_w: {kernel[1]} stride: {stride} pad: {pad}"
    text = f'type: "Pooling" pooling_param {{ pool: {"AVE" if average else "MAX"} {settings} }}'
    folder = tmp_path_factory.mktemp("pooling", numbered=True)
    # A window may be too long for its image by less than a stride: it is cut off.
    fits = all(side < length + 2 * pad + stride for side, length in zip(kernel, before, strict=True)) and pad < min(
        kernel
    )
    if not fits:
        with pytest.raises(UsageError, match="Pooling"):
            layer(folder, text, (N, C, *before))
        return
    op, _ = layer(folder, text, (N, C, *before))
    rows, columns = (windows(length, side) for length, side in zip(before, kernel, strict=True))
    made = N * C * len(rows) * len(columns)
    taken = N * C * sum(rows) * sum(columns)
    assert shapes(op) == [(N, C, len(rows), len(columns))]
    if not average:
        assert operations(op) == ({MINMAX: taken - made} if taken > made else {})
    elif len(rows) == len(columns) == 1:
        assert operations(op) == ({ADD: taken - made, DIV: made} if taken > made else {DIV: made})
    else:
        assert operations(op) == {ADD: taken, DIV: made}


def test_pooling_may_tell_where_the_maxima_were(tmp_path: Path) -> None:
    op, _ = layer(tmp_path, 'type: "Pooling" pooling_param { kernel_size: 2 stride: 2 }', (N, C, 8, 8), tops=2)
    assert shapes(op) == [(N, C, 4, 4), (N, C, 4, 4)]


def test_spatial_pyramid(tmp_path: Path) -> None:
    op, _ = layer(tmp_path, 'type: "SPP" spp_param { pyramid_height: 3 }', (N, C, 8, 8))
    assert shapes(op) == [(N, C * (1 + 4 + 16))]
    # Each level takes every number once.
    assert operations(op) == {MINMAX: N * C * (64 - 1 + 64 - 4 + 64 - 16)}


@pytest.mark.parametrize(
    ("settings", "before", "after", "inputs"),
    [
        ("", (N, C, H, W), (N, OUT), C * PLANE),
        ("axis: 2", (N, C, H, W), (N, C, OUT), PLANE),
        ("axis: -1", (N, C, H, W), (N, C, H, OUT), W),
        ("transpose: true", (N, C), (N, OUT), C),
        ("axis: 0", (C,), (OUT,), C),
    ],
)
def test_inner_product(tmp_path: Path, settings: str, before: Shape, after: Shape, inputs: int) -> None:
    text = f'type: "InnerProduct" inner_product_param {{ num_output: {OUT} {settings} }}'
    op, params = layer(tmp_path, text, before)
    positions = 1
    for length in after[:-1]:
        positions *= length
    assert shapes(op) == [after]
    assert params == inputs * OUT + OUT
    assert operations(op) == {FMA: positions * inputs * OUT, ADD: positions * OUT}


T, HIDDEN = 5, 3


def test_lstm(tmp_path: Path) -> None:
    text = f'type: "LSTM" recurrent_param {{ num_output: {HIDDEN} }}'
    op, params = layer(tmp_path, text, (T, N, C), (T, N))
    cells = T * N * HIDDEN
    assert shapes(op) == [(T, N, HIDDEN)]
    assert params == 4 * HIDDEN * (C + HIDDEN + 1)
    assert mac(op) == T * N * 4 * HIDDEN * (C + HIDDEN)
    # Beside the products: bias and sum of four gates, three sigmoids, two tanh, f c + i g, o tanh(c).
    assert operations(op) == {
        FMA: mac(op),
        ADD: (4 + 4 + 3 + 1) * cells,
        DIV: 3 * cells,
        MUL: 3 * cells,
        FUNCTION: (3 + 2) * cells,
    }


def test_lstm_with_an_input_that_stays_and_states_outside(tmp_path: Path) -> None:
    text = f'type: "LSTM" recurrent_param {{ num_output: {HIDDEN} expose_hidden: true }}'
    states = ((1, N, HIDDEN), (1, N, HIDDEN))
    op, params = layer(tmp_path, text, (T, N, C), (T, N), (N, H), *states, tops=3)
    assert shapes(op) == [(T, N, HIDDEN), *states]
    assert params == 4 * HIDDEN * (C + H + HIDDEN + 1)
    assert mac(op) == T * N * 4 * HIDDEN * (C + HIDDEN) + N * 4 * HIDDEN * H


def test_rnn(tmp_path: Path) -> None:
    op, params = layer(tmp_path, f'type: "RNN" recurrent_param {{ num_output: {HIDDEN} }}', (T, N, C), (T, N))
    cells = T * N * HIDDEN
    assert params == HIDDEN * (C + HIDDEN + 1) + HIDDEN * (HIDDEN + 1)
    assert mac(op) == cells * (C + HIDDEN + HIDDEN)
    assert operations(op) == {FMA: mac(op), ADD: 3 * cells, FUNCTION: 2 * cells}


def test_embedding_is_a_look_up(tmp_path: Path) -> None:
    settings = "num_output: 16 input_dim: 100"
    op, params = layer(tmp_path, f'type: "Embed" embed_param {{ {settings} bias_term: false }}', (N, T))
    assert shapes(op) == [(N, T, 16)]
    assert params == 100 * 16
    assert isinstance(estimate(op), Free)
    op, params = layer(tmp_path, f'type: "Embed" embed_param {{ {settings} }}', (N, T))
    assert params == 100 * 16 + 16
    assert operations(op) == {ADD: N * T * 16}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('type: "ReLU"', {MINMAX: SIZE}),
        ('type: "ReLU" relu_param { negative_slope: 0.1 }', {MUL: SIZE}),
        ('type: "ReLU6"', {MINMAX: 2 * SIZE}),
        ('type: "ELU"', {FUNCTION: SIZE, MUL: SIZE}),
        ('type: "Sigmoid"', {FUNCTION: SIZE, ADD: SIZE, DIV: SIZE}),
        ('type: "TanH"', {FUNCTION: SIZE}),
        ('type: "BNLL"', {FUNCTION: 2 * SIZE}),
        ('type: "Power"', {}),
        ('type: "Power" power_param { power: 2 }', {MUL: SIZE}),
        ('type: "Power" power_param { power: 0.5 }', {SQRT: SIZE}),
        ('type: "Power" power_param { power: 0.75 }', {FUNCTION: SIZE}),
        ('type: "Power" power_param { power: -1 scale: 2 shift: 1 }', {FMA: SIZE, DIV: SIZE}),
        ('type: "Power" power_param { scale: 0.5 }', {MUL: SIZE}),
        ('type: "Power" power_param { shift: -1 }', {ADD: SIZE}),
        ('type: "Power" power_param { power: 0 scale: 2 }', {}),
        ('type: "Exp"', {FUNCTION: SIZE}),
        ('type: "Exp" exp_param { base: 2 scale: 3 }', {FUNCTION: SIZE, MUL: SIZE}),
        ('type: "Log"', {FUNCTION: SIZE}),
        ('type: "Log" log_param { base: 10 shift: 1 }', {FUNCTION: SIZE, ADD: SIZE, MUL: SIZE}),
        ('type: "Bias"', {ADD: SIZE}),
        ('type: "Scale"', {MUL: SIZE}),
        ('type: "Scale" scale_param { bias_term: true }', {FMA: SIZE}),
        # x - m over √v, folded: per channel a factor and an addend, 1/√(v + eps), and both kept sums divided.
        ('type: "BatchNorm"', {FMA: SIZE, MUL: C + 2 * C, ADD: C, SQRT: C, DIV: C + 1}),
        # Along the channels: the largest, differences, exponentials, their sum, quotients.
        (
            'type: "Softmax"',
            {MINMAX: SIZE - SIZE // C, ADD: SIZE + SIZE - SIZE // C, FUNCTION: SIZE, DIV: SIZE},
        ),
        ('type: "Softmax" softmax_param { axis: -1 }', {MINMAX: SIZE - SIZE // W, ADD: 2 * SIZE - SIZE // W, FUNCTION: SIZE, DIV: SIZE}),
        # Five channels, but three at the first and last and four beside them.
        ('type: "LRN"', {MUL: SIZE, ADD: N * PLANE * (3 + 4 + 5 + 5 + 4 + 3) - SIZE, FMA: SIZE, FUNCTION: SIZE, DIV: SIZE}),
        (
            'type: "LRN" lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL }',
            {MUL: SIZE, ADD: N * C * (3 * H - 2) * (3 * W - 2), FMA: SIZE, FUNCTION: SIZE, DIV: 2 * SIZE},
        ),
        # Mean, differences, squares, their mean, 1/√, products.
        (
            'type: "MVN"',
            {ADD: 2 * (SIZE - N * C) + SIZE + N * C, MUL: 2 * SIZE, DIV: 3 * N * C, SQRT: N * C},
        ),
        ('type: "MVN" mvn_param { normalize_variance: false across_channels: true }', {ADD: SIZE - N + SIZE, DIV: N}),
        (
            'type: "Normalize" norm_param { across_spatial: false channel_shared: false }',
            {ADD: SIZE, MUL: 2 * SIZE, SQRT: N * PLANE, DIV: SIZE},
        ),
    ],
)  # fmt: skip
def test_layers_that_keep_the_shape(tmp_path: Path, text: str, expected: Mapping[Operation, int]) -> None:
    op, _ = layer(tmp_path, text, (N, C, H, W))
    assert shapes(op) == [(N, C, H, W)]
    assert operations(op) == expected
    assert mac(op) == 0


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ('type: "PReLU"', C),
        ('type: "PReLU" prelu_param { channel_shared: true }', 1),
        ('type: "Scale"', C),
        ('type: "Scale" scale_param { bias_term: true }', 2 * C),
        ('type: "Scale" scale_param { axis: 2 num_axes: -1 }', PLANE),
        ('type: "Scale" scale_param { axis: 0 num_axes: 2 }', N * C),
        ('type: "Bias"', C),
        ('type: "BatchNorm"', 0),
        ('type: "Normalize"', 1),
        ('type: "Normalize" norm_param { channel_shared: false }', C),
        ('type: "AffineChannel"', 2 * C),
    ],
)
def test_learned_parameters(tmp_path: Path, text: str, params: int) -> None:
    assert layer(tmp_path, text, (N, C, H, W))[1] == params


@pytest.mark.parametrize("name", ["AbsVal", "Threshold", "Dropout", "Split", "ShuffleChannel"])
def test_layers_that_compute_nothing(tmp_path: Path, name: str) -> None:
    op, params = layer(tmp_path, f'type: "{name}"', (N, C, H, W))
    assert shapes(op) == [(N, C, H, W)]
    assert params == 0
    assert isinstance(estimate(op), Free)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {ADD: 2 * SIZE}),
        ("operation: SUM coeff: 1 coeff: -1 coeff: 1", {ADD: 2 * SIZE}),
        ("operation: SUM coeff: 0.5 coeff: 0.5 coeff: 1", {FMA: 2 * SIZE}),
        ("operation: SUM coeff: 0.5 coeff: 0.5 coeff: 2", {FMA: 2 * SIZE, MUL: SIZE}),
        ("operation: PROD", {MUL: 2 * SIZE}),
        ("operation: MAX", {MINMAX: 2 * SIZE}),
    ],
)
def test_eltwise_of_three(tmp_path: Path, text: str, expected: Mapping[Operation, int]) -> None:
    op, _ = layer(tmp_path, f'type: "Eltwise" eltwise_param {{ {text} }}', *((N, C, H, W),) * 3)
    assert shapes(op) == [(N, C, H, W)]
    assert operations(op) == expected


FORMED = [
    ('type: "Concat"', ((N, 2, H, W), (N, 3, H, W)), ((N, 5, H, W),)),
    ('type: "Concat" concat_param { axis: 0 }', ((1, C), (2, C)), ((3, C),)),
    ('type: "Concat" concat_param { concat_dim: 2 }', ((N, C, 1, W), (N, C, 2, W)), ((N, C, 3, W),)),
    ('type: "Concat" concat_param { axis: -1 }', ((N, C), (N, 1)), ((N, C + 1),)),
    ('type: "Slice"', ((N, 6, H, W),), ((N, 3, H, W), (N, 3, H, W))),
    ('type: "Slice" slice_param { slice_point: 1 slice_point: 3 }', ((N, 6, H),), ((N, 1, H), (N, 2, H), (N, 3, H))),
    ('type: "Slice" slice_param { axis: 2 slice_point: [4] }', ((N, C, H),), ((N, C, 4), (N, C, 3))),
    ('type: "Split"', ((N, C),), ((N, C), (N, C), (N, C))),
    ('type: "Flatten"', ((N, C, H, W),), ((N, C * PLANE),)),
    ('type: "Flatten" flatten_param { axis: 0 end_axis: 1 }', ((N, C, H, W),), ((N * C, H, W),)),
    ('type: "Flatten" flatten_param { axis: -2 }', ((N, C, H, W),), ((N, C, PLANE),)),
    ('type: "Reshape" reshape_param { shape { dim: 0 dim: -1 } }', ((N, C, H, W),), ((N, C * PLANE),)),
    ('type: "Reshape" reshape_param { shape { dim: [0, 3, 2, -1] } }', ((N, 6, H, W),), ((N, 3, 2, PLANE),)),
    ('type: "Reshape" reshape_param { shape { dim: -1 dim: 3 } axis: 1 num_axes: 1 }', ((N, 6, H),), ((N, 2, 3, H),)),
    ('type: "Reshape" reshape_param { shape { dim: 1 } axis: -1 num_axes: 0 }', ((N, C),), ((N, C, 1),)),
    ('type: "Reshape" reshape_param { shape { } axis: 1 num_axes: 0 }', ((N, C),), ((N, C),)),
    ('type: "Crop"', ((N, C, H, W), (N, 1, 3, 4)), ((N, C, 3, 4),)),
    ('type: "Crop" crop_param { axis: 1 offset: 1 }', ((N, C, H, W), (9, 2, 3, 4)), ((N, 2, 3, 4),)),
    ('type: "Tile" tile_param { axis: 1 tiles: 4 }', ((N, C, H),), ((N, 4 * C, H),)),
    ('type: "Permute" permute_param { order: 0 order: 2 order: 3 order: 1 }', ((N, C, H, W),), ((N, H, W, C),)),
    ('type: "Permute" permute_param { order: 1 }', ((N, C, H),), ((C, N, H),)),
    ('type: "Im2col" convolution_param { kernel_size: 3 pad: 1 stride: 2 }', ((N, C, 8, 8),), ((N, 9 * C, 4, 4),)),
    ('type: "BatchReindex"', ((N, C, H), (5,)), ((5, C, H),)),
    ('type: "Upsample" upsample_param { scale: 2 }', ((N, C, H, W), (N, C, H, W)), ((N, C, 2 * H, 2 * W),)),
    (
        'type: "PriorBox" prior_box_param { min_size: 60 max_size: 111 aspect_ratio: 2 aspect_ratio: 3 }',
        ((1, C, H, W), (1, 3, 300, 300)),
        # One square for each size, and both ways up for each ratio.
        ((1, 2, PLANE * (2 + 2 * 2) * 4),),
    ),
]


@pytest.mark.parametrize(("text", "before", "after"), FORMED)
def test_layers_that_only_move(tmp_path: Path, text: str, before: tuple[Shape, ...], after: tuple[Shape, ...]) -> None:
    op, params = layer(tmp_path, text, *before, tops=len(after))
    assert shapes(op) == list(after)
    assert params == 0
    assert isinstance(estimate(op), Free)


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("", (), {ADD: SIZE - 1}),
        ("operation: MEAN axis: 2", (N, C), {ADD: SIZE - N * C, DIV: N * C}),
        ("operation: SUMSQ axis: 1 coeff: 0.5", (N,), {MUL: SIZE + N, ADD: SIZE - N}),
        ("operation: ASUM axis: -1", (N, C, H), {ADD: SIZE - N * C * H}),
    ],
)
def test_reduction(tmp_path: Path, text: str, after: Shape, expected: Mapping[Operation, int]) -> None:
    op, _ = layer(tmp_path, f'type: "Reduction" reduction_param {{ {text} }}', (N, C, H, W))
    assert shapes(op) == [after]
    assert operations(op) == expected


@pytest.mark.parametrize(
    ("text", "after", "largest"),
    [
        ("", (N, 1, 1, 1), SIZE - N),
        ("out_max_val: true", (N, 2, 1, 1), SIZE - N),
        ("axis: 1", (N, 1, H, W), SIZE - N * PLANE),
    ],
)
def test_argmax(tmp_path: Path, text: str, after: Shape, largest: int) -> None:
    op, _ = layer(tmp_path, f'type: "ArgMax" argmax_param {{ {text} }}', (N, C, H, W))
    assert shapes(op) == [after]
    assert operations(op) == {MINMAX: largest}


def test_losses(tmp_path: Path) -> None:
    softmax = {MINMAX: N * C - N, ADD: 2 * N * C - N, FUNCTION: N * C, DIV: N * C}
    op, _ = layer(tmp_path, 'type: "SoftmaxWithLoss"', (N, C), (N,))
    assert shapes(op) == [()]
    mean = {ADD: N - 1, DIV: 1}
    assert operations(op) == {
        MINMAX: softmax[MINMAX],
        ADD: softmax[ADD] + mean[ADD],
        FUNCTION: softmax[FUNCTION] + N,
        DIV: softmax[DIV] + mean[DIV],
    }
    op, _ = layer(tmp_path, 'type: "EuclideanLoss"', (N, C), (N, C))
    assert operations(op) == {ADD: N * C + N * C - 1, MUL: N * C, DIV: 1}
    op, _ = layer(tmp_path, 'type: "MultinomialLogisticLoss"', (N, C), (N,))
    assert operations(op) == {MINMAX: N, FUNCTION: N, ADD: N - 1, DIV: 1}
    op, _ = layer(tmp_path, 'type: "Accuracy"', (N, C), (N,))
    assert isinstance(estimate(op), Free)


def test_scaling_by_another_blob(tmp_path: Path) -> None:
    op, params = layer(tmp_path, 'type: "Scale" scale_param { axis: 0 }', (N, C, H, W), (N, C))
    assert params == 0
    assert operations(op) == {MUL: SIZE}
    op, _ = layer(tmp_path, 'type: "Axpy"', (N, C, 1, 1), (N, C, H, W), (N, C, H, W))
    assert operations(op) == {FMA: SIZE}


@pytest.mark.parametrize(
    ("settings", "after"),
    [
        ("height: 14 width: 20", (14, 20)),
        ("zoom_factor: 2", (2 * H - 1, 2 * W - 1)),
        ("shrink_factor: 2", ((H - 1) // 2 + 1, (W - 1) // 2 + 1)),
        ("pad_beg: 0 pad_end: -1", (H - 1, W - 1)),
    ],
)
def test_bilinear_resizing(tmp_path: Path, settings: str, after: Shape) -> None:
    op, _ = layer(tmp_path, f'type: "Interp" interp_param {{ {settings} }}', (N, C, H, W))
    made = N * C * after[0] * after[1]
    assert shapes(op) == [(N, C, *after)]
    assert operations(op) == {MUL: 3 * made, FMA: 3 * made}


def test_regions_have_a_shape_but_no_formula(tmp_path: Path) -> None:
    text = 'type: "ROIPooling" roi_pooling_param { pooled_h: 6 pooled_w: 5 }'
    op, _ = layer(tmp_path, text, (1, C, H, W), (300, 5))
    assert shapes(op) == [(300, C, 6, 5)]
    assert estimate(op) == Unknown("caffe::ROIPooling")


def test_a_parameter_is_a_blob_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    path.write_text('layer { type: "Parameter" name: "p" top: "p" parameter_param { shape { dim: 3 dim: 4 } } }')
    ops: list[Op] = []
    assert trace(path, ops.append).parts[0].params == 3 * 4
    assert shapes(ops[0]) == [(3, 4)]
