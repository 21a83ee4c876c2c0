"""Print a value as a name and the hash of its bytes, so that two runs can be compared to the last bit."""

from __future__ import annotations

import hashlib
from typing import Any


def show(name: str, value: Any) -> None:
    """One line: arrays and tensors with shape, datatype and a hash of their bytes; everything else by its repr."""
    if type(value).__module__.partition(".")[0] == "torch":
        import torch

        value = value.detach().contiguous()
        shape, dtype = tuple(value.shape), value.dtype
        data = value.reshape(-1).view(torch.uint8).numpy().tobytes()
    elif hasattr(value, "dtype") and hasattr(value, "shape"):
        import numpy

        value = numpy.ascontiguousarray(value)
        shape, dtype, data = value.shape, value.dtype, value.tobytes()
    elif isinstance(value, (bytes, bytearray, memoryview)):
        print(name, len(value), hashlib.sha256(value).hexdigest()[:16])
        return
    else:
        print(name, repr(value))
        return
    print(name, shape, dtype, hashlib.sha256(data).hexdigest()[:16])
