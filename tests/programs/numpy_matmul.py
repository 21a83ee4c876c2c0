"""Matrix products of every floating-point datatype and some odd shapes."""
# needs: numpy

import numpy as np
from show import show

rng = np.random.default_rng(1)
for dtype in (np.float32, np.float64, np.complex64, np.complex128, np.float16):
    for m, n, k in ((64, 64, 64), (1, 100, 33), (127, 65, 31)):
        a = rng.standard_normal((m, k)).astype(dtype)
        b = rng.standard_normal((k, n)).astype(dtype)
        show(f"{np.dtype(dtype)} {m}x{n}x{k}", a @ b)
show("einsum", np.einsum("ij,jk,kl->il", a.real, b.real, b.real.T))
show("int", np.arange(12).reshape(3, 4) @ np.arange(8).reshape(4, 2))
