"""Import Chainer 7.8 (2022), also under versions of Python, NumPy and setuptools that came after it.

Three things it relies on are gone. Each is put back only where it is missing, and only for Chainer's sake:

- `chainer._environment_check` warns of unsuitable platforms with the help of `pkg_resources` (not in setuptools 82) and
  `numpy.distutils` (not in Python 3.12). An empty module of that name takes its place while Chainer is imported.
- `numpy.sctypes` (not in NumPy 2.0), read while importing and in the backward of `as_strided`.
- `numpy.float` (not in NumPy 1.24), read by `resize_images`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from flopwatch.errors import UsageError

_CHECK = "chainer._environment_check"


def load() -> Any:
    """The module `chainer`; raises UsageError if it is not installed.

    Any, since Chainer has no types.
    """
    if "chainer" in sys.modules:
        return sys.modules["chainer"]
    if find_spec("chainer") is None:
        raise UsageError("Chainer is not installed.", todo="Install it: pip install 'flopwatch[chainer]'.")
    import numpy

    # Looked up in the dictionary: NumPy answers hasattr() for names that it removed with an error or a warning.
    if "sctypes" not in vars(numpy):
        numpy.sctypes = {  # type: ignore[attr-defined]  # that it is gone is the point
            "int": [numpy.int8, numpy.int16, numpy.int32, numpy.int64],
            "uint": [numpy.uint8, numpy.uint16, numpy.uint32, numpy.uint64],
            "float": [numpy.float16, numpy.float32, numpy.float64],
            "complex": [numpy.complex64, numpy.complex128],
            "others": [bool, object, bytes, str, numpy.void],
        }
    if "float" not in vars(numpy):
        numpy.float = float  # type: ignore[attr-defined]  # as above
    stub = ModuleType(_CHECK)
    stub.check = lambda: None  # type: ignore[attr-defined]  # all that Chainer calls
    sys.modules[_CHECK] = stub
    return import_module("chainer")
