"""Calls of linear algebra: batches, sides, modes, norms, and what is counted by convention."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import estimate, factorisations
from flopwatch.flops.formulas.work import Work
from tests.unit.flops.formulas.counting import Counting, larger, operations
from tests.unit.flops.formulas.numerics import COMPLEX, SINGLE, flop, weighted, worth

N, COLUMNS, BATCH = 5, 3, 2
SQUARE = Array((BATCH, N, N))
RIGHT = Array((BATCH, N, COLUMNS))

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
    assert flop(worth("aten::_linalg_svd", Array((n,)), A=tall, compute_uv=False)) == 2 * m * n**2 + 2 * n**3
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


@pytest.mark.parametrize(("m", "n"), [(6, 4), (3, 5)])
def test_what_follows_singular_values_is_counted_as_it_is(m: int, n: int) -> None:
    q = min(m, n)
    spectrum = operations(worth("aten::_linalg_svd", Array((m, n)), A=Array((m, n))))
    seen = Counting()
    u, s, vh = seen.numbers(m, q), seen.numbers(q), seen.numbers(q, n)
    larger(largest := s[0] * 1e-6, 0.0)
    inverses = [1 / value if value > largest else value for value in s]
    scaled = [[vh[k, i] * inverses[k] for k in range(q)] for i in range(n)]
    for row in scaled:
        for left in u:
            weighted(list(left), row)
    found = worth("aten::linalg_pinv", Array((n, m)), self=Array((m, n)))
    assert operations(found) - spectrum == +seen.operations
    seen.operations.clear()
    for _ in range(COLUMNS):
        right = seen.numbers(m)
        middle = [weighted(list(u[:, k]), list(right)) / s[k] for k in range(q)]
        for i in range(n):
            weighted(list(vh[:, i]), middle)
    arguments: dict[str, Any] = {"self": Array((m, n)), "b": Array((m, COLUMNS)), "driver": "gelsd"}
    assert operations(worth("aten::linalg_lstsq", Array((n, COLUMNS)), **arguments)) - spectrum == +seen.operations


def test_least_squares_go_by_qr_unless_a_driver_is_asked_for() -> None:
    for driver in (None, "gels", "gelsy"):
        found = worth("aten::linalg_lstsq", RIGHT, self=RIGHT, b=Array((BATCH, N, 2)), driver=driver)
        assert found == BATCH * factorisations.least_squares(SINGLE, N, COLUMNS, 2)
    vector = worth("aten::linalg_lstsq", Array((COLUMNS,)), self=Array((N, COLUMNS)), b=Array((N,)))
    assert vector == factorisations.least_squares(SINGLE, N, COLUMNS, 1)
