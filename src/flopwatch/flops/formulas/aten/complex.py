"""Complex numbers: their parts, moduli and angles."""

from __future__ import annotations

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free
from flopwatch.flops.formulas import Work, formula, free, work
from flopwatch.flops.formulas.work import Numbers, numbers_of

free(
    "looks at data in another way",
    "aten::view_as_real",
    "aten::view_as_complex",
    "aten::real",
    "aten::imag",
    "aten::conj",
    "aten::_conj",
    "aten::_neg_view",
    moves=False,
)
free(
    "moves data and flips signs",
    "aten::complex",
    "aten::conj_physical",
    "aten::_conj_physical",
    "aten::resolve_conj",
    "aten::resolve_neg",
    "aten::_conj_copy",
    "aten::_neg_view_copy",
    "aten::view_as_real_copy",
    "aten::view_as_complex_copy",
)


@formula("aten::polar")
def polar(op: Op) -> Work:
    """r cos φ + i r sin φ: two function values, two products."""
    made = op.outputs[0]
    assert made is not None
    return work(Numbers(numbers_of(made).dtype), transcendental=2 * made.size, mul=2 * made.size)


@formula("aten::angle")
def angle(op: Op) -> Work | Free:
    """The arc tangent of the parts; of a real number, its sign decides."""
    given: Array = op.arguments["self"]
    numbers = numbers_of(given)
    if not numbers.complex:
        return Free("compares only")
    return work(Numbers(numbers.dtype), transcendental=given.size)


@formula("aten::abs", "aten::absolute")
def modulus(op: Op) -> Work | Free:
    """√(x² + y²): a product, a multiply-add, a root; of a real number, a bit is cleared."""
    given: Array = op.arguments["self"]
    numbers = numbers_of(given)
    if not numbers.complex:
        return Free("clears a bit")
    n = given.size
    return work(Numbers(numbers.dtype), mul=n, fma=n, sqrt=n)


@formula("aten::sgn")
def direction(op: Op) -> Work | Free:
    """z / |z|: the modulus, and two quotients; of a real number, its sign."""
    given: Array = op.arguments["self"]
    found = modulus(op)
    if isinstance(found, Free):
        return Free("compares only")
    return found + work(Numbers(numbers_of(given).dtype), div=2 * given.size)
