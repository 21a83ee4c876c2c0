"""Linear algebra: each factorisation written out as loops over numbers that count, checked against numpy, and by hand."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import estimate, factorisations
from flopwatch.flops.formulas.work import Work
from tests.unit.flops.formulas.counting import Counting, Number, added, log, operations, sqrt
from tests.unit.flops.formulas.numerics import COMPLEX, SINGLE, counted, flop, values, worth

sizes = st.integers(1, 7)
N, COLUMNS, BATCH = 5, 3, 2
SQUARE = Array((BATCH, N, N))
RIGHT = Array((BATCH, N, COLUMNS))


def matrix(m: int, n: int) -> Any:
    """A matrix far from singular."""
    return np.random.default_rng(m * 100 + n).standard_normal((m, n)) + 3 * np.eye(m, n)


def taken(start: Number, products: Any) -> Number:
    """A number, less products: a multiply-add each."""
    for one, other in products:
        start = start - one * other
    return start


def cholesky(a: Any) -> Any:
    n = len(a)
    low = np.full((n, n), 0.0, dtype=object)
    for j in range(n):
        low[j, j] = sqrt(taken(a[j, j], ((low[j, k], low[j, k]) for k in range(j))))
        for i in range(j + 1, n):
            low[i, j] = taken(a[i, j], ((low[i, k], low[j, k]) for k in range(j))) / low[j, j]
    return low


def lu(a: Any) -> Any:
    a = a.copy()
    m, n = a.shape
    for k in range(min(m, n)):
        for i in range(k + 1, m):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a


def ldl(a: Any) -> Any:
    a = a.copy()
    n = len(a)
    for k in range(n):
        column = [a[i, k] for i in range(n)]
        for j in range(k + 1, n):
            a[j, k] = column[j] / a[k, k]
            for i in range(j, n):
                a[i, j] = a[i, j] - column[i] * a[j, k]
    return a


def low_solve(low: Any, b: Any, unit: bool = False) -> Any:
    n, columns = b.shape
    x = b.copy()
    for c in range(columns):
        for i in range(n):
            value = taken(b[i, c], ((low[i, k], x[k, c]) for k in range(i)))
            x[i, c] = value if unit else value / low[i, i]
    return x


def up_solve(up: Any, b: Any) -> Any:
    return low_solve(up[::-1, ::-1], b[::-1])[::-1]


def up_inverse(up: Any) -> Any:
    n = len(up)
    x = np.full((n, n), 0.0, dtype=object)
    for j in range(n):
        x[j, j] = 1 / up[j, j]
    for j in range(n):
        for i in reversed(range(j)):
            x[i, j] = -(added(up[i, k] * x[k, j] for k in range(i + 1, j + 1)) * x[i, i])
    return x


def reflect(v: Any, tau: Number, columns: Any) -> None:
    """I - τ v vᵀ; the first number of v is a plain 1."""
    for c in range(columns.shape[1]):
        dot = columns[0, c]
        for i in range(1, len(v)):
            dot = dot + v[i] * columns[i, c]
        dot = tau * dot
        columns[0, c] = columns[0, c] - dot
        for i in range(1, len(v)):
            columns[i, c] = columns[i, c] - v[i] * dot


def qr(a: Any) -> tuple[Any, list[tuple[Any, Number]]]:
    a = a.copy()
    m, n = a.shape
    reflections = []
    for k in range(max(min(m - 1, n), 0)):
        x = a[k:, k]
        length = sqrt(added(each * each for each in x))
        beta = -length if x[0] > 0 else length
        below = x[0] - beta
        tau = -(below / beta)
        v = np.array([1.0, *(each / below for each in x[1:])], dtype=object)
        a[k, k], a[k + 1 :, k] = beta, 0.0
        reflect(v, tau, a[k:, k + 1 :])
        reflections.append((v, tau))
    return a, reflections


def q_of(reflections: list[tuple[Any, Number]], m: int, n: int, seen: Counting) -> Any:
    q = counted(seen, np.eye(m, n))
    for k, (v, tau) in reversed(list(enumerate(reflections))):
        reflect(v, tau, q[k:, k + 1 :])
        q[k, k] = 1 - tau
        for i in range(1, len(v)):
            q[k + i, k] = -(tau * v[i])
    return q


@given(sizes)
def test_cholesky(n: int) -> None:
    seen = Counting()
    a = matrix(n, n) @ matrix(n, n).T
    assert np.allclose(values(cholesky(counted(seen, a))), np.linalg.cholesky(a))
    assert operations(factorisations.cholesky(SINGLE, n)) == +seen.operations


@given(sizes, sizes)
def test_lu(m: int, n: int) -> None:
    seen = Counting()
    a = matrix(m, n)
    found, k = values(lu(counted(seen, a))), min(m, n)
    assert np.allclose((np.tril(found, -1)[:, :k] + np.eye(m, k)) @ np.triu(found)[:k], a)
    assert operations(factorisations.lu(SINGLE, m, n)) == +seen.operations


@given(sizes)
def test_ldl(n: int) -> None:
    seen = Counting()
    a = matrix(n, n) @ matrix(n, n).T
    found = values(ldl(counted(seen, a)))
    low = np.tril(found, -1) + np.eye(n)
    assert np.allclose(low @ np.diag(np.diag(found)) @ low.T, a)
    assert operations(factorisations.ldl(SINGLE, n)) == +seen.operations


@given(sizes, sizes)
def test_solutions(n: int, columns: int) -> None:
    a, b = matrix(n, n) @ matrix(n, n).T, matrix(n, columns)
    seen = Counting()
    low, right = counted(seen, np.linalg.cholesky(a)), counted(seen, b)
    assert np.allclose(values(up_solve(low.T, low_solve(low, right))), np.linalg.solve(a, b))
    assert operations(factorisations.cholesky_solve(SINGLE, n, columns)) == +seen.operations
    seen = Counting()
    both, right = counted(seen, values(lu(counted(Counting(), a)))), counted(seen, b)
    assert np.allclose(values(up_solve(both, low_solve(both, right, unit=True))), np.linalg.solve(a, b))
    assert operations(factorisations.lu_solve(SINGLE, n, columns)) == +seen.operations
    seen = Counting()
    both, right = counted(seen, values(ldl(counted(Counting(), a)))), counted(seen, b)
    middle = low_solve(both, right, unit=True) / np.diag(both)[:, None]
    assert np.allclose(values(low_solve(both.T[::-1, ::-1], middle[::-1], unit=True)[::-1]), np.linalg.solve(a, b))
    assert operations(factorisations.ldl_solve(SINGLE, n, columns)) == +seen.operations


@pytest.mark.parametrize("unit", [False, True])
def test_a_triangle_with_ones_is_not_divided_by(unit: bool) -> None:
    seen = Counting()
    low_solve(counted(seen, np.tril(matrix(N, N))), counted(seen, matrix(N, COLUMNS)), unit)
    assert operations(factorisations.triangular_solve(SINGLE, N, COLUMNS, unit)) == +seen.operations


@given(sizes)
def test_inverses(n: int) -> None:
    a = matrix(n, n) @ matrix(n, n).T
    seen = Counting()
    both = lu(counted(seen, a))
    x = up_inverse(both)
    for i in range(n):
        for j in reversed(range(n)):
            for k in range(j + 1, n):
                x[i, j] = x[i, j] - x[i, k] * both[k, j]
    assert np.allclose(values(x), np.linalg.inv(a))
    assert operations(factorisations.inverse(SINGLE, n)) == +seen.operations
    seen = Counting()
    up = up_inverse(counted(seen, np.linalg.cholesky(a).T))
    for i in range(n):
        for j in range(i, n):
            up[i, j] = added(up[i, k] * up[j, k] for k in range(j, n))
    assert np.allclose(np.triu(values(up)), np.triu(np.linalg.inv(a)))
    assert operations(factorisations.cholesky_inverse(SINGLE, n)) == +seen.operations


@given(sizes)
def test_determinants(n: int) -> None:
    seen = Counting()
    a = matrix(n, n)
    product, *rest = np.diag(lu(counted(seen, a)))
    for each in rest:
        product = product * each
    assert np.isclose(float(product), np.linalg.det(a))
    assert operations(factorisations.determinant(SINGLE, n)) == +seen.operations
    seen.operations.clear()
    logarithm = added(log(abs(each)) for each in np.diag(lu(counted(seen, a))))
    assert np.isclose(float(logarithm), np.linalg.slogdet(a)[1])
    assert operations(factorisations.log_determinant(SINGLE, n)) == +seen.operations


@given(sizes, sizes)
def test_least_squares(m: int, n: int) -> None:
    seen = Counting()
    a = matrix(max(m, n), min(m, n))
    r, reflections = qr(counted(seen, a))
    right = counted(seen, matrix(len(a), COLUMNS))
    for index, (v, tau) in enumerate(reflections):
        reflect(v, tau, right[index:])
    short = a.shape[1]
    x = values(up_solve(r[:short], right[:short]))
    assert np.allclose(x, np.linalg.lstsq(a, matrix(len(a), COLUMNS), rcond=None)[0])
    assert operations(factorisations.least_squares(SINGLE, m, n, COLUMNS)) == +seen.operations


@settings(deadline=None)
@given(sizes, sizes)
def test_qr(m: int, n: int) -> None:
    seen = Counting()
    a = matrix(m, n)
    r, reflections = qr(counted(seen, a))
    assert operations(factorisations.qr(SINGLE, m, n)) == +seen.operations
    k = len(reflections)
    seen.operations.clear()
    q = q_of(reflections, m, m, seen)
    assert operations(factorisations.q_of_qr(SINGLE, m, m, k)) == +seen.operations
    assert np.allclose(values(q) @ values(r), a)
    seen.operations.clear()
    right = counted(seen, matrix(m, COLUMNS))
    for index, (v, tau) in enumerate(reflections):
        reflect(v, tau, right[index:])
    assert np.allclose(values(right), values(q).T @ matrix(m, COLUMNS))
    assert operations(factorisations.q_times(SINGLE, m, COLUMNS, k)) == +seen.operations


def test_leading_terms_are_the_ones_of_the_books() -> None:
    n = 3000
    m = 2 * n
    books = [
        (factorisations.cholesky(SINGLE, n), n**3 / 3),
        (factorisations.lu(SINGLE, n, n), 2 * n**3 / 3),
        (factorisations.inverse(SINGLE, n), 2 * n**3),
        (factorisations.cholesky_inverse(SINGLE, n), 2 * n**3 / 3),
        (factorisations.qr(SINGLE, m, n), 2 * m * n**2 - 2 * n**3 / 3),
        (factorisations.q_of_qr(SINGLE, m, n, n), 4 * m * n * n - 2 * (m + n) * n**2 + 4 * n**3 / 3),
        (factorisations.q_times(SINGLE, m, 1, n), 4 * m * n - 2 * n**2),
        (factorisations.lu_solve(SINGLE, n, 1), 2 * n**2),
    ]
    for work, expected in books:
        assert 0.999 < flop(work) / expected < 1.001


# Solving is LU, and both triangles for each column.
LU = BATCH * factorisations.lu(SINGLE, N, N)
CALLS: dict[str, tuple[Work, dict[str, Any], Array]] = {
    "linalg_cholesky_ex": (BATCH * factorisations.cholesky(SINGLE, N), {"self": SQUARE}, SQUARE),
    "cholesky_solve": (
        factorisations.cholesky_solve(SINGLE, N, BATCH * COLUMNS),
        {"self": RIGHT, "input2": SQUARE},
        RIGHT,
    ),
    "cholesky_inverse": (BATCH * factorisations.cholesky_inverse(SINGLE, N), {"self": SQUARE}, SQUARE),
    "linalg_lu_factor_ex": (LU, {"A": SQUARE}, SQUARE),
    "_linalg_solve_ex": (
        LU + factorisations.lu_solve(SINGLE, N, BATCH * COLUMNS),
        {"A": SQUARE, "B": RIGHT, "left": True},
        RIGHT,
    ),
    "linalg_solve": (
        LU + factorisations.lu_solve(SINGLE, N, BATCH),
        {"A": SQUARE, "B": Array((BATCH, N))},
        Array((BATCH, N)),
    ),
    "linalg_inv_ex": (BATCH * factorisations.inverse(SINGLE, N), {"A": SQUARE}, SQUARE),
    "inverse": (BATCH * factorisations.inverse(SINGLE, N), {"self": SQUARE}, SQUARE),
    "_linalg_det": (BATCH * factorisations.determinant(SINGLE, N), {"A": SQUARE}, Array((BATCH,))),
    "linalg_solve_triangular": (
        factorisations.triangular_solve(SINGLE, N, BATCH * COLUMNS),
        {"self": SQUARE, "B": RIGHT, "upper": True, "left": True, "unitriangular": False},
        RIGHT,
    ),
    "geqrf": (BATCH * factorisations.qr(SINGLE, N, COLUMNS), {"self": RIGHT}, RIGHT),
    "linalg_householder_product": (
        BATCH * factorisations.q_of_qr(SINGLE, N, COLUMNS, COLUMNS),
        {"input": RIGHT, "tau": Array((BATCH, COLUMNS))},
        RIGHT,
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_batches_multiply(name: str) -> None:
    expected, arguments, made = CALLS[name]
    found = worth(f"aten::{name}", made, **arguments)
    assert (found, found.mac) == (expected, 0)


def test_a_broadcast_right_hand_side_is_factored_once_and_solved_as_often_as_it_comes_out() -> None:
    found = worth("aten::_linalg_solve_ex", RIGHT, A=Array((N, N)), B=RIGHT, left=True)
    assert found == factorisations.lu(SINGLE, N, N) + factorisations.lu_solve(SINGLE, N, BATCH * COLUMNS)


def test_how_much_of_q_is_made_is_up_to_the_mode() -> None:
    r_only = factorisations.qr(SINGLE, N, COLUMNS)
    for mode, columns in (("reduced", COLUMNS), ("complete", N)):
        found = worth("aten::linalg_qr", RIGHT, A=RIGHT, mode=mode)
        assert found == BATCH * (r_only + factorisations.q_of_qr(SINGLE, N, columns, COLUMNS))
    assert worth("aten::linalg_qr", None, A=RIGHT, mode="r") == BATCH * r_only


def test_reflections_come_from_either_side() -> None:
    tau, many = Array((N,)), Array((N, COLUMNS))
    left = worth("aten::ormqr", many, self=Array((N, N)), input2=tau, input3=many, left=True)
    right = worth("aten::ormqr", many, self=Array((N, N)), input2=tau, input3=Array((COLUMNS, N)), left=False)
    assert left == right == factorisations.q_times(SINGLE, N, COLUMNS, N)


def test_complex_numbers_take_complex_operations() -> None:
    real = operations(factorisations.lu(SINGLE, N, N))
    found = worth("aten::linalg_lu", SQUARE, A=Array((N, N), "complex64"), pivot=True)
    assert found == factorisations.lu(COMPLEX, N, N)
    products = N * (N - 1) * (2 * N - 1) // 6
    quotients = N * (N - 1) // 2
    assert sum(real.values()) == 2 * products + quotients
    # A product added: four of each. A quotient: a product and two divisions.
    assert flop(found) == 8 * products + (6 + 2) * quotients


@pytest.mark.parametrize(
    ("order", "each"),
    [(2.0, 2 * N), (None, 2 * N), (1, N - 1), (0, N - 1), (inf, N - 1), (-inf, N - 1), (3, N - 1)],
)
def test_norms(order: float | None, each: int) -> None:
    functions = N + 1 if order == 3 else 0
    found = worth("aten::linalg_vector_norm", Array((BATCH, N)), self=SQUARE, ord=order, dim=[-1])
    assert flop(found) == BATCH * N * (each + functions)


def test_the_length_of_complex_numbers_is_that_of_their_parts() -> None:
    found = worth("aten::linalg_vector_norm", Array(()), self=Array((N,), "complex64"), ord=2)
    assert flop(found) == 2 * (2 * N)
    # One: each modulus is two squares, a sum and a root.
    assert flop(worth("aten::norm", Array(()), self=Array((N,), "complex64"), p=1)) == 4 * N + N - 1


def test_shortened_rows_are_all_multiplied() -> None:
    rows = Array((BATCH, N))
    found = worth("aten::renorm_", rows, self=rows, p=2, dim=0, maxnorm=1.0)
    assert flop(found) == BATCH * (2 * N + 2 + N)
    row = worth("aten::embedding_renorm_", rows, self=rows, indices=Array((1,), "int64"), max_norm=1.0, norm_type=2.0)
    assert flop(row) == 2 * N + 2 + N


CONVENTIONAL = {
    "eigenvalues of symmetric matrices": ("_linalg_eigh", {"compute_v": False}, 4 * 6**3 // 3),
    "with vectors": ("_linalg_eigh", {"compute_v": True}, 9 * 6**3),
    "eigenvalues": ("_linalg_eigvals", {}, 10 * 6**3),
    "with right vectors": ("linalg_eig", {}, 79 * 6**3 // 3),
    "singular values": ("_linalg_svd", {"compute_uv": False}, 8 * 6**3 // 3),
    "with both sides": ("_linalg_svd", {"compute_uv": True}, 22 * 6**3),
}


@pytest.mark.parametrize("case", CONVENTIONAL)
def test_spectra_take_the_conventional_counts(case: str) -> None:
    name, options, expected = CONVENTIONAL[case]
    square = Array((BATCH, 6, 6))
    found = worth(f"aten::{name}", square, self=square, A=square, **options)
    assert (flop(found), found.mac) == (BATCH * expected, 0)


def test_a_tall_matrix_is_made_a_triangle_first() -> None:
    m, n = 40, 4
    tall = Array((m, n))
    assert flop(worth("aten::linalg_svdvals", Array((n,)), A=tall)) == 2 * m * n**2 + 2 * n**3
    assert flop(worth("aten::_linalg_svd", tall, A=tall)) == 6 * m * n**2 + 20 * n**3
    wide = worth("aten::linalg_svd", tall, A=Array((n, m)), full_matrices=True)
    assert flop(wide) == 4 * m**2 * n + min(8 * m * n**2 + 9 * n**3, 22 * n**3)


def test_no_rows_take_nothing() -> None:
    empty = Array((BATCH, 0, 0))
    for name in ("linalg_cholesky_ex", "_linalg_det", "linalg_inv_ex", "_linalg_eigh", "_linalg_svd", "linalg_qr"):
        assert worth(f"aten::{name}", empty, self=empty, A=empty).tally == {}
    assert worth("aten::_linalg_solve_ex", empty, A=empty, B=Array((BATCH, 0, 3))).tally == {}


def test_what_depends_on_the_size_of_the_numbers_is_unknown() -> None:
    assert estimate(Op("aten::linalg_matrix_exp", {"self": SQUARE}, (SQUARE,))) == Unknown("aten::linalg_matrix_exp")
