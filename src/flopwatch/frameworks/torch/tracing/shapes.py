"""Results of operators on the meta device that PyTorch refuses there, or finds in a very long way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

META = torch.device("meta")


def _grouped_product(
    one: torch.Tensor,
    other: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """What `_grouped_mm` gives: the groups are along rows, columns, or along what is summed over."""
    rows, columns = one.size(-2), other.size(-1)
    if one.dim() == other.dim() == 2:
        groups = () if offs is None else (offs.size(0),)
    else:
        groups = (one.size(0),) if one.dim() == other.dim() else ()
    if one.size(-1) != other.size(-2):
        raise RuntimeError(f"groups of {tuple(one.shape)} and {tuple(other.shape)} cannot be multiplied")
    return torch.empty((*groups, rows, columns), dtype=out_dtype or one.dtype, device=META)


def _recurrent(*args: Any) -> tuple[torch.Tensor, ...]:
    """What `lstm`, `gru` and `rnn_*` give: the last layer at each step, and the states after the last step.

    Before the states stand the input and, of packed sequences, the numbers of rows of each step; behind them the weights, whether
    there are biases, layers, dropout, training, and whether both directions are run.
    """
    packed = 1 if _is_list(args[2]) and not _is_list(args[3]) else 2
    states = args[packed] if _is_list(args[packed]) else (args[packed],)
    directions = 2 if args[packed + 6] else 1
    given = args[0]
    output = given.new_empty((*given.shape[:-1], directions * states[0].size(-1)))
    return (output, *(torch.empty_like(each) for each in states))


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


# Whole recurrent layers would be taken through all their steps.
SHAPED: Mapping[str, Callable[..., Any]] = {
    "aten::_grouped_mm": _grouped_product,
    # Whether an encoder may drop the padding of a batch: what is estimated is dense.
    "aten::_nested_tensor_from_mask_left_aligned": lambda *_: False,
    **dict.fromkeys(("aten::gru", "aten::lstm", "aten::rnn_relu", "aten::rnn_tanh"), _recurrent),
}
