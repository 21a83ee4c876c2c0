"""Einstein's sums, chains of matrices and distances, by loops over numbers that count and by hand."""

from __future__ import annotations

from itertools import combinations, product
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Numbers, Work, estimate
from flopwatch.flops.formulas.contraction import chain, einsum, power_products
from flopwatch.flops.formulas.distances import distances, distances_backward
from flopwatch.flops.operations import DType, Operation
from tests.unit.flops.formulas.counting import Counting, accumulated, added, largest, operations

FP32 = Numbers(DType.FP32)


def worth(name: str, **arguments: Any) -> Work:
    found = estimate(Op(name, arguments))
    assert isinstance(found, Work)
    return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_pair_of_tensors_is_what_its_loops_do(data: st.DataObject) -> None:
    sizes = {name: data.draw(st.integers(1, 3)) for name in "abcde"}
    left, right = (data.draw(st.sets(st.sampled_from("abcde"), min_size=1)) for _ in range(2))
    kept = data.draw(st.sets(st.sampled_from(sorted(left | right))))
    # Dimensions that only one of both has and that are not kept are summed before: another count, and another test.
    left, right = (side - ((left ^ right) - kept) for side in (left, right))
    if not left or not right:
        return
    seen = Counting()
    one, other = (
        seen.numbers(*(sizes[name] for name in sorted(left))),
        seen.numbers(*(sizes[name] for name in sorted(right))),
    )
    names, gone = sorted(kept & (left | right)), sorted((left & right) - kept)
    for outer in product(*(range(sizes[name]) for name in names)):
        at = dict(zip(names, outer, strict=True))
        terms = []
        for inner in product(*(range(sizes[name]) for name in gone)):
            at |= dict(zip(gone, inner, strict=True))
            terms.append(
                one[tuple(at[name] for name in sorted(left))] * other[tuple(at[name] for name in sorted(right))]
            )
        accumulated(terms) if gone else added(terms)
    equation = f"{''.join(sorted(left))},{''.join(sorted(right))}->{''.join(names)}"
    shapes = [[sizes[name] for name in sorted(side)] for side in (left, right)]
    found = einsum(FP32, equation, shapes)
    assert operations(found) == +seen.operations
    assert found.mac == (seen.operations[Operation.MUL] if gone else 0)


def test_odd_sizes_are_exact() -> None:
    shape = (3, 7, 129, 33)
    assert einsum(FP32, "bhid,bhjd->bhij", [shape, shape]).mac == 3 * 7 * 129 * 129 * 33 == 11_532_213


def test_what_one_tensor_has_alone_is_summed_before() -> None:
    rows, inner, columns, alone = 2, 3, 5, 7
    found = einsum(FP32, "ija,jk->ik", [(rows, inner, alone), (inner, columns)])
    assert found.mac == rows * inner * columns
    assert operations(found)[Operation.ADD] == found.mac + rows * inner * (alone - 1)


def test_a_path_says_which_pair_comes_first() -> None:
    shapes = [(2, 30), (30, 3), (3, 40)]
    assert einsum(FP32, "ij,jk,kl->il", shapes).mac == 2 * 30 * 3 + 2 * 3 * 40
    assert einsum(FP32, "ij,jk,kl->il", shapes, [1, 2, 0, 1]).mac == 30 * 3 * 40 + 2 * 30 * 40


@pytest.mark.parametrize(
    ("equation", "shapes"), [("ij,jk", [(2, 3)]), ("ij,jk", [(2, 3, 4), (3, 4)]), ("ijk...,k", [(2, 3), (4,)])]
)
def test_an_equation_for_other_tensors(equation: str, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match="is not for"):
        einsum(FP32, equation, shapes)


def cheapest(sizes: list[int]) -> int:
    """The least number of products, by trying all orders."""
    if len(sizes) < 3:
        return 0
    return min(
        cheapest(sizes[: cut + 1]) + cheapest(sizes[cut:]) + sizes[0] * sizes[cut] * sizes[-1]
        for cut in range(1, len(sizes) - 1)
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=6))
def test_a_chain_takes_the_cheapest_order(sizes: list[int]) -> None:
    assert chain(FP32, sizes).mac == cheapest(sizes)


def test_a_chain_may_begin_and_end_with_vectors() -> None:
    assert worth("aten::linalg_multi_dot", tensors=[Array((3,)), Array((3, 4)), Array((4,))]).mac == min(
        3 * 4 + 4, 3 * 4 + 3
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 200))
def test_powers_by_squaring(exponent: int) -> None:
    done, power, result = 0, 1, None
    for bit in f"{exponent:b}"[::-1]:
        if bit == "1":
            done += result is not None
            result = (result or 0) + power
        power, done = 2 * power, done + 1
    assert result == exponent
    assert power_products(exponent) == done - 1  # the last square is of no use


