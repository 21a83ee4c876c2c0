"""Dense linear algebra: factorisations, solutions and inverses by the textbook loops, exact to the last operation.

All counts are of multiplications with addition, products, sums, quotients and roots on real or complex numbers; the leading
terms are those of LAPACK Working Note 41 (Blackford and Dongarra, Installation Guide for LAPACK, appendix C) and of Golub and
Van Loan, Matrix Computations (4th edition). Pivoting and the choice of signs compare and move, which is free. None of this
is MAC: MAC are products of matrices, and of a factorisation only part can be done as such.
"""

from __future__ import annotations

from flopwatch.flops.formulas.work import Numbers, Work, total, work


def cholesky(numbers: Numbers, n: int) -> Work:
    """A = L Lᴴ, n × n: n³/3 FLOP (POTRF in LAWN 41; Golub and Van Loan 4.2.5).

    Column j: j products are taken from each of its n - j elements, one root, n - j - 1 quotients.
    """
    return work(numbers, fma=n * (n * n - 1) // 6, div=n * (n - 1) // 2, sqrt=n)


def lu(numbers: Numbers, m: int, n: int) -> Work:
    """P A = L U, m × n, with partial pivoting: 2n³/3 FLOP if square (GETRF in LAWN 41; Golub and Van Loan 3.4.1).

    Step k: m - k - 1 quotients, and (m - k - 1)(n - k - 1) elements from which a product is taken.
    """
    steps = min(m, n)
    return work(numbers, fma=_products(m, n, steps), div=_falling(m, steps))


def ldl(numbers: Numbers, n: int) -> Work:
    """A = L D Lᵀ, n × n and symmetric: n³/3 FLOP (SYTRF in LAWN 41; Golub and Van Loan 4.1.2 and 4.4).

    Counted for a D that is diagonal; blocks of two rows, which pivoting may choose, cost the same up to a multiple of n².
    """
    return work(numbers, fma=n * (n * n - 1) // 6, div=n * (n - 1) // 2)


def triangular_solve(numbers: Numbers, n: int, columns: int, unit: bool = False) -> Work:
    """T X = B, T n × n triangular: n² FLOP a column of B (TRSM in LAWN 41); no quotients if T has ones on its diagonal."""
    return work(numbers, fma=columns * n * (n - 1) // 2, div=0 if unit else columns * n)


def lu_solve(numbers: Numbers, n: int, columns: int) -> Work:
    """A X = B from P A = L U: 2n² FLOP a column (GETRS in LAWN 41); the diagonal of L is one."""
    return work(numbers, fma=columns * n * (n - 1), div=columns * n)


def cholesky_solve(numbers: Numbers, n: int, columns: int) -> Work:
    """A X = B from A = L Lᴴ: 2n² FLOP a column (POTRS in LAWN 41); both triangles are divided by."""
    return work(numbers, fma=columns * n * (n - 1), div=2 * columns * n)


def ldl_solve(numbers: Numbers, n: int, columns: int) -> Work:
    """A X = B from A = L D Lᵀ: 2n² FLOP a column (SYTRS in LAWN 41), and n quotients."""
    return work(numbers, fma=columns * n * (n - 1), div=columns * n)


def triangular_inverse(numbers: Numbers, n: int) -> Work:
    """The inverse of a triangle: n³/3 FLOP (TRTRI in LAWN 41).

    Diagonal: one quotient each. Element (i, j): the sum of j - i products, times element (i, i) of the inverse.
    """
    return work(numbers, fma=n * (n - 1) * (n - 2) // 6, mul=n * (n - 1), div=n)


def inverse(numbers: Numbers, n: int) -> Work:
    """A⁻¹ by P A = L U, U⁻¹ and the solution of X L = U⁻¹: 2n³ FLOP (GETRF and GETRI in LAWN 41)."""
    back = work(numbers, fma=n * n * (n - 1) // 2)
    return total((lu(numbers, n, n), triangular_inverse(numbers, n), back))


def cholesky_inverse(numbers: Numbers, n: int) -> Work:
    """A⁻¹ from A = L Lᴴ: L⁻¹, and half of the symmetric product L⁻ᴴ L⁻¹: 2n³/3 FLOP (POTRI in LAWN 41)."""
    square = work(numbers, fma=n * (n * n - 1) // 6, mul=n * (n + 1) // 2)
    return total((triangular_inverse(numbers, n), square))


def reflections(numbers: Numbers, rows: int, columns: int) -> Work:
    """One Householder reflection I - τ v vᴴ, v of `rows` numbers of which the first is 1, applied to `columns` columns.

    vᴴ times the column, times τ, and that multiple of v from the column: 4 FLOP an element (Golub and Van Loan 5.1.4).
    """
    return work(numbers, fma=2 * (rows - 1) * columns, mul=columns, add=columns)


def qr(numbers: Numbers, m: int, n: int) -> Work:
    """R and the reflections of A = Q R, m × n: 2mn² - 2n³/3 FLOP for m ≥ n (GEQRF in LAWN 41; Golub and Van Loan 5.2.2).

    A column of r numbers, r > 1, makes one reflection: the root of r squares, a difference, τ by a quotient and v by r - 1;
    it is applied to the columns to the right.
    """
    steps = max(min(m - 1, n), 0)
    below, right = _falling(m, steps), _falling(n, steps)
    return work(
        numbers,
        fma=below + 2 * _products(m, n, steps),
        mul=steps + right,
        add=steps + right,
        div=steps + below,
        sqrt=steps,
    )


def q_of_qr(numbers: Numbers, m: int, n: int, k: int) -> Work:
    """The first n columns of the product of k reflections of m numbers: 4mnk - 2(m + n)k² + 4k³/3 FLOP (ORGQR in LAWN 41).

    The last reflection comes first and is applied to the columns to its right; its own column is v times -τ, and 1 - τ.
    """
    right = _falling(n, k)
    return work(numbers, fma=2 * _products(m, n, k), mul=right + _falling(m, k), add=right + k)


def q_times(numbers: Numbers, m: int, columns: int, k: int) -> Work:
    """k reflections, of m, m - 1, … numbers, applied to `columns` columns: 4mk - 2k² FLOP each (ORMQR in LAWN 41)."""
    return work(numbers, fma=2 * columns * _falling(m, k), mul=columns * k, add=columns * k)


def least_squares(numbers: Numbers, m: int, n: int, columns: int) -> Work:
    """min |A X - B| by A = Q R, Qᴴ B and R X = Qᴴ B: 2mn² - 2n³/3 FLOP, and 4mn - n² a column (GELS; Golub and Van Loan 5.3.2).

    Where A has more columns than rows, the same with Aᴴ. Pivoting of columns and the search for the rank are not in it.
    """
    long, short = max(m, n), min(m, n)
    steps = max(min(long - 1, short), 0)
    return total(
        (
            qr(numbers, long, short),
            q_times(numbers, long, columns, steps),
            triangular_solve(numbers, short, columns),
        )
    )


def determinant(numbers: Numbers, n: int) -> Work:
    """The product of the diagonal of U in P A = L U; its sign by the permutation is free."""
    return total((lu(numbers, n, n), work(numbers, mul=max(n - 1, 0))))


def log_determinant(numbers: Numbers, n: int) -> Work:
    """Sign and logarithm of the determinant by P A = L U: the logarithms of the diagonal of U, added up.

    The signs of real numbers multiply as bits do; those of complex ones are the numbers by their moduli.
    """
    rest = max(n - 1, 0)
    real = Numbers(numbers.dtype)
    parts = [lu(numbers, n, n), work(real, transcendental=n, add=rest)]
    if numbers.complex:
        parts += [work(real, mul=n, fma=n, sqrt=n, div=2 * n), work(numbers, mul=rest)]
    return total(parts)


def _falling(size: int, steps: int) -> int:
    """The sum of size - k - 1 for k < steps."""
    return steps * (size - 1) - steps * (steps - 1) // 2


def _products(m: int, n: int, steps: int) -> int:
    """The sum of (m - k - 1)(n - k - 1) for k < steps."""
    squares = (steps - 1) * steps * (2 * steps - 1) // 6
    return steps * (m - 1) * (n - 1) - (m + n - 2) * (steps * (steps - 1) // 2) + squares
