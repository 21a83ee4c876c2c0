"""Factorisations: each factorisation written out as loops over numbers that count, checked against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flopwatch.flops.formulas import factorisations
from tests.unit.flops.formulas.counting import Counting, Number, added, log, operations, sqrt
from tests.unit.flops.formulas.numerics import SINGLE, counted, flop, values

sizes = st.integers(1, 7)
N, COLUMNS = 5, 3


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
