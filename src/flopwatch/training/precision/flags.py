"""PyTorch's flags for fp32 products: whether they may be rounded to TF32, in cuBLAS, in cuDNN and in oneDNN."""

from __future__ import annotations

from typing import Any

import torch

# Where `fp32_precision` is kept (PyTorch 2.9 and later). The two of oneDNN make fp32 products of a CPU inexact.
_LEGACY = ("cuda.matmul", "cudnn")
_PLACES = ("cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv")


def _place(name: str) -> Any:
    place: Any = torch.backends
    for part in name.split("."):
        place = getattr(place, part, None)
    return place


def read() -> dict[str, str | bool | int | None]:
    """Every flag that decides how products of fp32 or narrower numbers are rounded, and which kernels are chosen."""
    flags: dict[str, str | bool | int | None] = {}
    for name in _PLACES:
        place = _place(name)
        if hasattr(place, "fp32_precision"):
            flags[f"{name}.fp32_precision"] = place.fp32_precision
    for name in _LEGACY:
        try:
            flags[f"{name}.allow_tf32"] = bool(_place(name).allow_tf32)
        except RuntimeError:  # PyTorch refuses to say, since the places above have been set apart
            flags[f"{name}.allow_tf32"] = None
    matmul: Any = torch.backends.cuda.matmul
    for name in ("allow_fp16_reduced_precision_reduction", "allow_bf16_reduced_precision_reduction"):
        value = getattr(matmul, name, None)
        flags[f"cuda.matmul.{name}"] = value if value is None or isinstance(value, bool) else str(value)
    cudnn = _place("cudnn")
    flags["cudnn.enabled"] = bool(cudnn.enabled)
    flags["cudnn.benchmark"] = bool(cudnn.benchmark)
    flags["cudnn.deterministic"] = bool(cudnn.deterministic)
    flags["cudnn.version"] = cudnn.version() if cudnn.is_available() else None
    return flags


class Fp32Products:
    """Lets fp32 products be TF32, or makes them exact, in cuBLAS and in cuDNN, until `restore` puts all flags back.

    The old flags are set first and the new ones, where there are any, behind them: set alone, either makes PyTorch refuse
    to read the other. One that is thrown away changes nothing: a later one would lose its flags at some random time.
    """

    def __init__(self, tf32: bool) -> None:
        places = {name: _place(name) for name in _PLACES}
        self._before = {name: it.fp32_precision for name, it in places.items() if hasattr(it, "fp32_precision")}
        flags = read()
        self._legacy = [flags[f"{name}.allow_tf32"] is True for name in _LEGACY]
        self._set = True
        _set_legacy(tf32, tf32)
        for name in self._before:
            # TF32 means NVIDIA's here; what oneDNN makes of the word on a CPU is not part of it.
            places[name].fp32_precision = "tf32" if tf32 and not name.startswith("mkldnn") else "ieee"

    def restore(self) -> None:
        """Put the flags back, once."""
        if self._set:
            self._set = False
            _set_legacy(*self._legacy)
            for name, value in self._before.items():
                _place(name).fp32_precision = value


def _set_legacy(matmul: bool, cudnn: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = matmul
    torch.backends.cudnn.allow_tf32 = cudnn
