"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, formula
from flopwatch.flops.formulas.aten.arguments import result_of
from flopwatch.flops.formulas.fourier import Butterflies, complex_butterflies, real_butterflies
from flopwatch.flops.formulas.work import Numbers, numbers_of


@formula("aten::_fft_c2c", "prims::fft_c2c")
def c2c(op: Op) -> Work:
    """Complex to complex along `dim`; `normalization` 0 is none, 1 by the root of the length, 2 by the length."""
    given: Array = op.arguments["self"]
    numbers = numbers_of(given)
    return _along(given.shape, op.arguments["dim"]).plus(_scaled(op, 2 * given.size)).work(numbers)


@formula("aten::_fft_r2c", "prims::fft_r2c")
def r2c(op: Op) -> Work:
    """Real to complex: the last of `dim` gives half a spectrum, the others are complex; a full one (not `onesided`) is mirrored."""
    given: Array = op.arguments["self"]
    return _real(op, numbers_of(given), given.shape, op.arguments["dim"])


@formula("aten::_fft_c2r", "prims::fft_c2r")
def c2r(op: Op) -> Work:
    """Complex half spectrum to real: as real to complex, the other way round."""
    made = result_of(op)
    return _real(op, numbers_of(made), made.shape, op.arguments["dim"])


@formula("aten::fft_fft", "aten::fft_ifft", "aten::fft_rfft", "aten::fft_irfft", "aten::fft_hfft", "aten::fft_ihfft")
def one(op: Op) -> Work:
    """Along one dimension, `dim`."""
    return _whole(op, [op.arguments.get("dim", -1)])


@formula(
    "aten::fft_fft2", "aten::fft_ifft2", "aten::fft_rfft2", "aten::fft_irfft2", "aten::fft_hfft2", "aten::fft_ihfft2"
)
def two(op: Op) -> Work:
    """Along two dimensions, by default the last."""
    return _whole(op, op.arguments.get("dim") or [-2, -1])


@formula(
    "aten::fft_fftn", "aten::fft_ifftn", "aten::fft_rfftn", "aten::fft_irfftn", "aten::fft_hfftn", "aten::fft_ihfftn"
)
def many(op: Op) -> Work:
    """Along as many as `dim` or `s` names, or all."""
    given: Array = op.arguments["self"]
    dims = op.arguments.get("dim")
    if dims is None:
        dims = range(-len(op.arguments.get("s") or given.shape), 0)
    return _whole(op, dims)


@formula("aten::stft")
def stft(op: Op) -> Work:
    """Frames times a window, where there is one, and their transforms along `n_fft` numbers."""
    given = op.arguments
    signal: Array = given["self"]
    length, onesided = given["n_fft"], given.get("onesided")
    made = result_of(op)
    shape = made.shape[:-1] if not made.dtype.startswith("complex") else made.shape
    frames = shape[-1] * (prod(shape[:-2]))
    numbers = numbers_of(signal)
    window: Array | None = given.get("window")
    is_complex = numbers.complex or (window is not None and numbers_of(window).complex)
    if onesided is None:
        onesided = not is_complex
    needed = (complex_butterflies if is_complex else real_butterflies)(length, frames)
    if window is not None or given.get("win_length") not in (None, length):
        windowed = frames * length
        needed = needed.plus(Butterflies(products=windowed) if is_complex else Butterflies(mul=windowed))
    if given.get("normalized"):
        needed = needed.plus(Butterflies(mul=2 * frames * (length // 2 + 1 if onesided else length)))
    return needed.work(numbers)


def _along(shape: tuple[int, ...], dims: Iterable[int]) -> Butterflies:
    """Complex transforms of an array of some shape, along one dimension after the other."""
    needed, size = Butterflies(), prod(shape)
    if size:
        for dim in dims:
            needed = needed.plus(complex_butterflies(shape[dim], size // shape[dim]))
    return needed


def _real(op: Op, numbers: Numbers, shape: tuple[int, ...], dims: Iterable[int]) -> Work:
    """`shape` is that of the real side."""
    *others, last = [dim % len(shape) for dim in dims]
    length, size = shape[last], prod(shape)
    if not size:
        return Work()
    half = (*shape[:last], length // 2 + 1, *shape[last + 1 :])
    needed = real_butterflies(length, size // length).plus(_along(half, others))
    return needed.plus(_scaled(op, 2 * prod(half) if op.name.endswith("r2c") else size)).work(numbers)


def _scaled(op: Op, parts: int) -> Butterflies:
    """One product for each real number or part of a complex one, where the result is scaled."""
    return Butterflies(mul=parts if op.arguments.get("normalization") else 0)


def _whole(op: Op, dims: Iterable[int]) -> Work:
    """One of the public functions, as the transform that it comes down to.

    `norm` names the direction that is scaled. A length that is asked for (`n`, `s`) cuts or pads the input first. Real numbers are
    made complex where there are several dimensions, but for the ones that say so (rfft).
    """
    given: Array = op.arguments["self"]
    kind = op.name.removeprefix("aten::fft_").rstrip("2n")
    forward = not kind.startswith("i")
    norm = op.arguments.get("norm") or "backward"
    dims = list(dims)
    arguments: dict[str, Any] = {"dim": dims, "normalization": norm == "ortho" or (norm == "forward") is forward}
    if kind in ("irfft", "hfft"):
        return c2r(Op("aten::_fft_c2r", arguments, op.outputs))
    shape = list(given.shape)
    asked = op.arguments.get("n", op.arguments.get("s"))
    for dim, length in zip(dims, [asked] if isinstance(asked, int) else asked or (), strict=False):
        shape[dim] = shape[dim] if length == -1 else length
    made = result_of(op)
    numbers = Numbers(numbers_of(made).dtype)
    single = op.name in ("aten::fft_fft", "aten::fft_ifft") and not numbers_of(given).complex
    if single or kind in ("rfft", "ihfft"):
        return _real(Op("aten::_fft_r2c", arguments), numbers, tuple(shape), dims)
    return c2c(Op("aten::_fft_c2c", arguments | {"self": Array(tuple(shape), made.dtype)}))
