"""Dense linear algebra: factorisations, solutions, inverses, determinants, eigenvalues and singular values.

Matrices are the last two dimensions, all others are a batch. Functions for eigenvalues or singular values alone (eigvals, eigvalsh,
svdvals) make the vectors as well wherever gradients or whoever follows PyTorch's operators may need them, and are counted so: only
the private operators are told that no vectors are wanted.
"""

from __future__ import annotations

from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, factorisations, formula, free, spectra, work
from flopwatch.flops.formulas.aten.arguments import first_of, result_of
from flopwatch.flops.formulas.work import Numbers, numbers_of


@formula("aten::linalg_cholesky_ex", "aten::linalg_cholesky")
def cholesky(op: Op) -> Work:
    """Cholesky factors; the other triangle is not read."""
    numbers, batch, _, n = _matrices(op.arguments["self"])
    return batch * factorisations.cholesky(numbers, n)


@formula("aten::cholesky_solve", "aten::_cholesky_solve_helper")
def cholesky_solve(op: Op) -> Work:
    """Solutions from the Cholesky factor `input2` (`A`)."""
    factor = op.arguments["input2"] if "input2" in op.arguments else op.arguments["A"]
    n = factor.shape[-1]
    return factorisations.cholesky_solve(numbers_of(factor), n, _columns(op, n))


@formula("aten::cholesky_inverse")
def cholesky_inverse(op: Op) -> Work:
    """Inverses from Cholesky factors."""
    numbers, batch, _, n = _matrices(op.arguments["self"])
    return batch * factorisations.cholesky_inverse(numbers, n)


@formula("aten::linalg_lu", "aten::linalg_lu_factor", "aten::linalg_lu_factor_ex", "aten::_lu_with_info")
def lu(op: Op) -> Work:
    """LU factors, with or without pivots."""
    numbers, batch, m, n = _matrices(_first(op))
    return batch * factorisations.lu(numbers, m, n)


@formula("aten::linalg_lu_solve", "aten::lu_solve")
def lu_solve(op: Op) -> Work:
    """Solutions from LU factors, from either side."""
    factor: Array = op.arguments["LU"] if "LU" in op.arguments else op.arguments["LU_data"]
    n = factor.shape[-1]
    return factorisations.lu_solve(numbers_of(factor), n, _columns(op, n))


@formula("aten::_linalg_solve_ex", "aten::linalg_solve_ex", "aten::linalg_solve")
def solve(op: Op) -> Work:
    """LU factors of `A`, and the solutions for the columns of `B`, which may be one vector for each matrix."""
    numbers, batch, _, n = _matrices(op.arguments["A"])
    return batch * factorisations.lu(numbers, n, n) + factorisations.lu_solve(numbers, n, _columns(op, n))


@formula("aten::linalg_inv_ex", "aten::linalg_inv", "aten::inverse")
def inverse(op: Op) -> Work:
    """Inverses by LU factors."""
    numbers, batch, _, n = _matrices(_first(op))
    return batch * factorisations.inverse(numbers, n)


@formula("aten::_linalg_det", "aten::linalg_det", "aten::det")
def determinant(op: Op) -> Work:
    """Determinants by LU factors."""
    numbers, batch, _, n = _matrices(_first(op))
    return batch * factorisations.determinant(numbers, n)


@formula("aten::_linalg_slogdet", "aten::linalg_slogdet", "aten::slogdet")
def log_determinant(op: Op) -> Work:
    """Signs and logarithms of determinants by LU factors."""
    numbers, batch, _, n = _matrices(_first(op))
    return batch * factorisations.log_determinant(numbers, n)


@formula("aten::linalg_solve_triangular")
def solve_triangular(op: Op) -> Work:
    """Solutions for a triangle, from either side."""
    n = op.arguments["self"].shape[-1]
    unit = bool(op.arguments.get("unitriangular"))
    return factorisations.triangular_solve(numbers_of(op.arguments["self"]), n, _columns(op, n), unit)


@formula("aten::triangular_solve")
def triangular_solve(op: Op) -> Work:
    """As `linalg_solve_triangular`; the triangle is the second argument, `A`."""
    n = op.arguments["A"].shape[-1]
    unit = bool(op.arguments.get("unitriangular"))
    return factorisations.triangular_solve(numbers_of(op.arguments["A"]), n, _columns(op, n), unit)


@formula("aten::linalg_ldl_factor_ex", "aten::linalg_ldl_factor")
def ldl(op: Op) -> Work:
    """LDL factors of symmetric or Hermitian matrices."""
    numbers, batch, _, n = _matrices(op.arguments["self"])
    return batch * factorisations.ldl(numbers, n)


@formula("aten::linalg_ldl_solve")
def ldl_solve(op: Op) -> Work:
    """Solutions from LDL factors."""
    n = op.arguments["LD"].shape[-1]
    return factorisations.ldl_solve(numbers_of(op.arguments["LD"]), n, _columns(op, n))


@formula("aten::geqrf")
def geqrf(op: Op) -> Work:
    """R, and the reflections that make Q."""
    numbers, batch, m, n = _matrices(op.arguments["self"])
    return batch * factorisations.qr(numbers, m, n)


