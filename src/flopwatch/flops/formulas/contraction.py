"""Products of tensors with named dimensions (Einstein's sums), and the best order of a chain of matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from flopwatch.events import Array
from flopwatch.flops.formulas.work import Numbers, Work, total, work

Named = Mapping[str, int]


def contract(numbers: Numbers | Array, left: Named, right: Named, kept: set[str]) -> tuple[Work, Named]:
    """The product of two tensors, each a size by name of dimension, summed over all dimensions that are not `kept`.

    A dimension of size 1 stretches to the other's size. One that only one of both has and that is not kept is summed before.
    Then each combination of all dimensions is one multiply-accumulate; without a dimension to sum, one multiplication.
    Also gives what comes out.
    """
    sizes = {**right, **left, **{name: _both(left[name], right[name]) for name in left.keys() & right.keys()}}
    gone = sizes.keys() - kept
    works: list[Work] = []
    parts: list[dict[str, int]] = []
    for one, other in ((left, right), (right, left)):
        alone = {name for name in one.keys() & gone if one[name] != 1 and other.get(name, 1) == 1}
        rest = {name: size for name, size in one.items() if name not in alone}
        works.append(work(numbers, add=prod(one.values()) - prod(rest.values()) if prod(one.values()) else 0))
        parts.append(rest)
    summed = parts[0] | parts[1]
    combinations = prod(_both(parts[0].get(name, 1), parts[1].get(name, 1)) for name in summed)
    works.append(work(numbers, mac=combinations) if gone else work(numbers, mul=combinations))
    return total(works), {name: size for name, size in sizes.items() if name in kept}


def _both(one: int, other: int) -> int:
    """The size of a dimension that two tensors share: a 1 stretches, to nothing as well."""
    return one * other if 0 in (one, other) else max(one, other)


def einsum(
    numbers: Numbers | Array,
    equation: str,
    shapes: Sequence[Sequence[int]],
    path: Sequence[int] | None = None,
) -> Work:
    """Einstein's sum over any number of tensors: pairs from the left, or as `path` has it (positions, two by two).

    As numpy and PyTorch read an equation: `...` stands for leading dimensions that are broadcast; without `->` the result has
    the letters that occur once, in alphabetical order. A letter twice in one term takes a diagonal, which is free.
    ValueError where equation and shapes do not go together.
    """
    terms, result = _terms(equation, shapes)
    if len(terms) == 1:
        left = terms[0]
        rest = prod(size for name, size in left.items() if name in result)
        return work(numbers, add=prod(left.values()) - rest if prod(left.values()) else 0)
    works: list[Work] = []
    steps = list(path or ())
    while len(terms) > 1:
        one, other = sorted((steps.pop(0), steps.pop(0))) if path else (0, 1)
        right, left = terms.pop(other), terms.pop(one)
        done, made = contract(numbers, left, right, result.union(*terms))
        works.append(done)
        terms.insert(len(terms) if path else 0, dict(made))
    return total(works)


def _terms(equation: str, shapes: Sequence[Sequence[int]]) -> tuple[list[dict[str, int]], set[str]]:
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    subscripts = inputs.split(",")
    if len(subscripts) != len(shapes):
        raise ValueError(f"{equation!r} is not for {len(shapes)} tensors")
    terms: list[dict[str, int]] = []
    for subscript, shape in zip(subscripts, shapes, strict=True):
        before, dots, after = subscript.partition("...")
        spread = len(shape) - len(before) - len(after)
        if spread < 0 or (spread and not dots):
            raise ValueError(f"{subscript!r} of {equation!r} is not for {len(shape)} dimensions")
        # Dimensions under the dots are named by how far they stand from the last one.
        names = [*before, *(f".{spread - index}" for index in range(spread)), *after]
        term: dict[str, int] = {}
        for name, size in zip(names, shape, strict=True):
            term[name] = max(size, term.get(name, 1)) if size else 0
        terms.append(term)
    dotted = {name for term in terms for name in term if name[0] == "."}
    if arrow:
        return terms, {*output.replace("...", "")} | (dotted if "..." in output else set())
    letters = inputs.replace("...", "").replace(",", "")
    return terms, {letter for letter in letters if letters.count(letter) == 1} | dotted


def chain(numbers: Numbers | Array, sizes: Sequence[int]) -> Work:
    """A product of many matrices, the i-th of shape (sizes[i], sizes[i + 1]), in the order with the fewest multiply-accumulates.

    The textbook's dynamic programme (Cormen et al., Introduction to Algorithms, 14.2).
    """
    count = len(sizes) - 1
    best = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            best[first][last] = min(
                best[first][split] + best[split + 1][last] + sizes[first] * sizes[split + 1] * sizes[last + 1]
                for split in range(first, last)
            )
    return work(numbers, mac=best[0][-1] if count else 0)


def power_products(exponent: int) -> int:
    """How many products repeated squaring takes for a power, 0 for an exponent of 0 or 1."""
    return max(0, exponent.bit_length() - 1 + exponent.bit_count() - 1)
