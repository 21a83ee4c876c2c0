"""What ONNX's operators cost, worked out by hand for small sizes."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
# ruff: noqa: E402  # what follows needs onnx

from flopwatch.flops.formulas import Work, known, lookup, work
from flopwatch.flops.formulas.attention import CAUSAL, Heads, Mask, attention
from flopwatch.flops.formulas.onnx.free import UNKNOWN
from flopwatch.flops.formulas.quantisation import parameters, quantised
from flopwatch.flops.formulas.recurrent import Kind, Layer, layer
from flopwatch.flops.formulas.work import Numbers
from flopwatch.flops.operations import DType
from tests.unit.formats.onnx_models import is_free, node_model, node_work, unknown_of

FP32 = Numbers(DType.FP32)
U8, I8, I32, I64 = onnx.TensorProto.UINT8, onnx.TensorProto.INT8, onnx.TensorProto.INT32, onnx.TensorProto.INT64


def name_of(schema) -> str:
    return f"{schema.domain or 'onnx'}::{schema.name}"


@pytest.mark.parametrize("name", sorted({name_of(schema) for schema in onnx.defs.get_all_schemas()}))
def test_every_operator_of_onnx_has_a_formula_or_is_free_or_is_named_as_unknown(name: str) -> None:
    if name in UNKNOWN:
        return
    assert lookup(name) is not None


def test_nothing_is_unknown_that_onnx_does_not_have() -> None:
    names = {name_of(schema) for schema in onnx.defs.get_all_schemas_with_history()}
    assert names >= UNKNOWN.keys()
    assert len(UNKNOWN) <= 9


def test_the_formulas_are_for_operators_that_exist() -> None:
    lookup("onnx::Conv")
    names = {name_of(schema) for schema in onnx.defs.get_all_schemas_with_history()}
    extra = {name for name in known() if name.partition("::")[0].startswith(("onnx", "ai.onnx"))} - names
    # onnxruntime's RMS normalisation, which it puts into onnx's own domain; and integers of unknown shape.
    assert extra == {"onnx::SimplifiedLayerNormalization", "onnx::(integers)"}


class TestConvolution:
    def test_padding_is_counted_and_is_avoidable(self):
        found = node_work("Conv", [(1, 3, 8, 8), (8, 3, 3, 3)], pads=[1, 1, 1, 1])
        taps = 3 * 8 - 2  # of each axis, those on real positions
        assert found == work(FP32, mac=64 * 3 * 8 * 9, padding=(64 * 9 - taps * taps) * 3 * 8)

    @pytest.mark.parametrize("padding", ["SAME_UPPER", "SAME_LOWER"])
    def test_an_even_kernel_with_automatic_padding(self, padding):
        assert node_work("Conv", [(1, 3, 8, 8), (8, 3, 4, 4)], auto_pad=padding).mac == 24_576

    def test_where_automatic_padding_lies_decides_what_is_avoidable(self):
        # Size 4, kernel 4, stride 3: two positions, 3 of padding. Upper: 1 before and 2 behind; lower: 2 and 1.
        upper = node_work("Conv", [(1, 1, 4), (1, 1, 4)], auto_pad="SAME_UPPER", strides=[3])
        lower = node_work("Conv", [(1, 1, 4), (1, 1, 4)], auto_pad="SAME_LOWER", strides=[3])
        assert upper == work(FP32, mac=2 * 4, padding=1 + 2)
        assert lower == work(FP32, mac=2 * 4, padding=2 + 1)

    def test_groups_dilation_stride_and_bias(self):
        found = node_work("Conv", [(2, 4, 9, 9), (8, 2, 3, 3), (8,)], group=2, strides=[2, 2], dilations=[2, 2])
        outputs = 2 * 8 * 3 * 3
        assert found == work(FP32, mac=outputs * 2 * 9, add=outputs)

    def test_transposed_by_positions_of_the_input(self):
        assert node_work("ConvTranspose", [(1, 3, 2, 2), (3, 1, 2, 2)], strides=[2, 2]).mac == 48

    def test_transposed_with_groups(self):
        found = node_work(
            "ConvTranspose",
            [(2, 4, 8, 8), (4, 1, 3, 3)],
            group=4,
            strides=[2, 2],
            pads=[1, 1, 1, 1],
            output_padding=[1, 1],
        )
        assert found.mac == 4_608

    def test_integers_are_no_floating_point_work(self):
        found = node_work("ConvInteger", [(1, 3, 8, 8), (8, 3, 3, 3)], types=[U8, I8])
        assert found == work(Numbers(DType.INT8), mac=36 * 8 * 27)

    def test_quantized(self):
        scale, zero = np.float32(0.5), np.uint8(0)
        scales = np.ones(8, np.float32)
        inputs = [(1, 3, 8, 8), np.array(scale), np.array(zero), (8, 3, 3, 3), scales, np.zeros(8, np.int8)]
        found = node_work(
            "QLinearConv", [*inputs, np.array(scale), np.array(zero), (8,)], types=[U8, 0, 0, I8, 0, 0, 0, 0, I32]
        )
        outputs = 36 * 8
        assert found == work(Numbers(DType.INT8), mac=outputs * 27) + work(FP32, mul=outputs + 8, div=8)


class TestProducts:
    def test_broadcasting(self):
        assert node_work("MatMul", [(2, 1, 3, 4), (5, 4, 6)]).mac == 720

    def test_vectors(self):
        assert node_work("MatMul", [(8,), (8,)]).mac == 8
        assert node_work("MatMul", [(5, 3), (3,)]).mac == 15

    def test_general(self):
        found = node_work("Gemm", [(7, 5), (3, 7), (3,)], transA=1, transB=1, alpha=2.0)
        assert found == work(FP32, mac=5 * 7 * 3, add=5 * 3, mul=5 * 3)

    def test_einstein_to_the_last_digit(self):
        found = node_work("Einsum", [(3, 7, 129, 33), (3, 7, 129, 33)], equation="bhid,bhjd->bhij")
        assert found == work(FP32, mac=11_532_213)

    def test_integers(self):
        assert node_work("MatMulInteger", [(4, 8), (8, 2)], types=[U8, I8]) == work(Numbers(DType.INT8), mac=64)

    def test_few_bits(self):
        rows, inner, columns, block = 3, 64, 16, 32
        inputs = [(rows, inner), (columns, inner // block, block // 2), (columns * inner // block,)]
        found = node_work(
            "MatMulNBits",
            inputs,
            types=[1, U8, 1],
            domain="com.microsoft",
            K=inner,
            N=columns,
            bits=4,
            block_size=block,
        )
        assert found == work(FP32, mac=rows * inner * columns, mul=inner * columns)

    def test_a_mixture_of_experts(self):
        rows, width, inner, experts, k = 8, 64, 128, 4, 2
        up, down = (experts, inner, width), (experts, width, inner)
        inputs = [(rows, width), (rows, experts), up, None, down, None, up]
        found = node_work("MoE", inputs, domain="com.microsoft", k=k, activation_type="silu")
        assert found.mac == rows * k * 3 * width * inner
        activation = rows * k * inner
        routing = rows * experts
        silu = work(FP32, add=activation, mul=activation, div=activation, transcendental=activation)
        softmax = work(FP32, minmax=routing - rows, add=2 * routing - rows, div=routing, transcendental=routing)
        joined = work(FP32, mul=activation + rows * k * width, add=rows * (k - 1) * width)
        assert found == work(FP32, mac=found.mac) + silu + softmax + joined

    def test_transposed_and_scaled(self):
        found = node_work("FusedMatMul", [(2, 5, 3), (2, 7, 5)], domain="com.microsoft", transA=1, transB=1, alpha=0.5)
        assert found == work(FP32, mac=2 * 3 * 5 * 7, mul=2 * 3 * 7)

    def test_quantized_while_running(self):
        inputs = [(4, 8), (8, 2), (1,), (1,), (2,)]
        found = node_work("DynamicQuantizeMatMul", inputs, types=[1, I8, 1, I8, 1], domain="com.microsoft")
        made = parameters(FP32, 4 * 8) + quantised(FP32, 4 * 8)
        assert found == made + work(Numbers(DType.INT8), mac=4 * 8 * 2) + work(FP32, mul=4 * 2 + 1, add=4 * 2)


class TestRecurrence:
    @pytest.mark.parametrize(
        ("kind", "gates", "mac"), [("RNN", 1, 819_200), ("GRU", 3, 2_457_600), ("LSTM", 4, 3_276_800)]
    )
    def test_all_steps(self, kind, gates, mac):
        size = 64
        shapes = [(100, 1, size), (1, gates * size, size), (1, gates * size, size)]
        assert node_work(kind, shapes, hidden_size=size, outputs=2).mac == mac

    def test_both_directions_and_known_lengths(self):
        size, batch, steps = 4, 2, 10
        weights = (2, 4 * size, size)
        lengths = np.array([10, 3], np.int32)
        shapes = [(steps, batch, size), weights, weights, None, lengths]
        found = node_work("LSTM", shapes, hidden_size=size, direction="bidirectional")
        assert found.mac == 2 * (10 + 3) * 4 * size * (size + size)

    def test_a_cell(self):
        inputs, hidden = 5, 3
        shapes = [(1, 1, inputs), (1, 4 * hidden, inputs), (1, 4 * hidden, hidden), (1, 8 * hidden)]
        gates = work(FP32, mac=4 * hidden * (inputs + hidden), add=(2 + 1) * 4 * hidden)
        sigmoids = work(FP32, add=3 * hidden, div=3 * hidden, transcendental=3 * hidden)
        rest = work(FP32, transcendental=2 * hidden, mul=3 * hidden, add=hidden)
        assert node_work("LSTM", shapes, hidden_size=hidden) == gates + sigmoids + rest

    @pytest.mark.parametrize(("kind", "of"), [("RNN", Kind.TANH), ("GRU", Kind.GRU), ("LSTM", Kind.LSTM)])
    def test_costs_what_it_costs_in_pytorch(self, kind, of):
        inputs, hidden, steps, batch = 5, 3, 7, 2
        gates = of.gates * hidden
        shapes = [(steps, batch, inputs), (1, gates, inputs), (1, gates, hidden), (1, 2 * gates)]
        found = node_work(kind, shapes, hidden_size=hidden, **({"linear_before_reset": 1} if kind == "GRU" else {}))
        assert found == layer(FP32, of, steps * batch, Layer(inputs, hidden))

    def test_coupled_gates_are_unknown(self):
        shapes = [(1, 1, 4), (1, 16, 4), (1, 16, 4)]
        assert unknown_of(node_model("LSTM", shapes, hidden_size=4, input_forget=1)) == [
            "onnx::LSTM with coupled gates"
        ]


class TestAttention:
    SIZES = Heads(2, 12, 64, 64, 32, 32, 12)

    def test_of_four_dimensions(self):
        found = node_work("Attention", [(2, 12, 64, 32)] * 3, opset=23)
        assert found == attention(FP32, self.SIZES)
        assert found.mac == 2 * 2 * 12 * 64 * 64 * 32

    def test_causal_with_a_past(self):
        past = (2, 12, 16, 32)
        found = node_work("Attention", [(2, 12, 64, 32)] * 3 + [None, past, past], opset=23, is_causal=1, outputs=3)
        assert found == attention(FP32, self.SIZES._replace(keys=80), Mask(right=0, shift=16))

    def test_shared_heads_of_three_dimensions(self):
        shapes = [(2, 64, 12 * 32), (2, 64, 4 * 32), (2, 64, 4 * 32)]
        found = node_work("Attention", shapes, opset=23, q_num_heads=12, kv_num_heads=4)
        assert found == attention(FP32, self.SIZES._replace(shared=4))

    def test_a_whole_layer(self):
        batch, tokens, hidden, heads = 2, 10, 32, 4
        found = node_work(
            "Attention",
            [(batch, tokens, hidden), (hidden, 3 * hidden), (3 * hidden,)],
            domain="com.microsoft",
            num_heads=heads,
            unidirectional=1,
        )
        made = work(FP32, mac=batch * tokens * hidden * 3 * hidden, add=batch * tokens * 3 * hidden)
        sizes = Heads(batch, heads, tokens, tokens, hidden // heads, hidden // heads, heads)
        assert found == made + attention(FP32, sizes, CAUSAL)

    def test_grouped_queries_with_a_cache(self):
        batch, heads, shared, width, past = 1, 8, 2, 16, 32
        cache = (batch, shared, past, width)
        shapes = [(batch, 1, heads * width), (batch, 1, shared * width), (batch, 1, shared * width), cache, cache]
        lengths = [np.array([past], np.int32), np.array(past + 1, np.int32)]
        found = node_work(
            "GroupQueryAttention",
            [*shapes, *lengths],
            domain="com.microsoft",
            num_heads=heads,
            kv_num_heads=shared,
            outputs=3,
        )
        assert found.mac == 2 * batch * heads * (past + 1) * width


class TestPointwise:
    @pytest.mark.parametrize(
        ("kind", "expected"),
        [
            ("Relu", work(FP32, minmax=6)),
            ("Tanh", work(FP32, transcendental=6)),
            ("Sigmoid", work(FP32, transcendental=6, add=6, div=6)),
            ("Softsign", work(FP32, add=6, div=6)),
            ("HardSwish", work(FP32, fma=6, minmax=12, mul=6)),
            ("Reciprocal", work(FP32, div=6)),
            ("Gelu", work(FP32, transcendental=6, add=6, mul=18)),
        ],
    )
    def test_of_one_tensor(self, kind, expected):
        assert node_work(kind, [(2, 3)]) == expected

    def test_broadcasting(self):
        assert node_work("Mul", [(8,), (2, 8)]) == work(FP32, mul=16)
        assert node_work("Add", [(2, 3, 4), (4,)]) == work(FP32, add=24)

    def test_integers_are_free(self):
        assert node_work("Add", [(2, 3), (3,)], types=[I64, I64]) == Work()

    def test_powers(self):
        assert node_work("Pow", [(6,), np.array(2, np.float32)]) == work(FP32, mul=6)
        assert node_work("Pow", [(6,), (6,)]) == work(FP32, transcendental=6)

    def test_clip_has_as_many_minmax_as_bounds(self):
        assert node_work("Clip", [(6,), None, np.array(6, np.float32)]) == work(FP32, minmax=6)
        assert node_work("Clip", [(6,)], opset=6, max=6.0) == work(FP32, minmax=6)

    def test_sums_of_many(self):
        assert node_work("Sum", [(6,)] * 4) == work(FP32, add=3 * 6)

    @pytest.mark.parametrize("kind", ["Abs", "Neg", "Floor", "Identity", "Flatten", "Dropout", "ThresholdedRelu"])
    def test_free(self, kind):
        assert is_free(kind, [(2, 3)])


class TestRowsAndWindows:
    def test_softmax_along_an_axis(self):
        n, rows = 5, 2 * 3
        expected = work(FP32, minmax=rows * (n - 1), add=rows * (n + n - 1), transcendental=rows * n, div=rows * n)
        assert node_work("Softmax", [(2, 3, n)]) == expected

    def test_softmax_of_old_files_takes_all_dimensions_behind_as_one_row(self):
        n = 3 * 5
        expected = work(FP32, minmax=2 * (n - 1), add=2 * (2 * n - 1), transcendental=2 * n, div=2 * n)
        assert node_work("Softmax", [(2, 3, 5)], opset=11) == expected

    def test_a_mean(self):
        assert node_work("ReduceMean", [(4, 5)], opset=13, axes=[1], keepdims=0) == work(FP32, add=4 * 4, div=4)
        assert node_work("ReduceMean", [(4, 5), np.array([1])]) == work(FP32, add=4 * 4, div=4)

    def test_pooling_with_a_last_window_that_is_cut_off(self):
        # Size 4, windows of 3 with stride 2, rounded up: one of 3 and one of 2.
        options = {"kernel_shape": [3], "strides": [2], "ceil_mode": 1}
        assert node_work("MaxPool", [(1, 1, 4)], **options) == work(FP32, minmax=2 + 1)
        assert node_work("AveragePool", [(1, 1, 4)], **options) == work(FP32, add=3 + 2, div=2)

    def test_normalisation(self):
        n, rows = 8, 3
        found = node_work("LayerNormalization", [(rows, n), (n,), (n,)])
        variance = work(FP32, add=rows * (2 * (n - 1) + n), mul=rows * n, div=2 * rows)
        rest = work(FP32, add=rows, sqrt=rows, div=rows, mul=rows * n, fma=rows * n)
        assert found == variance + rest

    def test_skip_normalisation_adds_first(self):
        n, rows = 8, 3
        plain = node_work("LayerNormalization", [(rows, n), (n,), (n,)])
        found = node_work(
            "SkipLayerNormalization", [(1, rows, n), (1, rows, n), (n,), (n,), (n,)], domain="com.microsoft"
        )
        assert found == plain + work(FP32, add=2 * rows * n)

    def test_response_norm_has_fewer_neighbours_at_the_edges(self):
        channels = 4
        windows = 2 + 3 + 3 + 2  # of squares
        expected = work(FP32, mul=channels, add=windows - channels, fma=channels, transcendental=channels, div=channels)
        assert node_work("LRN", [(1, channels, 1, 1)], size=3) == expected

    def test_resizing(self):
        scales = np.array([1, 1, 2, 2], np.float32)
        empty = np.array([], np.float32)
        assert is_free("Resize", [(1, 3, 4, 4), empty, scales])
        found = node_work("Resize", [(1, 3, 4, 4), empty, scales], mode="linear")
        assert found == work(FP32, mul=3 * 3 * 64, fma=3 * 3 * 64)

    def test_a_fourier_transform(self):
        # 5/2 N log2 N for real numbers.
        found = node_work("DFT", [(1, 1024, 1)], opset=17, onesided=1)
        assert sum(found.tally.flop().values()) == 5 * 1024 * 10 // 2


class TestClassical:
    def test_a_linear_model(self):
        weights = [1.0] * (3 * 4)
        found = node_work(
            "LinearClassifier",
            [(5, 4)],
            domain="ai.onnx.ml",
            outputs=2,
            coefficients=weights,
            intercepts=[0.0] * 3,
            classlabels_ints=[0, 1, 2],
        )
        assert found == work(FP32, mac=5 * 3 * 4, add=5 * 3)

    def test_a_scaler(self):
        found = node_work("Scaler", [(5, 4)], domain="ai.onnx.ml", offset=[0.0] * 4, scale=[1.0] * 4)
        assert found == work(FP32, add=20, mul=20)
