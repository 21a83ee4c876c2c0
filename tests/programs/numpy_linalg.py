"""SVD, solve, eigenvalues, Cholesky, QR, inverse, determinant, least squares."""
# needs: numpy

import numpy as np
from show import show

rng = np.random.default_rng(2)
a = rng.standard_normal((80, 80))
for dtype in (np.float32, np.float64):
    m = a.astype(dtype)
    u, s, v = np.linalg.svd(m)
    show("svd u", u)
    show("svd s", s)
    show("svd v", v)
    show("solve", np.linalg.solve(m, m[:, 0]))
    show("eigh", np.linalg.eigh(m + m.T)[0])
    show("eig", np.linalg.eig(m)[0])
    show("cholesky", np.linalg.cholesky(m @ m.T + 80 * np.eye(80, dtype=dtype)))
    show("qr", np.linalg.qr(m)[1])
    show("inv", np.linalg.inv(m))
    show("det", np.linalg.det(m[:9, :9]))
    show("lstsq", np.linalg.lstsq(m[:, :20], m[:, 20], rcond=None)[0])
