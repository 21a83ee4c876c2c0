"""Whether a census is that of its precision."""

from __future__ import annotations

from flopwatch.training.precision.counts import Census
from flopwatch.training.precision.presets import Precision

_FP32_FLAGS = ("cuda.matmul.fp32_precision", "cudnn.conv.fp32_precision", "cuda.matmul.allow_tf32", "cudnn.allow_tf32")


def complaints(census: Census, *, affine_norms: frozenset[str], masters: int) -> tuple[str, ...]:
    """Sentences on what the step did otherwise than its precision promises.

    `affine_norms` are the kinds of modules that count as norms in the census, `masters` is the number of masters that there
    have to be.
    """
    precision = census.precision
    said = [
        *_tensors(census, precision, affine_norms),
        *_products(census, precision),
        *_kernels(census, precision),
        *_flags(census, precision),
    ]
    have = sum(each.tensors for each in census.tensors if each.part == "masters")
    if have != masters:
        said.append(f"{have} parameters have fp32 masters, and {masters} should.")
    return tuple(said)


def _tensors(census: Census, precision: Precision, affine_norms: frozenset[str]) -> list[str]:
    said = []
    for each in census.tensors:
        if each.dtype not in ("fp32", "fp16", "bf16", "float64"):
            continue  # counters
        if each.part in ("parameters", "buffers", "gradients"):
            wanted: str = precision.norms if each.kind in affine_norms else precision.parameters
        elif each.part in ("masters", "master gradients"):
            wanted = "fp32"
        elif each.part == "outputs" and precision.outputs != "kept":
            wanted = precision.outputs
        else:
            continue
        if each.dtype != wanted:
            said.append(f"{each.part} of {each.kind} are {each.dtype}, not {wanted}.")
    return said


def _products(census: Census, precision: Precision) -> list[str]:
    said = []
    seen = False
    for each in census.operations:
        if each.phase not in ("forward", "backward") or not each.product:
            continue
        seen = True
        if each.multiplied != precision.products:
            said.append(f"{each.name} multiplied {each.multiplied} in {each.phase}, not {precision.products}.")
    return said if seen else ["No convolution or matrix product was seen."]


def _kernels(census: Census, precision: Precision) -> list[str]:
    if census.kernels is None:
        return []
    allowed = {precision.products, "tf32"} if precision.tf32 else {precision.products}
    products = [each for each in census.kernels if each.product and each.dtype]
    return [f"The kernel {each.name} multiplied {each.dtype}." for each in products if each.dtype not in allowed]


def _flags(census: Census, precision: Precision) -> list[str]:
    wanted = (True, "tf32") if precision.tf32 else (False, "ieee")
    said = []
    for name in _FP32_FLAGS:
        value = census.flags.get(name)
        if value is not None and value not in wanted:
            said.append(f"The flag {name} is {value}.")
    return said
