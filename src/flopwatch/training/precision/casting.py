"""The walker that gives a model its types, as Apex's convert_network did, and the casts of inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from flopwatch.training.precision.presets import Dtype, Precision

TORCH: dict[str, torch.dtype] = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
NAMES: dict[torch.dtype, Dtype] = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}


def name_of(dtype: torch.dtype) -> str:
    """fp32, fp16, bf16; other types as PyTorch calls them, without "torch."."""
    return NAMES.get(dtype) or str(dtype).removeprefix("torch.")


def affine_batch_norm(module: nn.Module) -> bool:
    """Whether Apex kept this module in fp32: BatchNorm (SyncBatchNorm too) that has a weight and a bias."""
    return isinstance(module, _BatchNorm) and bool(module.affine)


def cast_model(model: nn.Module, precision: Precision) -> None:
    """Give every floating parameter and buffer of `model` its type, in place; parameters stay the same objects.

    BatchNorm with affine=True gets that of `norms`; BatchNorm without, LayerNorm, GroupNorm and all others get that of
    `parameters`.
    """
    for module in model.modules():
        dtype = TORCH[precision.norms if affine_batch_norm(module) else precision.parameters]
        for parameter in module.parameters(recurse=False):
            if parameter.is_floating_point():
                parameter.data = parameter.data.to(dtype)
                parameter.grad = None
        for buffer in module.buffers(recurse=False):
            if buffer.is_floating_point():
                buffer.data = buffer.data.to(dtype)
        if isinstance(module, nn.RNNBase):
            module.flatten_parameters()


def cast(value: Any, dtype: torch.dtype | None, device: torch.device | None = None) -> Any:
    """`value` with every floating tensor in it as `dtype` (None: as it is), and every tensor on `device`.

    Tuples, named tuples, lists and mappings are gone through; anything else is returned as it is.
    """
    if isinstance(value, torch.Tensor):
        wanted = dtype if value.is_floating_point() else None
        return value.to(device=device, dtype=wanted, non_blocking=True)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(cast(each, dtype, device) for each in value))
    if isinstance(value, tuple | list):
        return type(value)(cast(each, dtype, device) for each in value)
    if isinstance(value, Mapping):
        whole: Any = copy(value)
        for key in list(value):
            whole[key] = cast(value[key], dtype, device)
        return whole
    return value


def floats(value: Any) -> list[torch.Tensor]:
    """Every floating tensor in `value`, in order."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, Mapping):
        return [tensor for each in value.values() for tensor in floats(each)]
    if isinstance(value, tuple | list):
        return [tensor for each in value for tensor in floats(each)]
    return []
