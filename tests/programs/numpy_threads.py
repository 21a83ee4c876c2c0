"""A ThreadPoolExecutor whose workers all use BLAS and ufuncs at the same time."""
# needs: numpy

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from show import show


def task(seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((90, 90))
    for _ in range(5):
        x = np.tanh(x @ x.T / 90)
    return x


with ThreadPoolExecutor(6) as pool:
    for seed, result in enumerate(pool.map(task, range(24))):
        show(f"task {seed}", result)
