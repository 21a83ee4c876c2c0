"""Tensors, packed weights and the other values that PyTorch's operators take, as formulas see them: shapes without data."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree
from torch.utils._mode_utils import no_dispatch

from flopwatch.events import Array

_SHORT = 1 << 12
_NAMES: dict[torch.dtype, str] = {}


_PLACES = ("stride", "padding", "dilation")

# Other layouts (of oneDNN, of sequences) hold all their elements.
_SPARSE = frozenset((torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc))


def array_of(tensor: torch.Tensor) -> Array:
    """Shape and datatype of a tensor.

    `stored` are the elements that lie in memory, where that is not the product of the shape: an expanded view, or a sparse
    tensor, whose values (of a block or of the dense dimensions each) are `nonzero`.
    """
    dtype = tensor.dtype
    name = _NAMES.get(dtype) or _name(dtype)
    if tensor.is_nested:  # as a rectangle that all parts fit into
        sizes = [tuple(part.shape) for part in tensor.unbind()]
        return Array(
            (len(sizes), *map(max, *sizes)) if len(sizes) > 1 else (len(sizes), *sizes[0]), name, tensor.numel()
        )
    shape = tuple(tensor.shape)
    if tensor.layout in _SPARSE:
        held = _values(tensor)
        return Array(shape, name, max(held, 0), held)
    if 0 in (strides := tensor.stride()):
        stored = 1
        for size, stride in zip(shape, strides, strict=True):
            stored *= size if stride or not size else 1
        return Array(shape, name, stored)
    return Array(shape, name)


def value_of(value: Any) -> Any:
    """An argument of an operator: an `Array` for a tensor, [weight, bias] for packed weights, a name for a datatype or device."""
    if isinstance(value, torch.Tensor):
        return array_of(value)
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [value_of(each) for each in value]
    if isinstance(value, torch.dtype):
        return _NAMES.get(value) or _name(value)
    if isinstance(value, (int, torch.SymInt)):
        return int(value)
    if isinstance(value, (complex, torch.SymFloat, torch.SymBool)):
        return value
    if isinstance(value, torch.ScriptObject):
        return _unpacked(value)
    return str(value)


def numbers_of(tensor: torch.Tensor) -> list[int] | Array:
    """The content of a short list of real whole numbers, which says how much there is to do; else as any tensor."""
    known = type(tensor) is torch.Tensor and not tensor.is_meta and tensor.dim() == 1 and tensor.numel() <= _SHORT
    if not known or tensor.is_floating_point():
        return array_of(tensor)
    with no_dispatch():
        return [int(number) for number in tensor.tolist()]


def _name(dtype: torch.dtype) -> str:
    return _NAMES.setdefault(dtype, str(dtype).removeprefix("torch."))


def _values(tensor: torch.Tensor) -> int:
    try:
        if tensor.layout is torch.sparse_coo:
            return int(tensor._values().numel())
        return int(tensor.values().numel())
    except (RuntimeError, NotImplementedError):  # a layout of somebody else's, or one that has no values to look at
        return -1


def _unpacked(packed: Any) -> Any:
    """What the packed parameters of a quantised layer hold, [] if there are no tensors that we know of.

    [weight, bias or None] of a dense layer, followed by stride, padding and dilation for a convolution; of a recurrent layer, which
    packs two dense ones, [weight, weight, bias or None, bias or None].
    """
    try:
        with no_dispatch():  # real weights, whatever tensors the program is followed on
            if hasattr(packed, "unpack"):
                weight, bias = packed.unpack()[:2]
                placed = [getattr(packed, name)() for name in _PLACES] if hasattr(packed, _PLACES[0]) else []
                return [value_of(weight), value_of(bias), *map(value_of, placed)]
            held = _pytree.tree_leaves(packed.__getstate__())
            objects: list[Any] = [each for each in held if isinstance(each, torch.ScriptObject)]
            dense = [each.unpack() for each in objects]
            biases = [each for each in held if isinstance(each, torch.Tensor)] or [each[1] for each in dense]
            return [*(value_of(each[0]) for each in dense), *map(value_of, biases)]
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return []
