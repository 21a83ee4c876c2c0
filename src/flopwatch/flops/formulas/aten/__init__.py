"""PyTorch's operators: importing this registers them; each sibling holds one family, under the names of its arguments."""

from __future__ import annotations

from importlib import import_module

# Each file registers its own operators when it is imported.
NAMES: tuple[str, ...] = (
    "accumulation",
    "attention",
    "contraction",
    "convolution",
    "deformable",
    "foreach",
    "fourier",
    "free",
    "fused",
    "lengths",
    "linalg",
    "linear_losses",
    "losses",
    "low_precision",
    "norms",
    "padding",
    "pointwise",
    "pooling",
    "prims",
    "products",
    "quantised",
    "quantised_products",
    "quantised_recurrent",
    "recurrent",
    "reductions",
    "resampling",
    "sparse",
    "transformer",
    "vision",
)

for _name in NAMES:
    import_module(f"flopwatch.flops.formulas.aten.{_name}")
