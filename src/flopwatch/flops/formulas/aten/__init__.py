"""PyTorch's operators: importing this registers them; each sibling holds one family, under the names of its arguments."""

from __future__ import annotations

from importlib import import_module

# Each file registers its own operators when it is imported.
NAMES: tuple[str, ...] = (
    "attention",
    "contraction",
    "convolution",
    "free",
    "losses",
    "norms",
    "pointwise",
    "pooling",
    "products",
    "reductions",
    "sparse",
)

for _name in NAMES:
    import_module(f"flopwatch.flops.formulas.aten.{_name}")
