"""What the names of CUDA kernels tell about the numbers they multiply."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

# Kernels of cuBLAS, cuDNN and CUTLASS that multiply; batch norm, conversions and reductions are none.
_PRODUCT = re.compile(r"gemm|gemv|conv(?!ert)|fprop|dgrad|wgrad|winograd|xmma|scudnn|884cudnn|nvjet", re.IGNORECASE)

# The first that fits counts. s884, s1688 and s16816 are shapes of tensor core products that add up in fp32, h… in fp16:
# 884 is fp16 (capability 7.0); 1688 is fp16 at 7.5, where the type is named, and TF32 from 8.0 on, where it may not be.
# cuBLAS's nvjet kernels, from 9.0 on, begin with a letter for the type of the operands: h is fp16, t bf16.
_TYPES = (
    ("bf16", re.compile(r"bf16|bfloat16|nvjet_(sm\d+_)?t", re.IGNORECASE)),
    ("tf32", re.compile(r"tf32", re.IGNORECASE)),
    ("fp16", re.compile(r"fp16|(?<![a-z])f16|half|[hs]884|h1688|h16816|hgemm|nvjet_(sm\d+_)?h", re.IGNORECASE)),
    ("tf32", re.compile(r"s1688", re.IGNORECASE)),
    ("fp32", re.compile(r"sgemm|f32f32_f32|ffma|scudnn|fp32|float", re.IGNORECASE)),
)


@dataclass(frozen=True)
class Kernel:
    """A kernel that ran `calls` times; `dtype` is what its name tells, "" for nothing; `product`: it multiplies matrices."""

    name: str
    dtype: str
    product: bool
    calls: int


def kernels(names: Iterable[str]) -> tuple[Kernel, ...]:
    """The kernels among the names of what a device did; copies and fills are none."""
    counts = Counter(name for name in names if not name.startswith(("Memcpy", "Memset")))
    return tuple(Kernel(name, dtype_of(name), bool(_PRODUCT.search(name)), counts[name]) for name in sorted(counts))


def dtype_of(name: str) -> str:
    """The type of the operands that a kernel's name tells, "" for nothing."""
    return next((dtype for dtype, pattern in _TYPES if pattern.search(name)), "")


@contextmanager
def listening(device: torch.device) -> Iterator[list[str] | None]:
    """Collect the names of what a CUDA device runs, by PyTorch's profiler; the list is full after the with block.

    None for every other device.
    """
    if device.type != "cuda":
        yield None
        return
    from torch.profiler import ProfilerActivity, profile

    names: list[str] = []
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], acc_events=True) as profiler:
        yield names
        torch.cuda.synchronize(device)
    names += ran(profiler.events() or ())


def ran(events: Iterable[Any]) -> Iterator[str]:
    """The names of what a profiler saw on a CUDA device, without the spans that programs mark there."""
    for event in events:
        mark = getattr(event, "is_user_annotation", False) or event.name.startswith(("Optimizer.", "ProfilerStep"))
        if event.device_type.name == "CUDA" and not mark:
            yield event.name