@formula("aten::linalg_householder_product", "aten::orgqr")
def householder_product(op: Op) -> Work:
    """The first columns of the product of as many reflections as there are `tau`."""
    given: Array = _first(op)
    numbers, batch, m, n = _matrices(given)
    tau: Array = op.arguments["tau"] if "tau" in op.arguments else op.arguments["input2"]
    return batch * factorisations.q_of_qr(numbers, m, n, tau.shape[-1])


@formula("aten::ormqr")
def ormqr(op: Op) -> Work:
    """The product of reflections times `input3`, from the left or the right."""
    tau: Array = op.arguments["input2"]
    numbers, batch, rows, columns = _matrices(op.arguments["input3"])
    m, others = (rows, columns) if op.arguments.get("left", True) else (columns, rows)
    return batch * factorisations.q_times(numbers, m, others, tau.shape[-1])


@formula("aten::linalg_qr")
def qr(op: Op) -> Work:
    """R alone (mode "r"), and the columns of Q that are asked for: as many as the shorter side, or all ("complete")."""
    numbers, batch, m, n = _matrices(op.arguments["A"])
    mode, k = op.arguments.get("mode", "reduced"), min(m, n)
    found = factorisations.qr(numbers, m, n)
    if mode != "r":
        found += factorisations.q_of_qr(numbers, m, m if mode == "complete" else k, k)
    return batch * found


@formula("aten::linalg_lstsq")
def lstsq(op: Op) -> Work:
    """Least squares by QR ("gels", "gelsy", whose pivoting of columns is not counted) or by singular values ("gelsd", "gelss")."""
    numbers, batch, m, n = _matrices(op.arguments["self"])
    right: Array = op.arguments["b"]
    vectors = len(right.shape) == 1 or right.shape == op.arguments["self"].shape[:-1]
    columns = 1 if vectors else right.shape[-1]
    by_values = op.arguments.get("driver") in ("gelsd", "gelss")
    solved = spectra.least_squares if by_values else factorisations.least_squares
    return batch * solved(numbers, m, n, columns)


@formula("aten::linalg_pinv", "aten::pinverse")
def pinv(op: Op) -> Work:
    """Pseudoinverses by singular values; conventional."""
    numbers, batch, m, n = _matrices(op.arguments["self"])
    return batch * spectra.pseudoinverse(numbers, m, n, bool(op.arguments.get("hermitian")))


@formula("aten::_linalg_eigh", "aten::linalg_eigh")
def eigh(op: Op) -> Work:
    """Eigenvalues, and vectors where they are asked for, of symmetric or Hermitian matrices; conventional."""
    numbers, batch, _, n = _matrices(_first(op))
    return batch * spectra.symmetric_eigenvalues(numbers, n, op.arguments.get("compute_v", True))


@formula("aten::linalg_eig", "aten::linalg_eigvals")
def eig(op: Op) -> Work:
    """Eigenvalues and right vectors, also of `linalg_eigvals` (see above); conventional. Real matrices stay in real numbers."""
    numbers, batch, _, n = _matrices(op.arguments["self"])
    return batch * spectra.eigenvalues(numbers, n, True)


@formula("aten::_linalg_eigvals")
def eigvals(op: Op) -> Work:
    """Eigenvalues; conventional."""
    numbers, batch, _, n = _matrices(op.arguments["self"])
    return batch * spectra.eigenvalues(numbers, n, False)


@formula("aten::_linalg_svd", "aten::linalg_svd", "prims::svd")
def svd(op: Op) -> Work:
    """Singular values, and vectors unless `compute_uv` is off; conventional."""
    numbers, batch, m, n = _matrices(op.arguments["A"])
    # The private one makes as many vectors as singular values by default, the public one all of them.
    full = op.arguments.get("full_matrices", op.name == "aten::linalg_svd")
    return batch * spectra.singular_values(numbers, m, n, op.arguments.get("compute_uv", True), full)


@formula("aten::trace")
def trace(op: Op) -> Work:
    """The sum of the diagonal."""
    given: Array = op.arguments["self"]
    return work(given, add=max(min(given.shape) - 1, 0))


@formula("aten::linalg_cross", "aten::cross")
def cross(op: Op) -> Work:
    """Three times a b - c d for each pair of vectors."""
    made = result_of(op)
    return work(made, mul=made.size, fma=made.size)


free("moves data only", "aten::lu_unpack", "aten::linalg_diagonal")


def _first(op: Op) -> Array:
    """The matrix, whatever this operator calls it."""
    found: Array = first_of(op.arguments, "A", "self", "input")
    return found


def _matrices(array: Array) -> tuple[Numbers, int, int, int]:
    """Numbers, how many matrices, rows, columns."""
    *batch, rows, columns = array.shape
    return numbers_of(array), prod(batch), rows, columns


def _columns(op: Op, n: int) -> int:
    """Right hand sides of n numbers each, over the whole batch, broadcast: those of the solution."""
    made = result_of(op)
    return made.size // n if n else 0
