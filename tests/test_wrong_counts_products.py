"""Estimates of products and convolutions of all shapes and datatypes; each case is asked in all ways and modes, forward and backward.

Expected are products of named sizes. A product costs rows · inner · columns MAC for each element of the broadcast batch; a convolution
output positions (input positions where it is transposed) · taps · channels in of a group · channels out.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from flopwatch import estimate  # noqa: E402
from tests.following import WAYS, followed, forwards, function, mac  # noqa: E402

pytestmark = pytest.mark.torch

Sizes = tuple[int, ...]


def numbers(*sizes: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.rand(sizes).to(dtype)


def one_answer(model: nn.Module, expected: int, *arguments: Any) -> None:
    """The same MAC and operations whatever is asked."""
    answers = list(forwards(model, *arguments))
    assert {name: found for name, found, _ in answers} == dict.fromkeys((name for name, _, _ in answers), expected)
    assert [name for name, _, operations in answers if operations != answers[0][2]] == []


# --- matrices of all ranks

RANKS: list[tuple[Sizes, Sizes]] = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 6)),
    ((2, 1, 1, 3, 4), (1, 5, 6, 4, 2)),
    ((2, 0, 4), (4, 5)),
    ((3, 0), (0, 5)),
]


@pytest.mark.parametrize(("left", "right"), RANKS, ids=str)
def test_matrices_of_all_ranks(left: Sizes, right: Sizes) -> None:
    batch = torch.broadcast_shapes(left[:-2], right[:-2])
    rows, columns = prod(left[-2:-1]), prod(right[-1:]) if len(right) > 1 else 1
    expected = prod(batch) * rows * left[-1] * columns
    one_answer(function(torch.matmul), expected, numbers(*left), numbers(*right))
    assert mac(lambda a, b: a @ b, numbers(*left), numbers(*right)) == expected


SUMS: dict[str, tuple[list[Sizes], int]] = {
    "ij,jk": ([(3, 4), (4, 5)], 3 * 4 * 5),
    "ij,kj->ki": ([(3, 4), (5, 4)], 3 * 4 * 5),
    "...ij,...jk->...ik": ([(2, 1, 3, 4), (5, 4, 6)], 2 * 5 * 3 * 4 * 6),
    "b...d,d->b...": ([(2, 3, 4, 5), (5,)], 2 * 3 * 4 * 5),
    "bnd,hdk->bhnk": ([(2, 3, 4), (5, 4, 6)], 2 * 5 * 3 * 4 * 6),
    "nchw,kchw->nk": ([(2, 3, 4, 4), (5, 3, 4, 4)], 2 * 5 * 3 * 4 * 4),
    "i,i->": ([(8,), (8,)], 8),
    "ii->i": ([(4, 4)], 0),
    "ii->": ([(4, 4)], 0),
    "i,j->ij": ([(3,), (4,)], 0),
    "nc,nc->nc": ([(3, 4), (3, 4)], 0),
    "ab,bc,cd->ad": ([(2, 3), (3, 4), (4, 5)], 2 * 3 * 4 + 2 * 4 * 5),
}


@pytest.mark.parametrize("equation", SUMS)
def test_sums_of_einstein(equation: str) -> None:
    shapes, expected = SUMS[equation]
    one_answer(function(lambda *x: torch.einsum(equation, *x)), expected, *(numbers(*sizes) for sizes in shapes))


PAIRS: dict[str, tuple[Callable[..., Any], list[Sizes], int]] = {
    "sublists": (lambda a, b: torch.einsum(a, [..., 0, 1], b, [1, 2], [..., 0, 2]), [(7, 3, 4), (4, 5)], 7 * 3 * 4 * 5),
    "tensordot": (lambda a, b: torch.tensordot(a, b, ([1, 0], [0, 1])), [(3, 4, 5), (4, 3, 6)], 3 * 4 * 5 * 6),
    "inner": (torch.inner, [(2, 3, 4), (5, 4)], 2 * 3 * 5 * 4),
    "many dots": (torch.linalg.vecdot, [(3, 4), (3, 4)], 3 * 4),
    "powers": (lambda a: torch.linalg.matrix_power(a, 5), [(4, 4)], 3 * 4**3),
    "negative powers": (lambda a: torch.linalg.matrix_power(a, -2), [(4, 4)], 4**3),
    "without a first term": (lambda a, b, c: torch.addmm(a, b, c, beta=0), [(3, 5), (3, 4), (4, 5)], 3 * 4 * 5),
    "in place": (lambda a, b, c: a.clone().addmm_(b, c), [(3, 5), (3, 4), (4, 5)], 3 * 4 * 5),
    "into a tensor": (lambda b, c: torch.mm(b, c, out=torch.empty(3, 5)), [(3, 4), (4, 5)], 3 * 4 * 5),
    "a batch that is summed": (torch.addbmm, [(3, 5), (2, 3, 4), (2, 4, 5)], 2 * 3 * 4 * 5),
    "unfolded": (lambda x, w: w @ functional.unfold(x, 3), [(2, 3, 8, 8), (8, 27)], 2 * 6 * 6 * 27 * 8),
    "in the best order": (
        lambda *x: torch.linalg.multi_dot(x),
        [(10, 100), (100, 5), (5, 50)],
        10 * 100 * 5 + 10 * 5 * 50,
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_products_under_other_names(case: str) -> None:
    body, shapes, expected = PAIRS[case]
    arguments = [numbers(*sizes) + (torch.eye(*sizes) if "powers" in case else 0) for sizes in shapes]
    answers = {way: followed(way, function(body), *arguments)[0] for way in ("meta", "real")}
    assert answers == {"meta": expected, "real": expected}
    assert mac(body, *arguments) == expected


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
def test_products_of_integers_are_no_floating_point_operations(dtype: Any) -> None:
    record = estimate(torch.matmul, numbers(2, 3, 4, dtype=dtype), numbers(4, 5, dtype=dtype))
    assert (record.mac, record.flop()) == (2 * 3 * 4 * 5, {})
    assert sum(record.op().values()) == 2 * 2 * 3 * 4 * 5


HALVES = {"bfloat16": "bf16", "float16": "fp16", "float64": "fp64"}


@pytest.mark.parametrize("name", HALVES)
def test_numbers_of_other_widths_keep_their_name(name: str) -> None:
    dtype = getattr(torch, name)
    for model, arguments, expected in (
        (nn.Linear(3, 4), (numbers(2, 3, dtype=dtype),), 2 * 3 * 4),
        (nn.Conv2d(3, 8, 3), (numbers(1, 3, 8, 8, dtype=dtype),), 6 * 6 * 9 * 3 * 8),
    ):
        record = estimate(model.to(dtype), *arguments)
        assert (record.mac, [str(each) for each in record.flop()]) == (expected, [HALVES[name]])


def test_casts_within_and_around() -> None:
    class Casting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Linear(3, 4, bias=False)

        @torch.autocast("cpu", dtype=torch.bfloat16)
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.dense(x)
            return result

    within = estimate(Casting(), numbers(2, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        around = estimate(nn.Linear(3, 4, bias=False), numbers(2, 3))
    for record in (within, around):
        assert {str(dtype): flop for dtype, flop in record.flop().items()} == {"bf16": 2 * 2 * 3 * 4}


def test_complex_numbers() -> None:
    left, right = numbers(3, 4, dtype=torch.complex64), numbers(4, 5, dtype=torch.complex64)
    for body in (torch.mm, lambda a, b: a.conj() @ b, lambda a, b: torch.einsum("ij,jk->ik", a, b)):
        one_answer(function(body), 4 * 3 * 4 * 5, left, right)
    # PyTorch makes a complex convolution of three real ones (Gauss).
    layer = nn.Conv2d(3, 8, 3, dtype=torch.complex64)
    one_answer(layer, 3 * 6 * 6 * 9 * 3 * 8, numbers(1, 3, 8, 8, dtype=torch.complex64))


def test_sparse_matrices_made_on_the_way() -> None:
    diagonal = torch.eye(4)
    assert mac(function(lambda a, b: torch.sparse.mm(a.to_sparse(), b)), diagonal, numbers(4, 5)) == 4 * 5
    assert mac(function(lambda a, b: a.to_sparse_csr() @ b), diagonal, numbers(4, 5)) == 4 * 5
    unknown = estimate(torch.sparse.mm, diagonal.to_sparse(), diagonal.to_sparse()).unknown
    assert len(unknown) == 1  # how often the elements of two meet is not seen from their numbers


# --- convolutions

CONVOLUTIONS: dict[str, tuple[Callable[[], nn.Module], Sizes, int]] = {
    **{
        f"{mode}, even": (
            lambda mode=mode: nn.Conv2d(3, 8, 4, padding="same", padding_mode=mode),
            (2, 3, 8, 8),
            2 * 8 * 8 * 16 * 3 * 8,
        )
        for mode in ("zeros", "reflect", "replicate", "circular")
    },
    "dilated, same": (lambda: nn.Conv1d(3, 8, 4, padding="same", dilation=2), (2, 3, 12), 2 * 12 * 4 * 3 * 8),
    "nothing alike in height and width": (
        lambda: nn.Conv2d(4, 6, (3, 5), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2),
        (2, 4, 9, 16),
        2 * 5 * 8 * (3 * 5) * 2 * 6,
    ),
    "more padding than image": (lambda: nn.Conv2d(3, 8, 3, padding=7), (1, 3, 4, 4), 16 * 16 * 9 * 3 * 8),
    "without a batch, one dimension": (lambda: nn.Conv1d(3, 8, 3), (3, 10), 8 * 3 * 3 * 8),
    "without a batch, three": (lambda: nn.Conv3d(3, 8, 3), (3, 5, 5, 5), 27 * 27 * 3 * 8),
    "depthwise, two for each": (lambda: nn.Conv2d(4, 8, 3, padding=1, groups=4), (2, 4, 8, 8), 2 * 8 * 8 * 9 * 8),
    "transposed, one dimension": (
        lambda: nn.ConvTranspose1d(3, 8, 5, stride=3, padding=1, output_padding=2),
        (2, 3, 10),
        2 * 10 * 5 * 3 * 8,
    ),
    "transposed, three": (
        lambda: nn.ConvTranspose3d(4, 8, (1, 2, 3), stride=2, groups=2, dilation=2),
        (2, 4, 3, 4, 5),
        2 * (3 * 4 * 5) * (1 * 2 * 3) * 4 * 4,
    ),
    "transposed, without a batch": (lambda: nn.ConvTranspose2d(4, 8, 3), (4, 5, 5), 5 * 5 * 9 * 4 * 8),
    "no images": (lambda: nn.Conv2d(3, 8, 3), (0, 3, 8, 8), 0),
}


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolutions_of_all_shapes(case: str) -> None:
    make, sizes, expected = CONVOLUTIONS[case]
    model = make()
    one_answer(model, expected, numbers(*sizes))
    # The gradient by the weights costs what the forward does; nobody asks for that by the images.
    assert {way: followed(way, model, numbers(*sizes), train=True)[0] for way in WAYS} == dict.fromkeys(
        WAYS, 2 * expected
    )


def test_layers_of_onednn() -> None:
    from torch.utils.mkldnn import to_mkldnn

    model = to_mkldnn(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)).eval())
    assert mac(model, numbers(1, 3, 8, 8).to_mkldnn()) == 6 * 6 * 9 * 3 * 8 + 4 * 4 * 9 * 8 * 4


# --- quantised layers


def quantised(layer: nn.Module, *sizes: int) -> nn.Module:
    """A layer between a quantisation and its opposite, as calibration on one input makes it."""
    tools = torch.ao.quantization
    model = nn.Sequential(tools.QuantStub(), layer, tools.DeQuantStub()).eval()
    model.qconfig = tools.get_default_qconfig(torch.backends.quantized.engine)  # type: ignore[assignment]
    prepared = tools.prepare(model)
    prepared(numbers(*sizes))
    converted: nn.Module = tools.convert(prepared)
    return converted


QUANTISED: dict[str, tuple[Callable[[], nn.Module], Sizes, int]] = {
    "dense": (lambda: nn.Linear(6, 8), (3, 6), 3 * 6 * 8),
    "one dimension": (lambda: nn.Conv1d(4, 6, 3), (2, 4, 8), 2 * 6 * 3 * 4 * 6),
    "strided": (lambda: nn.Conv2d(4, 6, 3, padding=1, stride=2), (2, 4, 8, 8), 2 * 4 * 4 * 9 * 4 * 6),
    "depthwise": (lambda: nn.Conv2d(4, 8, 3, groups=4, dilation=2), (2, 4, 8, 8), 2 * 4 * 4 * 9 * 8),
    "three dimensions": (lambda: nn.Conv3d(4, 6, 3), (2, 4, 4, 4, 4), 2 * 8 * 27 * 4 * 6),
}


@pytest.mark.parametrize("case", QUANTISED)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_quantised_layers_are_products_of_integers(case: str) -> None:
    make, sizes, expected = QUANTISED[case]
    record = estimate(quantised(make(), *sizes), numbers(*sizes))
    assert (record.mac, record.unknown) == (expected, ())
    assert sum(record.op().values()) >= 2 * expected
