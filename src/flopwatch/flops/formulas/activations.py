"""Functions of single numbers whose cost depends on the constants of the call; the uniform ones are `elementwise`.

`numbers` is what is computed on, `elements` how many values come out.
"""

from __future__ import annotations

from flopwatch.events import Array
from flopwatch.flops.formulas.elementwise import elementwise
from flopwatch.flops.formulas.work import Numbers, Work, work

On = Numbers | Array


def scaled_add(numbers: On, elements: int, alpha: complex = 1) -> Work:
    """x + alpha·y: an addition, and a product with alpha unless that is 1 or -1."""
    if alpha in (1, -1):
        return work(numbers, add=elements)
    return work(numbers, fma=elements)


def power(numbers: On, elements: int, exponent: complex | None) -> Work:
    """x to a power, None if each element has its own.

    0 and 1 compute nothing; 2 and 3 are one and two products, 0.5 a square root, negative ones of these a division more. Any
    other power is one function value, as it is for each element's own.
    """
    if exponent in (0, 1):
        return Work()
    inverse = elements if exponent in (-1, -2, -3, -0.5) else 0
    if exponent in (2, -2):
        return work(numbers, mul=elements, div=inverse)
    if exponent in (3, -3):
        return work(numbers, mul=2 * elements, div=inverse)
    if exponent in (0.5, -0.5):
        return work(numbers, sqrt=elements, div=inverse)
    if exponent == -1:
        return work(numbers, div=elements)
    return work(numbers, transcendental=elements)


def clamp(numbers: On, elements: int, *, low: bool, high: bool) -> Work:
    """min(max(x, low), high): a minmax for each bound that is given."""
    return work(numbers, minmax=(low + high) * elements)


def multiply_add(numbers: On, elements: int, value: complex = 1) -> Work:
    """z + value·x·y: a product and an addition, and a product with value unless that is 1 or -1."""
    return work(numbers, fma=elements, mul=0 if value in (1, -1) else elements)


def divide_add(numbers: On, elements: int, value: complex = 1) -> Work:
    """z + value·x/y: a division and an addition, and a product with value unless that is 1 or -1."""
    return work(numbers, div=elements, add=elements, mul=0 if value in (1, -1) else elements)


def absolute(numbers: Numbers, elements: int) -> Work:
    """|x|: a sign for real numbers, √(a² + b²) for complex ones."""
    return elementwise("hypot", Numbers(numbers.dtype), elements) if numbers.complex else Work()


def angle(numbers: Numbers, elements: int) -> Work:
    """The phase of x: a selection for real numbers, an arc tangent for complex ones."""
    return work(Numbers(numbers.dtype), transcendental=elements) if numbers.complex else Work()


def phase(numbers: Numbers, elements: int) -> Work:
    """x/|x|: a sign for real numbers, an absolute value and two quotients for complex ones."""
    if not numbers.complex:
        return Work()
    return absolute(numbers, elements) + work(Numbers(numbers.dtype), div=2 * elements)


def polar(numbers: On, elements: int) -> Work:
    """r·(cos φ + i sin φ), `numbers` those of r and φ: two function values and two products."""
    return work(numbers, transcendental=2 * elements, mul=2 * elements)


def multigamma_log(numbers: On, elements: int, order: int) -> Work:
    """Σ_j log Γ(x - j/2) for j < order, plus a constant: `order` function values and 2·order additions."""
    return work(numbers, transcendental=order * elements, add=2 * order * elements)


def rounded(numbers: On, elements: int, decimals: int = 0) -> Work:
    """Rounding to digits behind the point: scaled there and back; to whole numbers it is no arithmetic."""
    return work(numbers, mul=elements, div=elements) if decimals else Work()


def gelu(numbers: On, elements: int, *, tanh: bool = False) -> Work:
    """x·Φ(x), by the error function or by the approximation with tanh (arXiv:1606.08415)."""
    return elementwise("gelu_tanh" if tanh else "gelu", numbers, elements)


def gelu_backward(numbers: On, elements: int, *, tanh: bool = False) -> Work:
    """g·(Φ(x) + x·φ(x)), or the derivative of the approximation."""
    return elementwise("gelu_tanh_backward" if tanh else "gelu_backward", numbers, elements)


def elu(numbers: On, elements: int, *, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Work:
    """scale·x where x > 0, else scale·alpha·(exp(input_scale·x) - 1); ELU, SELU and CELU (input_scale = 1/alpha).

    One exponential less one as one function value; a product with scale·alpha, and one each with another scale than 1.
    """
    del alpha  # a product with 1 is made as well
    return elementwise("elu", numbers, elements) + work(numbers, mul=((scale != 1) + (input_scale != 1)) * elements)


def elu_backward(
    numbers: On, elements: int, *, scale: float = 1, input_scale: float = 1, from_result: bool = False
) -> Work:
    """The gradient g times scale, or where x ≤ 0 times scale·alpha·input_scale·exp(input_scale·x).

    Of the result r the latter is input_scale·(r + scale·alpha), without the exponential.
    """
    positive = elements if scale != 1 else 0
    if from_result:
        return work(numbers, add=elements, mul=elements + positive + (elements if input_scale != 1 else 0))
    scaled = elements if input_scale != 1 else 0
    return work(numbers, transcendental=elements, mul=2 * elements + positive + scaled)


def softplus(numbers: On, elements: int, *, beta: float = 1) -> Work:
    """log(1 + exp(beta·x))/beta: two function values; a product and a quotient with another beta than 1."""
    scaled = elements if beta != 1 else 0
    return elementwise("softplus", numbers, elements) + work(numbers, mul=scaled, div=scaled)


def softplus_backward(numbers: On, elements: int, *, beta: float = 1) -> Work:
    """g·e/(e + 1) with e = exp(beta·x)."""
    return elementwise("softplus_backward", numbers, elements) + work(numbers, mul=elements if beta != 1 else 0)


def logit(numbers: On, elements: int, *, clamped: bool = False) -> Work:
    """log(x/(1 - x)), x clamped to [eps, 1 - eps] if there is an eps."""
    return elementwise("logit", numbers, elements) + work(numbers, minmax=2 * elements if clamped else 0)


def dropout(numbers: On, elements: int, *, mask: int | None = None) -> Work:
    """x·(mask/(1 - p)) in training (arXiv:1207.0580): the mask scaled, a product; drawing it is free.

    `mask` is the number of its elements, if it is broadcast.
    """
    return work(numbers, div=elements if mask is None else mask, mul=elements)


def dropout_backward(numbers: On, elements: int) -> Work:
    """g times the scaled mask."""
    return work(numbers, mul=elements)