def test_a_negative_power_has_an_inverse_in_it() -> None:
    def power(exponent: int, *sizes: int) -> Any:
        return estimate(Op("aten::linalg_matrix_power", {"self": Array(sizes), "n": exponent}))

    inverse = estimate(Op("aten::linalg_inv_ex", {"A": Array((2, 3, 3))}))
    assert power(-1, 2, 3, 3) == inverse
    assert power(-3, 2, 3, 3) == inverse + power(3, 2, 3, 3)
    assert power(3, 2, 3, 3).mac == 2 * 2 * 3 * 3 * 3


def distance(a: Any, b: Any, power: float) -> Any:
    apart = [x - y for x, y in zip(a, b, strict=True)] if power else []
    if power == 0:
        return added(list(a))
    if power == 1:
        return added(apart)
    if power == 2:
        return added([each * each for each in apart]).sqrt()  # type: ignore[union-attr]
    if power == inf:
        return largest(apart)
    return added([each**power for each in apart]) ** (1 / power)


@pytest.mark.parametrize("power", [0, 1, 2, 3.5, inf])
def test_distances_are_what_their_loops_do(power: float) -> None:
    seen = Counting()
    left, right = seen.numbers(3, 4), seen.numbers(2, 4)
    for a, b in product(left, right):
        distance(a, b, power)
    found = worth("aten::_cdist_forward", x1=Array((3, 4)), x2=Array((2, 4)), p=power)
    assert operations(found) == +seen.operations
    pairs = Counting()
    for a, b in combinations(pairs.numbers(4, 4), 2):
        distance(a, b, power)
    assert operations(worth("aten::_pdist_forward", self=Array((4, 4)), p=power)) == +pairs.operations
    assert found == distances(FP32, 3 * 2, 4, power)


@pytest.mark.parametrize("power", [0, 1, 2, 3.5, inf])
def test_gradients_of_distances_are_what_their_loops_do(power: float) -> None:
    seen = Counting()
    left, right = seen.numbers(3, 4), seen.numbers(2, 4)
    for a in left if power else ():
        terms: list[list[Any]] = [[] for _ in a]
        for b in right:
            gradient, apart = seen.number(), seen.number(2.0)
            share = gradient
            if power == 2:
                share = gradient / apart
            elif power not in (1, inf):
                share = gradient / apart ** (power - 1)
            for place, (x, y) in enumerate(zip(a, b, strict=True)):
                difference = x - y
                if power in (1, inf):
                    terms[place].append(share)  # with the sign of the difference
                elif power == 2:
                    terms[place].append(difference * share)
                else:
                    terms[place].append(difference * (abs(difference) ** (power - 2)) * share)
        for each in terms:
            added(each)
    assert operations(distances_backward(FP32, 3 * 2, 3, 4, power)) == +seen.operations
    given_ = {
        "grad_output": Array((3, 2)),
        "x1": Array((3, 4)),
        "x2": Array((2, 4)),
        "p": power,
        "cdist": Array((3, 2)),
    }
    assert worth("aten::_cdist_backward", **given_) == distances_backward(FP32, 3 * 2, 3, 4, power)


def test_distances_cost_the_same_however_they_are_expanded() -> None:
    left, right = Array((2, 3, 4)), Array((5, 4))
    assert worth("aten::_euclidean_dist", x1=left, x2=right) == worth("aten::_cdist_forward", x1=left, x2=right, p=2.0)


def test_products_over_named_dimensions() -> None:
    left, right = Array((2, 3, 4)), Array((4, 3, 5))
    found = worth("aten::tensordot", self=left, other=right, dims_self=[1, 2], dims_other=[1, 0])
    assert found.mac == 2 * 3 * 4 * 5
    assert worth("aten::kron", self=Array((2, 3)), other=Array((4, 5))).mac == 0
    assert worth("aten::inner", self=Array((2, 3)), other=Array((5, 3))).mac == 2 * 5 * 3
    assert worth("aten::linalg_vecdot", x=Array((2, 3)), y=Array((3,)), dim=-1).mac == 2 * 3


def test_a_bilinear_layer() -> None:
    positions, one, other, outputs = 7, 3, 4, 5
    whole = worth(
        "aten::bilinear",
        input1=Array((positions, one)),
        input2=Array((positions, other)),
        weight=Array((outputs, one, other)),
    )
    assert whole.mac == positions * outputs * (one * other + other)
    parts = worth(
        "aten::_trilinear",
        i1=Array((positions, one)), i2=Array((outputs, one, other)), i3=Array((positions, other)),
        expand1=[1, 3], expand2=[0], expand3=[1, 2], sumdim=[2, 3],
    )  # fmt: skip
    assert parts == whole
