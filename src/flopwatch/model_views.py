"""What a measured model looks like: sheets by layer, operator or function, and the document for machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flopwatch import record as records
from flopwatch.flops.tally import Tally
from flopwatch.frameworks import ROOT
from flopwatch.record import Record
from flopwatch.sheet import Column, Sheet, Value
from flopwatch.views import remarks

AXES = ("layer", "op", "function")
SORTS = ("order", "flop", "params", "name")
NO_OP = "(between operators)"


def sheet(measured: Record, by: str = "layer", *, depth: int | None = None, sort: str | None = None) -> Sheet:
    """The rows of one axis. `depth` sums layers below so many names into the one above; `sort` is one of SORTS.

    Layers come in the model's order, other rows with most work first.
    """
    total = _flop(measured, measured.tally)
    op = sum(measured.op().values())
    integers = f", {op:,} integer OP" if op else ""
    title = f"{measured.command[0]}: {total:,} FLOP{integers} measured, {measured.params:,} parameters"
    stages = [stage for stage in ("forward", "backward", "optimizer") if _stage(measured, stage)]
    staged = len(stages) > 1 and by != "function"
    rows = _layer_rows(measured, depth) if by == "layer" else _axis_rows(measured, by)
    order = sort or ("order" if by == "layer" else "flop")
    rows = sorted(rows, key=_order(order))
    empty = [row for row in rows if not (row["measured_flop"] or row["op"] or row["params"])]
    shown = [row for row in rows if row not in empty]
    # A terminal has room for the stages or for what a layer is, beside its name.
    described = by == "layer" and not staged
    columns = [Column(by)]
    if described:
        columns += [Column("kind"), Column("params", "count")]
    columns += [Column(stage, "count", "FLOP") for stage in stages] if staged else [Column("measured", "count", "FLOP")]
    if not staged:
        # Of FLOP alone, and so no measure of a layer that works in integers, too.
        columns.append(Column("integer OP", "count") if op else Column("share", "share"))
    found: list[tuple[Value, ...]] = []
    for row in shown:
        values: list[Value] = [row["name"]]
        if described:
            values += [row["kind"], row["params"]]
        if staged:
            values += [row["stages"].get(stage, 0) for stage in stages]
        else:
            share = row["measured_flop"] / total if total else None
            values += [row["measured_flop"], sum(row["op"].values()) if op else share]
        found.append(tuple(values))
    summed = f"{sum(row['measured_flop'] for row in rows):,} FLOP"
    if op:
        summed += f", {sum(sum(row['op'].values()) for row in rows):,} integer OP"
    notes = [f"rows sum to the total: {summed}"]
    if empty:
        notes.append(f"not shown, since without parameters and operations of their own: {len(empty)} of {len(rows)}")
    return Sheet(title, tuple(columns), tuple(found), (*notes, *remarks(measured)))


def document(measured: Record, by: str = "layer", *, depth: int | None = None) -> dict[str, Any]:
    """The record's document with the keys of `flopwatch model --json`; null stands for what was not estimated."""
    rows = _layer_rows(measured, depth) if by == "layer" else _axis_rows(measured, by)
    return records.document(measured) | {
        "model": measured.command[0],
        "total": {
            "mac": None,
            "flop": None,
            "params": measured.params,
            "measured_flop": _flop(measured, measured.tally),
        },
        "by": by,
        "rows": rows,
    }


def _layer_rows(measured: Record, depth: int | None) -> list[dict[str, Any]]:
    kinds = {part.name: part.kind for part in measured.layers}
    params: dict[str, int] = {}
    tallies: dict[str, dict[str, list[Tally]]] = {}
    for part in measured.layers:
        name = _shortened(part.name, depth)
        params[name] = params.get(name, 0) + part.params
        tallies.setdefault(name, {})
    for where, tally in measured.by_place.items():
        name = _shortened(where.layer, depth) if where.layer in kinds else where.layer
        tallies.setdefault(name, {}).setdefault(where.function, []).append(tally)
    return [_row(measured, name, kinds.get(name, ""), params.get(name, 0), each) for name, each in tallies.items()]


def _axis_rows(measured: Record, by: str) -> list[dict[str, Any]]:
    tallies: dict[str, dict[str, list[Tally]]] = {}
    for where, tally in measured.by_place.items():
        name = getattr(where, by) or (NO_OP if by == "op" else "(none)")
        tallies.setdefault(name, {}).setdefault(where.function, []).append(tally)
    return [_row(measured, name, "", 0, each) for name, each in tallies.items()]


def _row(measured: Record, name: str, kind: str, params: int, tallies: dict[str, list[Tally]]) -> dict[str, Any]:
    whole = Tally.total(tally for each in tallies.values() for tally in each)
    return {
        "name": name,
        "kind": kind,
        "mac": None,
        "flop": None,
        "measured_flop": _flop(measured, whole),
        "params": params,
        "measured": {str(dtype): count for dtype, count in measured.flop(whole).items()},
        "op": {str(dtype): count for dtype, count in measured.op(whole).items()},
        "stages": {stage: _flop(measured, Tally.total(each)) for stage, each in sorted(tallies.items())},
    }


def _order(sort: str) -> Callable[[dict[str, Any]], Any]:
    keys: dict[str, Callable[[dict[str, Any]], Any]] = {
        "order": lambda row: 0,
        "flop": lambda row: -row["measured_flop"],
        "params": lambda row: -row["params"],
        "name": lambda row: row["name"],
    }
    return keys[sort]


def _shortened(path: str, depth: int | None) -> str:
    """The first `depth` names of a path, which dots or slashes separate; the model itself stays."""
    if depth is None or path == ROOT:
        return path
    separator = "/" if "/" in path else "."
    return separator.join(path.split(separator)[:depth]) if depth else ROOT


def _stage(measured: Record, stage: str) -> bool:
    return any(where.function == stage for where in measured.by_place)


def _flop(measured: Record, tally: Tally) -> int:
    return sum(measured.flop(tally).values())
