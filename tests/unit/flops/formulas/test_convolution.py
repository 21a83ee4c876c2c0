"""Convolutions against loops over numbers that count, and by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, estimate
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.tally import Tally
from tests.unit.flops.formulas.counting import Counting, operations


class Case(NamedTuple):
    batch: int
    groups: int
    ins: int  # channels of a group
    outs: int  # channels of a group
    size: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    extra: tuple[int, ...]  # output padding of a transposed one

    @property
    def result(self) -> tuple[int, ...]:
        sizes = zip(self.size, self.padding, self.dilation, self.kernel, self.stride, strict=True)
        return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in sizes)

    @property
    def transposed_result(self) -> tuple[int, ...]:
        sizes = zip(self.size, self.padding, self.dilation, self.kernel, self.stride, self.extra, strict=True)
        return tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, p, d, k, s, e in sizes)

    def op(self, name: str, transposed: bool, **more: Any) -> Op:
        ins, outs = self.ins * self.groups, self.outs * self.groups
        result = self.transposed_result if transposed else self.result
        weight = (ins, self.outs) if transposed else (outs, self.ins)
        made = Array((self.batch, outs, *result))
        arguments = {
            "input": Array((self.batch, ins, *self.size)),
            "weight": Array((*weight, *self.kernel)),
            "bias": Array((outs,)),
            "stride": self.stride,
            "padding": self.padding,
            "dilation": self.dilation,
            "transposed": transposed,
            "output_padding": self.extra,
            "groups": self.groups,
        }
        if "backward" in name:
            arguments |= {"grad_output": made, **more}
            return Op(name, arguments, (arguments["input"], arguments["weight"], arguments["bias"]))
        return Op(name, arguments | more, (made,))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dims = draw(st.integers(1, 3))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.lists(st.integers(low, high), min_size=dims, max_size=dims)))

    small = 3 if dims == 3 else 5
    stride = each(1, 3)
    case = Case(
        draw(st.integers(0, 2)),
        draw(st.integers(1, 2)),
        draw(st.integers(1, 2)),
        draw(st.integers(1, 2)),
        each(1, small),
        each(1, 3 if dims == 3 else 4),
        stride,
        each(0, 3),
        each(1, 2),
        tuple(draw(st.integers(0, each_stride - 1)) for each_stride in stride),
    )
    assume(min(case.result) >= 1 and min(case.transposed_result) >= 1)
    return case


def pairs(case: Case, positions: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Each position of the side without padding, each tap, and where on the other side they meet."""
    for place in product(*map(range, positions)):
        for tap in product(*map(range, case.kernel)):
            where = zip(place, case.stride, tap, case.dilation, case.padding, strict=True)
            yield place, tap, tuple(at * s + t * d - p for at, s, t, d, p in where)


def inside(place: Sequence[int], sizes: Sequence[int]) -> bool:
    return all(0 <= at < size for at, size in zip(place, sizes, strict=True))


def channels(case: Case) -> Iterator[tuple[int, int, int, int]]:
    """Batch item, input channel, output channel, and the place in the group of the one that the weights count within it."""
    for item, group, one, other in product(range(case.batch), range(case.groups), range(case.ins), range(case.outs)):
        yield item, group * case.ins + one, group * case.outs + other, one


def worth(op: Op) -> Work:
    found = estimate(op)
    assert isinstance(found, Work)
    return found


@settings(max_examples=60, deadline=None)
@given(cases())
def test_a_convolution_is_what_its_loops_do(case: Case) -> None:
    seen = Counting()
    x = seen.numbers(case.batch, case.ins * case.groups, *case.size)
    w = seen.numbers(case.outs * case.groups, case.ins, *case.kernel)
    y: dict[Any, Any] = {}
    for item, one, other, within in channels(case):
        for place, tap, met in pairs(case, case.result):
            value = x[(item, one, *met)] if inside(met, case.size) else seen.blank()
            y[item, other, place] = y.get((item, other, place), 0) + value * w[(other, within, *tap)]
    found = worth(case.op("aten::convolution", transposed=False, bias=None))
    assert found.mac == seen.mac
    assert found.avoidable.get("padding", 0) == seen.blank_products
    assert operations(found) == +seen.operations
    with_bias = worth(case.op("aten::convolution", transposed=False))
    assert operations(with_bias) - operations(found) == ({Operation.ADD: len(y)} if y else {})


