"""The global random number generators of Python and of the frameworks that are loaded: keep, seed, restore."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class RandomStates:
    """The generators as they are when this is made."""

    def __init__(self) -> None:
        self._python = random.getstate()
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        self._numpy = numpy.random.get_state() if numpy is not None else None
        self._torch = torch.get_rng_state() if torch is not None else None
        cuda = torch is not None and torch.cuda.is_initialized()
        self._cuda = torch.cuda.get_rng_state_all() if torch is not None and cuda else None

    def restore(self) -> None:
        """Back to that state."""
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)
        if self._torch is not None:
            sys.modules["torch"].set_rng_state(self._torch)
        if self._cuda is not None:
            sys.modules["torch"].cuda.set_rng_state_all(self._cuda)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Run with seeded generators, then put them back to where they were."""
    states = RandomStates()
    try:
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)
        yield
    finally:
        states.restore()
