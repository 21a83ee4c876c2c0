"""What a census holds: datatypes of tensors and operations, flags and kernels, and where they disagree with the precision."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from flopwatch.sheet import Column, Sheet
from flopwatch.training.precision.kernels import Kernel
from flopwatch.training.precision.presets import Precision

# Operators that multiply matrices, by the start of their names.
_PRODUCTS = (
    *("convolution", "_convolution", "mkldnn_convolution", "cudnn_convolution", "miopen_convolution", "slow_conv"),
    *("conv_", "_conv_depthwise2d", "conv_depthwise3d", "thnn_conv", "_thnn_conv"),
    *("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "linear", "mkldnn_linear", "_scaled_dot_product"),
)


@dataclass(frozen=True)
class Tensors:
    """`tensors` of a part ("parameters", "buffers", "gradients", "masters", …) and kind of module, with `elements` in all."""

    part: str
    kind: str
    dtype: str
    tensors: int
    elements: int


@dataclass(frozen=True)
class Operation:
    """An operator in a phase ("forward", "backward", "unscale", "optimizer"): floating types in and out, and how often.

    Several types are joined by "+" in the order of the arguments.
    """

    phase: str
    name: str
    operands: str
    results: str
    calls: int

    @property
    def product(self) -> bool:
        """Whether it is a convolution or a product of matrices."""
        return self.name.removeprefix("aten::").startswith(_PRODUCTS)

    @property
    def multiplied(self) -> str:
        """The types that a product multiplies; backward of fused attention also gets sums of forward, which are fp32."""
        return self.operands.split("+")[0] if "_scaled_dot_product" in self.name else self.operands


@dataclass(frozen=True)
class Census:
    """One training step seen through: what each tensor and operator was, under which flags.

    `kernels` is None where there is no CUDA. `overflow`: a gradient of the step was not finite, which is usual at the
    first scales. `complaints` say where the step was not what `precision` promises; empty is the proof.
    """

    precision: Precision
    device: str
    tensors: tuple[Tensors, ...]
    operations: tuple[Operation, ...]
    flags: dict[str, str | bool | int | None]
    kernels: tuple[Kernel, ...] | None
    overflow: bool
    complaints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    torch: str = field(default="")

    def dtypes(self, part: str, kind: str | None = None) -> tuple[str, ...]:
        """The sorted types of a part's tensors, of one kind of module or all."""
        return tuple(sorted({each.dtype for each in self.tensors if each.part == part and kind in (None, each.kind)}))

    def operands(self, phase: str, *names: str) -> tuple[str, ...]:
        """The sorted types that the operators `names` (without "aten::") had as operands in a phase."""
        wanted = {f"aten::{name}" for name in names}
        return tuple(sorted({each.operands for each in self.operations if each.phase == phase and each.name in wanted}))

    def products(self, phase: str) -> tuple[str, ...]:
        """The sorted types of the operands of convolutions and matrix products in a phase."""
        return tuple(sorted({each.multiplied for each in self.operations if each.phase == phase and each.product}))

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        whole = asdict(self)
        whole["precision"] = self.precision.as_json()
        for key in ("tensors", "operations", "complaints", "notes", "kernels"):
            whole[key] = None if whole[key] is None else list(whole[key])
        return whole

    def sheet(self) -> Sheet:
        """A row for each kind of tensor, operator and product kernel."""
        columns = (
            Column("part"),
            Column("what"),
            Column("datatype"),
            Column("result"),
            Column("count", "count"),
            Column("elements", "count"),
        )
        rows: list[tuple[str | int | None, ...]] = [
            (each.part, each.kind, each.dtype, None, each.tensors, each.elements) for each in self.tensors
        ]
        rows += [(each.phase, each.name, each.operands, each.results, each.calls, None) for each in self.operations]
        for kernel in self.kernels or ():
            if kernel.product:
                rows.append(("kernel", kernel.name, kernel.dtype or "unknown", None, kernel.calls, None))
        flags = ", ".join(f"{name}={value}" for name, value in self.flags.items() if value is not None)
        over = ("A gradient of this step overflowed.",) if self.overflow else ()
        notes = (*self.complaints, *over, f"Flags: {flags}.", *self.notes)
        return Sheet(f"Datatypes of one step at {self.precision.name} on {self.device}", columns, tuple(rows), notes)
