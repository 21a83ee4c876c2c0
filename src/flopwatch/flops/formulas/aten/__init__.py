"""PyTorch's operators: importing this registers them; each sibling holds one family, under the names of its arguments."""

from __future__ import annotations

from importlib import import_module

# Each file registers its own operators when it is imported.
NAMES: tuple[str, ...] = (
    "accumulation",
    "attention",
    "contraction",
    "convolution",
    "foreach",
    "fourier",
    "free",
    "fused",
    "lengths",
    "linalg",
    "losses",
    "norms",
    "pointwise",
    "pooling",
    "products",
    "quantised",
    "reductions",
    "resampling",
    "sparse",
    "vision",
)

for _name in NAMES:
    import_module(f"flopwatch.flops.formulas.aten.{_name}")
