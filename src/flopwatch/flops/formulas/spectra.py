"""Eigenvalues and singular values: by convention, since nobody knows beforehand how many iterations there will be.

These are the conventional counts that benchmarks of such solvers use; each is a number of FLOP, half multiplications and half
additions, shown as multiply-adds. What a solver really does depends on the matrix and on the method: divide and conquer
does less, Jacobi's method more. They are no MAC.
"""

from __future__ import annotations

from flopwatch.flops.formulas.work import Numbers, Work, work


def symmetric_eigenvalues(numbers: Numbers, n: int, vectors: bool) -> Work:
    """Conventional: 4n³/3 FLOP for the values alone, 9n³ with vectors (Golub and Van Loan 8.3.3, the symmetric QR algorithm)."""
    return _conventional(numbers, 9 * n**3 if vectors else 4 * n**3 // 3)


def eigenvalues(numbers: Numbers, n: int, vectors: bool) -> Work:
    """Conventional: 10n³ FLOP for the values alone, 79n³/3 with right vectors (GEEV, LAPACK Users' Guide, "Standard" counts).

    The second is Golub and Van Loan's 25n³ for Schur form and vectors (7.5.2) and 4n³/3 to get eigenvectors from them.
    """
    return _conventional(numbers, 79 * n**3 // 3 if vectors else 10 * n**3)


def singular_values(numbers: Numbers, m: int, n: int, vectors: bool, full: bool = False) -> Work:
    """Conventional: the cheaper of the two algorithms of Golub and Van Loan 8.6, for m ≥ n (or the other way round).

    Values alone: 4mn² - 4n³/3 or, by A = Q R first, 2mn² + 2n³ FLOP. With n vectors on each side: 14mn² + 8n³ or 6mn² + 20n³.
    With m vectors on the left (`full`): 4m²n + 8mn² + 9n³ or 4m²n + 22n³.
    """
    m, n = max(m, n), min(m, n)
    if not vectors:
        return _conventional(numbers, min((12 * m * n * n - 4 * n**3) // 3, 2 * m * n * n + 2 * n**3))
    if full and m > n:
        return _conventional(numbers, 4 * m * m * n + min(8 * m * n * n + 9 * n**3, 22 * n**3))
    return _conventional(numbers, min(14 * m * n * n + 8 * n**3, 6 * m * n * n + 20 * n**3))


def pseudoinverse(numbers: Numbers, m: int, n: int, hermitian: bool) -> Work:
    """A⁺ = V Σ⁺ Uᴴ: singular values (or eigenvalues), conventional; their reciprocals, n × q products and an n × q × m product.

    What is below the cut-off becomes zero, which is free; the cut-off takes one product and one comparison.
    """
    q = min(m, n)
    spectrum = symmetric_eigenvalues(numbers, n, True) if hermitian else singular_values(numbers, m, n, True)
    real = Numbers(numbers.dtype)
    scaled = work(real, div=q, mul=(2 if numbers.complex else 1) * q * n + 1, minmax=1)
    return spectrum + scaled + work(numbers, mul=n * m if q else 0, fma=n * m * max(q - 1, 0))


def least_squares(numbers: Numbers, m: int, n: int, columns: int) -> Work:
    """min |A X - B| by singular values (GELSD, GELSS), conventional: V Σ⁺ (Uᴴ B)."""
    q = min(m, n)
    if not q:
        return Work()
    products = work(numbers, mul=columns * (q + n), fma=columns * (q * (m - 1) + n * (q - 1)))
    real = Numbers(numbers.dtype)
    scaled = work(real, div=(2 if numbers.complex else 1) * columns * q)
    return singular_values(numbers, m, n, True) + products + scaled


def _conventional(numbers: Numbers, flop: int) -> Work:
    # Of an odd count one addition is left.
    return work(numbers, fma=flop // 2, add=flop % 2)
