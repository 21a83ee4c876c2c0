"""From `O2,scaler=128,norms=fp16` to a precision; combinations that make no sense are refused with the reason."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from flopwatch.errors import UsageError
from flopwatch.training.precision.presets import DTYPES, FIELDS, PRESETS, Dtype, Precision

# The names that Apex had for the same things.
_APEX = {
    "cast_model_type": "parameters",
    "keep_batchnorm_fp32": "norms",
    "master_weights": "masters",
    "loss_scale": "scaler",
    "cast_model_outputs": "outputs",
    "patch_torch_functions": "autocast",
}
_DTYPES: dict[str, Dtype] = {
    "float32": "fp32",
    "float": "fp32",
    "float16": "fp16",
    "half": "fp16",
    "bfloat16": "bf16",
    **{each: each for each in DTYPES},
}
_YES = ("true", "yes", "on", "1")
_NO = ("false", "no", "off", "0")


def find(name: str, overrides: Mapping[str, object] | None = None) -> Precision:
    """The preset `name` with its fields replaced by those behind commas (`O2,scaler=128`) and by `overrides`.

    The field names of Apex (loss_scale, keep_batchnorm_fp32, …) are understood, values may be text. Types that follow from
    `parameters` (inputs, norms of the same type) follow when it is replaced. Raises UsageError for a name, field, value or
    combination that makes no sense.
    """
    wanted, *fields = (part.strip() for part in name.split(","))
    preset = _preset(wanted)
    asked: dict[str, object] = {}
    for field in fields:
        key, equals, value = field.partition("=")
        if not equals:
            raise UsageError(
                f"{field!r} is no field of a precision.",
                todo=f"Write PRESET,field=value with one of {', '.join(FIELDS)}.",
            )
        asked[key.strip()] = value.strip()
    asked |= dict(overrides or {})
    values = dict(_value(key, value, preset) for key, value in asked.items() if value is not None)
    changed = _follow(preset, values)
    precision = cast(Precision, replace(cast(Any, preset), **changed)) if changed else preset
    if values:
        said = [f"{field}={_text(values[field])}" for field in FIELDS if field in values]
        precision = replace(precision, name=",".join((preset.name, *said)))
    refuse(precision)
    return precision


def _preset(name: str) -> Precision:
    exact = {each.lower(): each for each in PRESETS}
    if name.lower() in exact:
        return PRESETS[exact[name.lower()]]
    _no_training(name)
    near = difflib.get_close_matches(name.lower(), exact, n=2)
    seen = f"Near it: {', '.join(exact[each] for each in near)}." if near else ""
    raise UsageError(f"There is no precision {name!r}.", seen=seen, todo=f"Known: {', '.join(PRESETS)}.")


def _no_training(name: str) -> None:
    lower = name.lower()
    if lower.startswith(("fp8", "float8", "e4m3", "e5m2")):
        raise UsageError(
            f"{name} trains no convolutions.",
            seen="FP8 training (Transformer Engine, torchao) exists for linear layers only; a network of convolutions would "
            "run in another type under that name.",
            todo="Take amp-bf16, O1 or O2.",
        )
    if lower.startswith(("int8", "int4", "ptq", "uint8")):
        raise UsageError(f"{name} is a type for inference, not for training.", todo=f"Known: {', '.join(PRESETS)}.")


def _value(key: str, value: object, preset: Precision) -> tuple[str, object]:
    """The field and value of one override."""
    field = _APEX.get(key, key)
    if field not in FIELDS:
        near = difflib.get_close_matches(key, (*FIELDS, *_APEX), n=1)
        seen = f"Near it: {near[0]}." if near else ""
        raise UsageError(f"A precision has no field {key!r}.", seen=seen, todo=f"Fields: {', '.join(FIELDS)}.")
    text = str(value).strip().lower().removeprefix("torch.")
    if field in ("masters", "checked", "tf32"):
        return field, _yes(key, text)
    if field == "scaler":
        return field, _scaler(text)
    if key == "keep_batchnorm_fp32":
        return field, "fp32" if _yes(key, text) else preset.parameters
    if key == "patch_torch_functions":
        return field, "fp16" if _yes(key, text) else "none"
    return field, _dtype(field, text)


def _yes(key: str, text: str) -> bool:
    if text in _YES or text in _NO:
        return text in _YES
    raise UsageError(f"{key} is yes or no, not {text!r}.")


def _scaler(text: str) -> object:
    if text in ("none", "dynamic"):
        return text
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise UsageError(f"scaler is none, dynamic or a number above 0, not {text!r}.")
    return number


def _dtype(field: str, text: str) -> str:
    if text in ("none", "kept") and field in ("autocast", "inputs", "outputs"):
        return "none" if field == "autocast" else "kept"
    if text not in _DTYPES:
        _no_training(text)
        also = {"autocast": ", none", "inputs": ", kept", "outputs": ", kept"}.get(field, "")
        raise UsageError(f"{field} can't be {text!r}.", todo=f"Take one of {', '.join(DTYPES)}{also}.")
    return _DTYPES[text]


def _follow(preset: Precision, values: dict[str, object]) -> dict[str, object]:
    """The values with those that follow from other ones."""
    changed = dict(values)
    if "parameters" in values:
        if preset.inputs == preset.parameters:
            changed.setdefault("inputs", values["parameters"])
        if preset.norms == preset.parameters:
            changed.setdefault("norms", values["parameters"])
    return changed


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


_Rule = tuple[Callable[[Precision], bool], str]
_RULES: tuple[_Rule, ...] = (
    (
        lambda it: it.autocast != "none" and it.parameters != "fp32",
        "Autocast (O1) puts casts around functions, and the weights themselves stay fp32: parameters can't be narrower. "
        "Take O2 or O3 for a narrow model.",
    ),
    (
        lambda it: it.autocast != "none" and it.norms != "fp32",
        "Under autocast (O1) BatchNorm has fp32 parameters anyway: there is nothing for norms to choose.",
    ),
    (
        lambda it: it.autocast != "none" and it.masters,
        "Master weights make no sense under autocast (O1), whose weights are fp32 themselves.",
    ),
    (lambda it: it.autocast == "fp32", "Autocast to fp32 casts nothing. Take autocast=none."),
    (
        lambda it: it.masters and it.parameters == "fp32",
        "Master weights are fp32 copies of narrow weights; these weights are fp32 themselves.",
    ),
    (
        lambda it: it.norms not in ("fp32", it.parameters),
        "BatchNorm gets its input in the type of the other layers: norms are of that type or fp32.",
    ),
    (
        lambda it: it.autocast == "none" and it.inputs != it.parameters,
        "Inputs must have the type of the parameters: a layer can't multiply two types.",
    ),
    (
        lambda it: it.checked and it.scaler == "none",
        "Without a scaler gradients are not looked at: checked needs scaler=1 or another number.",
    ),
    (
        lambda it: it.tf32 and it.products != "fp32",
        "TF32 is a way to multiply fp32 numbers, and the products of this precision are not fp32.",
    ),
)


def refuse(precision: Precision) -> None:
    """Raise UsageError for a combination that makes no sense, with the reason."""
    for wrong, reason in _RULES:
        if wrong(precision):
            raise UsageError(f"The precision {precision.name} can't be.", seen=reason)