@settings(max_examples=60, deadline=None)
@given(cases())
def test_a_transposed_convolution_is_what_its_loops_do(case: Case) -> None:
    seen = Counting()
    outside = 0
    x = seen.numbers(case.batch, case.ins * case.groups, *case.size)
    w = seen.numbers(case.ins * case.groups, case.outs, *case.kernel)
    y: dict[Any, Any] = {}
    for item, one, other, _ in channels(case):
        for place, tap, met in pairs(case, case.size):
            outside += not inside(met, case.transposed_result)
            y[item, other, met] = y.get((item, other, met), 0) + (
                x[(item, one, *place)] * w[(one, other % case.outs, *tap)]
            )
    found = worth(case.op("aten::convolution", transposed=True, bias=None))
    assert (found.mac, found.avoidable.get("padding", 0)) == (seen.mac, outside)


@settings(max_examples=40, deadline=None)
@given(cases(), st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_gradients_of_a_convolution_are_what_their_loops_do(case: Case, mask: tuple[bool, bool, bool]) -> None:
    seen = Counting()
    x = seen.numbers(case.batch, case.ins * case.groups, *case.size)
    w = seen.numbers(case.outs * case.groups, case.ins, *case.kernel)
    g = seen.numbers(case.batch, case.outs * case.groups, *case.result)
    by: dict[Any, Any] = {}
    for item, one, other, within in channels(case):
        for place, tap, met in pairs(case, case.result):
            gradient = g[(item, other, *place)]
            if mask[0]:
                blank = not inside(met, case.size)
                seen.blank_products += blank
                by["x", item, one, met] = by.get(("x", item, one, met), 0) + gradient * w[(other, within, *tap)]
            if mask[1]:
                value = x[(item, one, *met)] if inside(met, case.size) else seen.blank()
                by["w", other, within, tap] = by.get(("w", other, within, tap), 0) + gradient * value
    mac = seen.mac
    if mask[2]:
        for other in range(g.shape[1]):
            _, *rest = [
                g[(item, other, *place)] for item in range(case.batch) for place in product(*map(range, case.result))
            ] or [0]
            for value in rest:
                value + value
    found = worth(case.op("aten::convolution_backward", transposed=False, output_mask=mask))
    assert found.mac == mac
    assert found.avoidable.get("padding", 0) == seen.blank_products
    assert operations(found) == +seen.operations


@settings(max_examples=40, deadline=None)
@given(cases(), st.booleans())
def test_each_gradient_costs_what_the_forward_does_and_items_and_groups_share_out(case: Case, transposed: bool) -> None:
    name = "aten::convolution"
    one = worth(case._replace(batch=1).op(name, transposed, bias=None))
    assert worth(case._replace(batch=7).op(name, transposed, bias=None)) == 7 * one
    assert worth(case._replace(batch=1, groups=6).op(name, transposed, bias=None)) == 6 * worth(
        case._replace(batch=1, groups=1).op(name, transposed, bias=None)
    )
    both = worth(case._replace(batch=1).op("aten::convolution_backward", transposed, output_mask=(True, True, False)))
    assert both == 2 * one


def test_one_group_for_each_channel() -> None:
    channels, side, taps = 8, 8, 3 * 3
    case = Case(1, channels, 1, 1, (side, side), (3, 3), (1, 1), (1, 1), (1, 1), (0, 0))
    forward = worth(case.op("aten::convolution", transposed=False, bias=None))
    assert sum(forward.tally.flop().values()) == 2 * channels * side * side * taps == 9_216
    backward = worth(case.op("aten::convolution_backward", transposed=False, output_mask=(True, True, False)))
    assert sum(backward.tally.flop().values()) == 2 * 9_216


def test_taps_on_padding_are_told() -> None:
    """A 3 by 3 kernel on 8 by 8 with a border of one: 22 by 22 of the 24 by 24 taps meet a pixel."""
    case = Case(1, 1, 3, 8, (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), (0, 0))
    found = worth(case.op("aten::convolution", transposed=False, bias=None))
    assert (found.mac, found.mac - found.avoidable["padding"]) == (24 * 24 * 3 * 8, 22 * 22 * 3 * 8)


def convolved(name: str, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], **more: Any) -> Work:
    return worth(Op(name, {"input": Array(x), "weight": Array(w), "bias": None, **more}, (Array(y),)))


@pytest.mark.parametrize("name", ["aten::conv2d", "aten::_convolution_mode"])
@pytest.mark.parametrize("kernel", [3, 4])
def test_padding_by_name(name: str, kernel: int) -> None:
    """An even kernel has less padding before than behind."""
    found = convolved(name, (1, 3, 8, 8), (8, 3, kernel, kernel), (1, 8, 8, 8), padding="same", stride=[1, 1])
    before = (kernel - 1) // 2
    met = sum(0 <= at + tap - before < 8 for at in range(8) for tap in range(kernel))
    assert found.mac == 8 * 8 * kernel * kernel * 3 * 8
    assert found.avoidable["padding"] == found.mac - met * met * 3 * 8


