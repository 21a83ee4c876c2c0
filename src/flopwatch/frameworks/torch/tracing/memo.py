"""What an operator gave on the meta device when it was last called like this: its results can be made without asking it again.

Finding out the shape of a result takes PyTorch many times as long as making an empty tensor of that shape, and networks repeat
themselves. Remembered are operators whose results are new tensors, or their own first argument, and depend on nothing but shapes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from flopwatch.events import Array
from flopwatch.frameworks.torch.tracing.arrays import array_of
from flopwatch.frameworks.torch.tracing.plans import Plan

_MOST = 1 << 14
_META = torch.device("meta")

# A new tensor: size, stride, datatype.
Form = tuple[torch.Size, tuple[int, ...], torch.dtype]


class Known(NamedTuple):
    """Arguments and results as formulas see them, the same objects each time; `forms` to make the results, None for the first argument."""

    arguments: dict[str, Any]
    outputs: tuple[Array | None, ...]
    forms: tuple[Form | None, ...] | None
    alone: bool

    def made(self, args: Sequence[Any]) -> Any:
        """The results of another such call."""
        if self.forms is None:
            return args[0]
        empty = torch.empty_strided
        results = tuple(
            None if form is None else empty(form[0], form[1], dtype=form[2], device=_META) for form in self.forms
        )
        return results[0] if self.alone else results


_known: OrderedDict[Any, Known] = OrderedDict()


def key_of(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What tells calls apart, if all that matters is in it: no real tensors, no numbers from data; else None."""
    key: list[Any] = [func, torch.get_default_dtype()]
    for value in (*args, *kwargs.items()) if kwargs else args:
        if isinstance(value, torch.Tensor):
            if not value.is_meta or not value.dim():
                return None
            key.append((value.shape, value.stride(), value.dtype))
        elif value is None or value is True or value is False:
            key.append(value)
        elif isinstance(value, (int, float)):
            key.append((type(value), value))
        elif isinstance(value, (list, tuple)):
            if any(isinstance(each, (torch.Tensor, list, dict)) for each in value):
                return None
            key.append((tuple(map(type, value)), tuple(value)))
        elif isinstance(value, (torch.dtype, torch.memory_format, str)):
            key.append(value)
        else:
            return None
    return tuple(key)


def recall(key: Any) -> Known | None:
    """What is known of such a call."""
    return _known.get(key)


def remember(key: Any, plan: Plan, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> Known | None:
    """Keep what a call gave, if another one can be made of it."""
    alone = not isinstance(result, (tuple, list))
    results = (result,) if alone else tuple(result)
    if not all(each is None or (isinstance(each, torch.Tensor) and each.is_meta) for each in results):
        return None
    forms: tuple[Form | None, ...] | None = None
    if plan.same:
        kept = isinstance(result, torch.Tensor) and (result.shape, result.stride(), result.dtype) in key
        if result is not args[0] or not kept:
            return None
    elif plan.fresh:
        theirs = {value.untyped_storage()._cdata for value in args if isinstance(value, torch.Tensor)}
        mine = [each.untyped_storage()._cdata for each in results if each is not None]
        if theirs.intersection(mine) or len(set(mine)) < len(mine):
            return None
        forms = tuple(None if each is None else (each.size(), each.stride(), each.dtype) for each in results)
    else:
        return None
    outputs = tuple(None if each is None else array_of(each) for each in results)
    known = _known[key] = Known(plan.arguments(args, kwargs), outputs, forms, alone)
    if len(_known) > _MOST:
        _known.popitem(last=False)
    return known
