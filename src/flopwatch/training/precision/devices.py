"""Which precisions a device can do; what it can't is refused, what it only emulates is said or refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from flopwatch.errors import CannotMeasureError
from flopwatch.training.precision.presets import Precision


@dataclass(frozen=True)
class Abilities:
    """What a device computes in its own circuits; `capability` is CUDA's, None for what has none."""

    kind: str
    name: str
    fp16: bool
    bf16: bool
    tf32: bool
    capability: tuple[int, int] | None = None


def abilities(device: torch.device | str) -> Abilities:
    """Ask PyTorch, or the processor's own flags, about `device`."""
    device = torch.device(device)
    if device.type == "cuda":
        return _cuda(device)
    if device.type == "cpu":
        flags = _cpu_flags()
        fp16 = {"avx512_fp16", "amx_fp16", "fphp", "asimdhp"}
        bf16 = {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"}
        return Abilities("cpu", "The CPU", bool(fp16 & flags), bool(bf16 & flags), False)
    return Abilities(device.type, f"The device {device.type}", True, True, False)


def _cuda(device: torch.device) -> Abilities:
    with torch.cuda.device(device):
        capability = torch.cuda.get_device_capability(device)
        name = torch.cuda.get_device_name(device)
        # Without the argument PyTorch says yes to chips that only emulate bf16.
        bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
        ask = getattr(torch.cuda, "is_tf32_supported", None)
        tf32 = bool(ask()) if ask else capability >= (8, 0)
    return Abilities("cuda", name, capability >= (5, 3), bf16, tf32, capability)


def _cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def check(
    precision: Precision, device: torch.device | str, able: Abilities | None = None, *, cudnn: bool | None = None
) -> tuple[str, ...]:
    """Sentences about what `device` does otherwise than the name says; CannotMeasureError where it can't do it at all.

    `able` stands for what the device says about itself, `cudnn` for whether cuDNN is on.
    """
    able = abilities(device) if able is None else able
    used: set[str] = {precision.parameters, precision.norms, precision.autocast}
    if precision.tf32 and not able.tf32:
        raise CannotMeasureError(
            f"{able.name} has no TF32.",
            seen="PyTorch takes the flag and runs fp32: the figures would be those of fp32-ieee under another name.",
            todo="TF32 needs CUDA capability 8.0 or more. Take fp32-ieee.",
        )
    if able.kind == "cuda" and "bf16" in used and not able.bf16:
        raise CannotMeasureError(
            f"{able.name} only emulates bf16.",
            seen="Its kernels convert to fp32 and back, and cuDNN has no bf16 convolution for it.",
            todo="bf16 needs CUDA capability 8.0 or more. Take O1 or O2.",
        )
    if able.kind == "cuda" and not (torch.backends.cudnn.enabled if cudnn is None else cudnn):
        raise CannotMeasureError("cuDNN is switched off.", todo="Set torch.backends.cudnn.enabled = True.")
    return tuple(_notes(used, able))


def _notes(used: set[str], able: Abilities) -> list[str]:
    notes = []
    for dtype, native in (("fp16", able.fp16), ("bf16", able.bf16)):
        if dtype in used and able.kind == "cpu" and not native:
            notes.append(f"This CPU has no {dtype} arithmetic: PyTorch converts to fp32 and back, which costs time.")
    if "fp16" in used and able.capability is not None and able.capability < (7, 0):
        less = "fp16 is only a way to store numbers there" if not able.fp16 else "fp16 brings no tensor cores there"
        notes.append(f"{able.name} has no tensor cores: {less}.")
    return notes
