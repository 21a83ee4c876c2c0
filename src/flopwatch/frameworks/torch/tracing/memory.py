"""How many bytes of activations are alive at once: the storages that operators make, until nobody holds them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import torch


class Activations:
    """Bytes of the storages that were shown to `add` and still exist; views share theirs. `peak` was reached in layer `at`."""

    def __init__(self, known: Iterable[torch.Tensor] = ()) -> None:
        self._alive: dict[int, weakref.ref[torch.UntypedStorage]] = {}
        self.now = self.peak = 0
        self.at = ""
        # Parameters, buffers and inputs were there before; they are held, so that their numbers stay theirs.
        self._before = [tensor.untyped_storage() for tensor in known if tensor.layout is torch.strided]
        self._known = {id(storage) for storage in self._before}

    def add(self, tensor: torch.Tensor, layer: str) -> None:
        """A tensor has come out of an operator in `layer`."""
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):  # sparse, or a subclass without one
            return
        number = id(storage)
        if number in self._alive or number in self._known:
            return
        size = storage.nbytes()

        def freed(_: object) -> None:
            self._alive.pop(number, None)
            self.now -= size

        self._alive[number] = weakref.ref(storage, freed)
        self.now += size
        if self.now > self.peak:
            self.peak, self.at = self.now, layer
