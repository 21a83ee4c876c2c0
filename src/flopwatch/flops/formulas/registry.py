"""Which formula an operator has: names to functions, and the operators that are free, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeVar

from flopwatch.events import Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas.work import Work

Formula = Callable[[Op], Work | Free | Unknown]
F = TypeVar("F", bound=Formula)

# A sibling for each dialect, loaded when the first operator of it is seen.
DIALECTS: tuple[str, ...] = ("aten", "caffe", "chainer", "onnx")
# Other namespaces of operators whose formulas stand among those of a dialect.
HOSTED: Mapping[str, str] = dict.fromkeys(
    (
        "_c10d_functional",
        "_c10d_functional_autograd",
        "_dtensor",
        "_quantized",
        "c10d",
        "c10d_functional",
        "debug_mode_ops",
        "debugprims",
        "export",
        "fsdp",
        "inductor",
        "mempool",
        "mkl",
        "mkldnn",
        "mkldnn_prepacked",
        "onednn",
        "prim",
        "prims",
        "profiler",
        "quantized",
        "rngprims",
        "sparse",
        "streams",
        "symm_mem",
        "torch_attn",
        "torch_nn",
        "torchvision",
    ),
    "aten",
) | dict.fromkeys(
    ("ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft"),
    "onnx",
)

_formulas: dict[str, Formula] = {}
_free: dict[str, Free] = {}


def formula(*names: str) -> Callable[[F], F]:
    """Register a function as the formula of operators: "aten::mm" stands for all overloads and for mm_ and mm.out too.

    Raises ValueError for a name that has a formula or is free already: register a name of your own namespace.
    """

    def register(function: F) -> F:
        for name in names:
            _check(name)
            _formulas[name] = function
        return function

    return register


def free(reason: str, *names: str, moves: bool = True) -> None:
    """Register operators as doing no arithmetic that is counted, for a reason that a reader accepts; views move no data."""
    for name in names:
        _check(name)
        _free[name] = Free(reason, moves)


def estimate(op: Op) -> Work | Free | Unknown:
    """What a call does: Work, Free with a reason, or Unknown with the operator's name."""
    found = lookup(op.name)
    if isinstance(found, Free):
        return found
    return Unknown(op.name) if found is None else found(op)


def lookup(name: str) -> Formula | Free | None:
    """The formula of an operator, or why it is free; None if nobody knows. The name of an operator in place will do."""
    namespace = name.partition("::")[0]
    dialect = HOSTED.get(namespace, namespace)
    if dialect in DIALECTS:
        import_module(f"flopwatch.flops.formulas.{dialect}")
    for each in (name, name.removesuffix("_")):
        if each in _formulas:
            return _formulas[each]
        if each in _free:
            return _free[each]
    return None


def known() -> Mapping[str, Formula | Free]:
    """All registered operators, of the dialects that were loaded."""
    return {**_formulas, **_free}


def _check(name: str) -> None:
    if "::" not in name:
        raise ValueError(f"{name!r} does not say whose operator it is: write NAMESPACE::NAME")
    if name in _formulas or name in _free:
        raise ValueError(f"{name} is registered twice")
