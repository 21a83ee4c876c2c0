"""Elementwise functions over ordinary, huge, tiny and special numbers, with the warnings that belong to them on stderr."""
# needs: numpy

import numpy as np
from show import show

FUNCTIONS = "exp log log2 log1p expm1 sin cos tan arcsin arctan sinh tanh sqrt cbrt square reciprocal rint floor"
specials = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-310,
    -1e-310,
    1e300,
    0.5,
    2.0,
    3.14159,
    1e-30,
    88.7,
    -103.9,
]
for dtype in (np.float32, np.float64, np.longdouble, np.float16):
    x = np.array(specials * 5, dtype=dtype)
    for name in FUNCTIONS.split():
        show(f"{np.dtype(dtype)} {name}", np.nan_to_num(getattr(np, name)(x)).astype(np.float64))
    show("divide", np.nan_to_num(x / x[::-1]).astype(np.float64))
    show("power", np.nan_to_num(np.power(x, x[::-1])).astype(np.float64))
    show("sum", np.nansum(x[:3]).astype(np.float64))
    show("sort", np.sort(x).astype(np.float64))
print(np.log(2.0), np.exp(1.0), np.sum(np.arange(1000) * 0.1))
with np.errstate(all="raise"):
    try:
        np.float64(1.0) / np.float64(0.0)
    except FloatingPointError as error:
        print("raised:", error)
