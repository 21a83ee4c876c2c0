"""The primitive operators that PyTorch's compiler takes others apart into: the same functions, some under names of their own.

Their reductions are bound in `reductions`.
"""

from __future__ import annotations

from flopwatch.flops.formulas.aten import pointwise
from flopwatch.flops.formulas.elementwise import functions
from flopwatch.flops.formulas.registry import formula

# By the name that the table of functions has for each.
_ELEMENTWISE = {
    "mul": "mul",
    "div": "div reciprocal",
    "remainder": "remainder fmod",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "hypot": "hypot",
    "maximum": "maximum minimum fmax fmin",
    "transcendental": """
        exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh erf erfc erf_inv
        erfcx ndtri lgamma digamma igamma igammac zeta cbrt bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1
        spherical_bessel_j0
    """,
}
for _name, _operators in _ELEMENTWISE.items():
    formula(*(f"prims::{name}" for name in _operators.split()))(pointwise.of_table(functions()[_name]))

formula("prims::add", "prims::sub")(pointwise.add)
formula("prims::pow")(pointwise.power)
formula("prims::abs")(pointwise.absolute)
formula("prims::sign")(pointwise.phase)
