"""What a precision is, and the presets, which are data (presets.toml); knows no framework."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal

import msgspec

Dtype = Literal["fp32", "fp16", "bf16"]
DTYPES: tuple[Dtype, ...] = ("fp32", "fp16", "bf16")
Scaler = float | Literal["none", "dynamic"]


@dataclass(frozen=True, kw_only=True)
class Precision:
    """Which datatypes a training step uses, and where; every field can be set apart from the others.

    `norms` is the type of the parameters and buffers of BatchNorm with affine=True; every other parameter and buffer has
    that of `parameters`. `autocast` is the type that functions cast their inputs to, or "none". Floating inputs are cast to
    `inputs`, outputs to `outputs`, unless "kept". `masters`: the optimizer works on fp32 copies of narrow parameters.
    `scaler`: the loss is multiplied by nothing, by a number, or by one that follows overflows; a number never looks for
    overflow and never skips a step unless `checked`. `tf32`: fp32 products may be rounded to TF32.
    """

    name: str
    parameters: Dtype
    norms: Dtype
    autocast: Dtype | Literal["none"]
    inputs: Dtype | Literal["kept"]
    outputs: Dtype | Literal["kept"]
    masters: bool
    scaler: Scaler
    tf32: bool
    checked: bool = False
    about: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()

    @property
    def skips(self) -> bool:
        """Whether a step whose gradients overflow is skipped."""
        return self.scaler == "dynamic" or (self.scaler != "none" and self.checked)

    @property
    def products(self) -> Dtype:
        """The type of the operands of convolutions and matrix products."""
        return self.parameters if self.autocast == "none" else self.autocast

    def as_json(self) -> dict[str, Any]:
        """The fields that decide what is computed."""
        return {key: getattr(self, key) for key in ("name", *FIELDS)}


# What --precision can set, in the order in which it is said.
FIELDS = ("parameters", "norms", "autocast", "inputs", "outputs", "masters", "scaler", "checked", "tf32")


def _presets() -> Mapping[str, Precision]:
    text = (resources.files("flopwatch.training.precision") / "presets.toml").read_text(encoding="utf-8")
    rows = msgspec.convert(tomllib.loads(text)["preset"], list[Precision])
    return MappingProxyType({row.name: row for row in rows})


PRESETS: Mapping[str, Precision] = _presets()
