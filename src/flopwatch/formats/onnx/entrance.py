"""What goes into a model: the sizes of its inputs, from the file and from what the user says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.formats.onnx.loading import Model
from flopwatch.formats.onnx.values import Value

Shapes = Mapping[str, Sequence[int]] | Sequence[Sequence[int]]


@dataclass(slots=True)
class Entrance:
    """The inputs with their sizes; `dims` says what each named size is, also of those that were given by a whole shape.

    `changed` is whether a size that the file gives as a number was replaced by another one.
    """

    values: dict[str, Value] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)
    changed: bool = False


def entrance(model: Model, *, dims: Mapping[str, int], shapes: Shapes, batch: int | None) -> Entrance:
    """Put sizes to the inputs of a model.

    `dims` gives sizes by name ("batch", or "x[0]" for one that has no name), `shapes` whole shapes by input or in their order,
    `batch` the first size of all inputs. UsageError if sizes are missing (it names them), unknown or contradict each other.
    """
    constants = {each.name for each in model.proto.graph.initializer}
    constants |= {each.values.name for each in model.proto.graph.sparse_initializer}
    inputs = [each for each in model.proto.graph.input if each.name not in constants]
    given = _by_name(inputs, shapes)
    made = Entrance(dims=dict(dims))
    axes = {each.name: _axes(each) for each in inputs}
    known = {name for names in axes.values() for name in names or () if isinstance(name, str)}
    known |= {dim.dim_param for info in _infos(model) for dim in _dims(info.type) if dim.dim_param}
    for name, size in dims.items():
        if name not in known:
            raise UsageError(f"No size of {model.name} is called {name!r}.", todo=_offer("Its sizes", sorted(known)))
        if size < 0:
            raise UsageError(f"The size {name} cannot be {size}.", todo="Give a number from 0 on.")
    for each in inputs:
        if each.name in given:
            _take(each.name, axes[each.name], given[each.name], made)
    if batch is not None:
        _batch(model, {name: names for name, names in axes.items() if name not in given}, batch, made)
    missing: dict[str, None] = {}
    for each in inputs:
        made.values[each.name] = _value(each, axes[each.name], made, missing)
    if missing:
        raise UsageError(
            f"{model.name} leaves the size of its input open: {', '.join(missing)}.",
            todo=f"Give each a number, for example --dim {next(iter(missing))}=8, or the whole shape, --input NAME=SHAPE.",
        )
    return made


def _infos(model: Model) -> list[Any]:
    return [*model.proto.graph.value_info, *model.proto.graph.output]


def _dims(proto: Any) -> Sequence[Any]:
    kind = proto.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return _dims(getattr(proto, kind).elem_type)
    return getattr(proto, kind).shape.dim if kind in ("tensor_type", "sparse_tensor_type") else ()


def _axes(info: Any) -> list[int | str] | None:
    """The sizes of an input: numbers, or names where they are open; None if not even its rank is told."""
    kind = info.type.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type") and not getattr(info.type, kind).HasField("shape"):
        return None
    found: list[int | str] = []
    for place, dim in enumerate(_dims(info.type)):
        fixed = dim.HasField("dim_value") and dim.dim_value >= 0
        found.append(dim.dim_value if fixed else dim.dim_param or f"{info.name}[{place}]")
    return found


def _by_name(inputs: Sequence[Any], shapes: Shapes) -> dict[str, tuple[int, ...]]:
    names = [each.name for each in inputs]
    if not isinstance(shapes, Mapping):
        if len(shapes) > len(names):
            raise UsageError(
                f"{len(shapes)} shapes are given, and the model has {len(names)} input{'s' if len(names) != 1 else ''}.",
                todo=_offer("They are", names),
            )
        shapes = dict(zip(names, shapes, strict=False))
    for name in shapes:
        if name not in names:
            raise UsageError(f"The model has no input {name!r}.", todo=_offer("Its inputs are", names))
    return {name: tuple(shape) for name, shape in shapes.items()}


def _offer(what: str, names: Sequence[str]) -> str:
    return f"{what}: {', '.join(names)}." if names else f"{what}: none."


def _take(name: str, axes: list[int | str] | None, shape: tuple[int, ...], made: Entrance) -> None:
    if axes is None:
        axes = list(shape)
    if len(axes) != len(shape):
        raise UsageError(
            f"The input {name!r} has {len(axes)} dimensions, not {len(shape)}.",
            seen=f"The file says {'x'.join(map(str, axes))}.",
        )
    for axis, size in zip(axes, shape, strict=True):
        if isinstance(axis, str):
            if made.dims.setdefault(axis, size) != size:
                raise UsageError(f"The size {axis} is said to be {made.dims[axis]} and, by the input {name!r}, {size}.")
        elif axis != size:
            made.changed = True
    made.values[name] = Value(shape)


def _batch(model: Model, axes: Mapping[str, list[int | str] | None], batch: int, made: Entrance) -> None:
    if batch < 1:
        raise UsageError(f"A batch cannot have {batch} items.", todo="Give a number from 1 on.")
    first = {name: sizes[0] for name, sizes in axes.items() if sizes}
    names = {size for size in first.values() if isinstance(size, str)}
    likely = {name for name in names if name.lower().startswith("batch") or name.lower() in ("n", "b", "bs")}
    if likely or len(names) == 1 or all(name.endswith("[0]") for name in names):
        chosen = likely or names
    else:
        raise UsageError(
            f"Which size of {model.name} is the batch?", seen=_offer("Those in front are", sorted(names)),
            todo="Give it by name: --dim NAME=SIZE.",
        )  # fmt: skip
    for name in chosen:
        if made.dims.setdefault(name, batch) != batch:
            raise UsageError(f"The size {name} is said to be {made.dims[name]} and, as the batch, {batch}.")
    if names:
        return
    if len(set(first.values())) > 1:
        raise UsageError(
            f"The inputs of {model.name} do not begin with one common size, so which is the batch?",
            todo="Give their shapes: --input NAME=SHAPE.",
        )
    for name, sizes in axes.items():
        if sizes:
            made.changed |= sizes[0] != batch
            made.values[name] = Value((batch, *(size if isinstance(size, int) else None for size in sizes[1:])))


def _value(info: Any, axes: list[int | str] | None, made: Entrance, missing: dict[str, None]) -> Value:
    kind = info.type.WhichOneof("value")
    overruled = made.values.get(info.name)
    if axes is None and overruled is None:
        missing[info.name] = None
    sizes: list[int | None] = []
    for place, axis in enumerate(axes or ()):
        if overruled is not None and overruled.shape is not None and overruled.shape[place] is not None:
            sizes.append(overruled.shape[place])
        elif isinstance(axis, int):
            sizes.append(axis)
        elif axis in made.dims:
            sizes.append(made.dims[axis])
        else:
            missing[axis] = None
    inner = info.type
    while inner.WhichOneof("value") in ("sequence_type", "optional_type"):
        inner = getattr(inner, inner.WhichOneof("value")).elem_type
    dtype = getattr(inner, inner.WhichOneof("value") or "tensor_type").elem_type
    value = Value(overruled.shape if axes is None and overruled is not None else tuple(sizes), dtype)
    if inner is not info.type and info.type.optional_type.elem_type.WhichOneof("value") == "sequence_type":
        kind = "sequence_type"
    missable = info.type.WhichOneof("value") == "optional_type"
    return Value(element=value, optional=missable) if kind == "sequence_type" else replace(value, optional=missable)
