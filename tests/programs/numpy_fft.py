"""Fourier transforms of smooth, prime and two-dimensional sizes."""
# needs: numpy

import numpy as np
from show import show

rng = np.random.default_rng(3)
for n in (64, 100, 127, 1000, 1021):
    x = rng.standard_normal(n)
    show(f"fft {n}", np.fft.fft(x))
    show(f"rfft {n}", np.fft.rfft(x.astype(np.float32)))
    show(f"round trip {n}", np.fft.irfft(np.fft.rfft(x), n))
show("fft2", np.fft.fft2(rng.standard_normal((33, 48))))
