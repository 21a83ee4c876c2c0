"""Let attention on the meta device be what it is on a CPU: one operator with a backward of its own.

On meta tensors PyTorch takes `scaled_dot_product_attention` apart where gradients are recorded, on a CPU it does not. A kernel of
ours for that device, registered while somebody follows a model, chooses as a CPU does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_lock = threading.Lock()
_users = 0
_library: Any = None

_FUSED = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
_DIMENSIONS = 4


@contextmanager
def attention_as_on_cpu() -> Iterator[None]:
    """For the length of a with block attention on meta tensors is fused where a CPU would fuse it."""
    global _users, _library
    with _lock:
        _users += 1
        if _users == 1:
            _library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]  # PyTorch left it untyped
            _library.impl("scaled_dot_product_attention", _attend, "AutogradMeta")
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                _library._destroy()
                _library = None


def _attend(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    aten = torch.ops.aten
    if query.dim() == _DIMENSIONS - 1 and key.dim() == value.dim() == query.dim():
        inner = (query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0))
        return _attend(*inner, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa).squeeze(0)
    if _is_fused(query, key, value, attn_mask, dropout_p, enable_gqa):
        if attn_mask is not None and attn_mask.dtype is torch.bool:
            zero = torch.scalar_tensor(0.0, dtype=query.dtype, device=query.device)
            attn_mask = torch.where(attn_mask, zero, float("-inf"))
        fused: Any = aten._scaled_dot_product_flash_attention_for_cpu.default
        output: torch.Tensor = fused(query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]
        return output
    parts: Any = aten._scaled_dot_product_attention_math.default
    result: torch.Tensor = parts(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa
    )[0]
    return result


def _is_fused(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    grouped: bool,
) -> bool:
    if dropout or query.dtype not in _FUSED or not torch._C._get_flash_sdp_enabled():
        return False
    if any(
        each.dim() != _DIMENSIONS or each.dtype is not query.dtype or not each.numel() for each in (query, key, value)
    ):
        return False
    if mask is not None and mask.requires_grad and torch.is_grad_enabled():
        return False
    batches = {each.size(0) for each in (query, key, value)}
    heads = {each.size(1) for each in (query, key, value)}
    same_width = query.size(-1) == key.size(-1) == value.size(-1)
    dense = all(each.size(-1) == 1 or each.stride(-1) == 1 for each in (query, key, value))
    return same_width and dense and len(batches) == 1 and (grouped or len(heads) == 1)
