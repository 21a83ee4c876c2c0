"""ONNX's operators and those of its relatives: importing this registers them; each sibling holds one family.

Arguments have the names of the operators' definitions, in whatever version the file is written ("since_version" tells which
that is). Beside an argument that is a small tensor of known numbers may stand "NAME_value", a list of them.
"""

from __future__ import annotations

from importlib import import_module

# Each file registers its own operators when it is imported.
NAMES: tuple[str, ...] = (
    "attention",
    "classical",
    "convolution",
    "elementwise",
    "free",
    "norms",
    "pooling",
    "products",
    "quantized",
    "recurrent",
    "reductions",
    "signals",
)

for _name in NAMES:
    import_module(f"flopwatch.flops.formulas.onnx.{_name}")