def test_a_batch_need_not_be_there() -> None:
    assert convolved("aten::conv2d", (3, 8, 8), (8, 3, 3, 3), (8, 8, 8), padding=[1, 1]) == convolved(
        "aten::conv2d", (1, 3, 8, 8), (8, 3, 3, 3), (1, 8, 8, 8), padding=[1, 1]
    )
    assert convolved("aten::conv3d", (3, 8, 8, 8), (8, 3, 1, 1, 1), (8, 8, 8, 8)).mac == 8 * 8 * 8 * 8 * 3


@pytest.mark.parametrize(
    ("x", "w", "y", "stride", "mac"),
    [
        ((1, 3, 2, 2), (3, 1, 2, 2), (1, 1, 4, 4), 2, 3 * 2 * 2 * 1 * 4),
        ((1, 32, 1, 1), (32, 1, 3, 3), (1, 1, 3, 3), 1, 32 * 1 * 9),
        ((2, 4, 8, 8), (4, 1, 3, 3), (2, 4, 16, 16), 2, 2 * 4 * 8 * 8 * 9),
        ((6, 192, 30, 96), (192, 384, 2, 2), (6, 384, 60, 192), 2, 6 * 30 * 96 * 192 * 384 * 4),
    ],
)
def test_a_transposed_one_works_by_its_input(
    x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], stride: int, mac: int
) -> None:
    assert convolved("aten::conv_transpose2d", x, w, y, stride=[stride] * 2).mac == mac


@pytest.mark.parametrize(
    ("x", "w", "y"), [((5, 3, 7, 7), (11, 3, 1, 1), (5, 11, 7, 7)), ((5, 3, 7), (11, 3, 1), (5, 11, 7))]
)
def test_a_kernel_of_one_is_a_linear_layer(x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...]) -> None:
    positions = prod(x) // x[1]
    linear = Op("aten::linear", {"input": Array((positions, 3)), "weight": Array((11, 3)), "bias": None})
    assert convolved("aten::convolution", x, w, y, stride=[1], padding=[0], dilation=[1]) == worth(linear)


def test_sizes_too_large_to_loop_over_and_none_at_all() -> None:
    huge = 1 << 40
    assert convolved("aten::conv1d", (1, 1, huge), (1, 1, 3), (1, 1, huge), padding=[1]).avoidable == {"padding": 2}
    assert convolved("aten::conv1d", (0, 1, 8), (1, 1, 3), (0, 1, 8), padding=[1]) == Work()


def test_the_second_gradients_are_up_to_four_more_of_the_same() -> None:
    case = Case(2, 1, 3, 4, (5,), (3,), (1,), (1,), (1,), (0,))
    forward = worth(case.op("aten::convolution", False, bias=None))
    shapes = case.op("aten::convolution", False)
    of = {
        **{name: value for name, value in shapes.arguments.items() if name not in ("input", "bias")},
        "self": shapes.arguments["input"],
        "gO": shapes.outputs[0],
        "ggI": shapes.arguments["input"],
        "ggW": shapes.arguments["weight"],
        "ggb": None,
    }
    full = worth(Op("aten::_convolution_double_backward", of | {"output_mask": [True, True, True]}))
    assert full.mac == 4 * forward.mac
    frozen = of | {"ggW": None, "output_mask": [True, True, True]}
    assert worth(Op("aten::_convolution_double_backward", frozen)).mac == 2 * forward.mac


def test_backends_give_the_same_under_their_names() -> None:
    forward = convolved("aten::conv2d", (2, 4, 6, 6), (8, 2, 3, 3), (2, 8, 6, 6), padding=[1, 1])
    x, w, y = Array((2, 4, 6, 6)), Array((8, 2, 3, 3)), Array((2, 8, 6, 6))
    given = {"stride": [1, 1], "padding": [1, 1], "dilation": [1, 1], "groups": 2}
    for name in ("aten::mkldnn_convolution", "aten::cudnn_convolution", "aten::_mps_convolution"):
        assert worth(Op(name, {"self": x, "weight": w, "bias": None, **given}, (y,))) == forward
    packed = {"X": x, "W": Array((2, 4, 2, 3, 3)), "B": None, "attr": "relu", "scalars": [], "algorithm": "", **given}
    fused = worth(Op("mkldnn::_convolution_pointwise", packed, (y,)))
    assert fused.tally == forward.tally + Tally.of(Operation.MINMAX, DType.FP32, instructions=y.size)
    assert worth(Op("aten::cudnn_convolution_relu", {"self": x, "weight": w, "bias": None, **given}, (y,))) == fused
