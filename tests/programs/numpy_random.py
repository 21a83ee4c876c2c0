"""Random numbers from every bit generator and many distributions."""
# needs: numpy

import numpy as np
from show import show

for kind in (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64):
    rng = np.random.Generator(kind(4))
    show(f"{kind.__name__} normal", rng.standard_normal(1000))
    show("float32", rng.random(1000, dtype=np.float32))
    show("gamma", rng.gamma(2.5, size=300))
    show("beta", rng.beta(0.5, 2, size=300))
    show("poisson", rng.poisson(7, size=300))
    show("binomial", rng.binomial(40, 0.3, size=300))
    show("permutation", rng.permutation(200))
legacy = np.random.RandomState(5)
show("legacy", legacy.randn(500))
