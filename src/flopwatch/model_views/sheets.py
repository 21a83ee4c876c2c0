"""Sheets of a model: a table or tree that fits a terminal, with one group of columns, and one with all columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from flopwatch import views
from flopwatch.flops.operations import Operation
from flopwatch.frameworks import FUNCTIONS, ROOT
from flopwatch.model_views.rows import Part, Row, ordered, part_of, rows_of, separator_of, sides
from flopwatch.record import Record
from flopwatch.sheet import Column, Sheet, Value

COLUMNS = ("work", "operations", "bytes")

Field = tuple[Column, Callable[[Row], Value]]


def sheet(
    record: Record,
    by: str = "layer",
    *,
    depth: int | None = None,
    sort: str | None = None,
    columns: str = "work",
    tree: bool = False,
) -> Sheet:
    """The rows of one axis, with one of COLUMNS. `depth` sums layers below so many names into the one above; `sort` is one of SORTS.

    Layers come in the model's order, other rows with most work first. In a `tree` each layer has the work of those below it.
    """
    rows = rows_of(record, by, depth, inclusive=tree)
    if not tree:
        rows = ordered(rows, sort or ("order" if by == "layer" else "flop"))
    shown = [row for row in rows if not row.empty]
    whole = _whole(record)
    notes = (
        [f"rows sum to the total: {_summed(rows)}"] if not tree else ["each layer has the work of those below it, too"]
    )
    if len(shown) < len(rows):
        notes.append(
            f"not shown, since without parameters and operations of their own: {len(rows) - len(shown)} of {len(rows)}"
        )
    name = Column(by)
    if tree:
        layers = {layer.name for layer in record.layers}
        shown = [replace(row, name=_indented(row.name)) if row.name in layers else row for row in shown]
    fields = _fields(columns, by, whole, shown)
    return Sheet(
        _title(record, whole),
        (name, *(column for column, _ in fields)),
        tuple((row.name, *(value(row) for _, value in fields)) for row in shown),
        (*notes, *_remarks(record, whole)),
    )


def full_sheet(record: Record, by: str = "layer", *, depth: int | None = None, sort: str | None = None) -> Sheet:
    """All columns and all rows of one axis, for programs that read tables."""
    rows = ordered(rows_of(record, by, depth), sort or ("order" if by == "layer" else "flop"))
    whole = _whole(record)
    fields: list[Field] = []
    if by == "layer":
        fields += [(Column("kind"), lambda row: row.kind), (Column("params", "count"), lambda row: row.params)]
    if whole.estimate is not None:
        fields.append((Column("calls", "count"), _estimated(lambda part: part.calls)))
        fields += _work(whole) + _operations(whole.estimate)
        fields.append((Column("padding MAC", "count"), _estimated(lambda part: part.padding)))
        fields.append((Column("causal MAC", "count"), _estimated(lambda part: part.causal)))
        fields += _bytes()
        fields += _stages(whole.estimate, _estimated, "estimated ")
    if whole.measured is not None:
        fields += _measured(whole) + _stages(whole.measured, _of_measured, "measured ")
    return Sheet(
        _title(record, whole),
        (Column(by), *(column for column, _ in fields)),
        tuple((row.name, *(value(row) for _, value in fields)) for row in rows),
    )


def _fields(columns: str, by: str, whole: Row, shown: list[Row]) -> list[Field]:
    if columns == "bytes":
        return _bytes()
    if columns == "operations":
        return [] if whole.estimate is None else _operations(whole.estimate)
    staged = whole.estimate or whole.measured
    several = by != "function" and staged is not None and len(staged.stages) > 1
    if whole.measured is not None:
        work = [] if whole.estimate is None else _work(whole)
        return work + _measured(whole)
    described: list[Field] = []
    if by == "layer" and not several:
        described = [(Column("kind"), lambda row: row.kind), (Column("params", "count"), lambda row: row.params)]
    if several and whole.estimate is not None:
        # A terminal has room for the stages or for what a layer is, beside its name.
        return [_work(whole)[0], *_stages(whole.estimate, _estimated, "")]
    return described + _work(whole)


def _estimated(value: Callable[[Part], Value]) -> Callable[[Row], Value]:
    return lambda row: None if row.estimate is None else value(row.estimate)


def _of_measured(value: Callable[[Part], Value]) -> Callable[[Row], Value]:
    return lambda row: None if row.measured is None else value(row.measured)


def _work(whole: Row) -> list[Field]:
    name = "FLOP" if whole.measured is None else "estimated"
    unit = "" if whole.measured is None else "FLOP"
    fields: list[Field] = [
        (Column("MAC", "count"), _estimated(lambda part: part.mac)),
        (Column(name, "count", unit), _estimated(lambda part: part.total)),
    ]
    if whole.estimate is not None and whole.estimate.total_op:
        fields.append((Column("integer OP", "count"), _estimated(lambda part: part.total_op)))
    return fields


def _measured(whole: Row) -> list[Field]:
    fields: list[Field] = [(Column("measured", "count", "FLOP"), _of_measured(lambda part: part.total))]
    if whole.measured is not None and whole.measured.total_op:
        fields.append((Column("measured", "count", "OP"), _of_measured(lambda part: part.total_op)))
    fields.append((Column("ratio", "real"), lambda row: row.ratio))
    return fields


def _operations(whole: Part) -> list[Field]:
    def of(operation: Operation) -> Callable[[Part], Value]:
        return lambda part: part.operations.get(operation, 0)

    return [
        (Column(str(operation), "count", "FLOP"), _estimated(of(operation)))
        for operation in Operation
        if whole.operations.get(operation)
    ]


def _bytes() -> list[Field]:
    return [
        (Column("read", "count", "B"), _estimated(lambda part: part.read)),
        (Column("written", "count", "B"), _estimated(lambda part: part.written)),
        (Column("intensity", "real", "FLOP/B"), _estimated(lambda part: part.intensity)),
    ]


def _stages(whole: Part, side: Callable[[Callable[[Part], Value]], Callable[[Row], Value]], prefix: str) -> list[Field]:
    def of(stage: str) -> Callable[[Part], Value]:
        return lambda part: part.stages.get(stage, 0)

    return [(Column(prefix + stage, "count", "FLOP"), side(of(stage))) for stage in FUNCTIONS if stage in whole.stages]


def _whole(record: Record) -> Row:
    parts = [None if side is None else part_of(side, side.cells) for side in sides(record)]
    return Row(record.command[0], "", record.params, *parts)


def _title(record: Record, whole: Row) -> str:
    said = []
    if whole.estimate is not None:
        said.append(f"{whole.estimate.mac:,} MAC")
        said += _figures(whole.estimate, "estimated")
    if whole.measured is not None:
        said += _figures(whole.measured, "measured")
    if whole.ratio is not None:
        said.append(f"ratio {whole.ratio:.4f}")
    return f"{record.command[0]}: {', '.join(said)}, {record.params:,} parameters"


def _figures(part: Part, how: str) -> list[str]:
    said = [f"{part.total:,} FLOP {how}"]
    if part.total_op:
        said.append(f"{part.total_op:,} integer OP {how}")
    return said


def _summed(rows: Iterable[Row]) -> str:
    held = list(rows)
    said = []
    if any(row.estimate for row in held):
        parts = [row.estimate for row in held if row.estimate is not None]
        said += [f"{sum(part.mac for part in parts):,} MAC", f"{sum(part.total for part in parts):,} FLOP"]
        if any(part.total_op for part in parts):
            said.append(f"{sum(part.total_op for part in parts):,} integer OP")
    if any(row.measured for row in held):
        parts = [row.measured for row in held if row.measured is not None]
        said.append(f"{sum(part.total for part in parts):,} FLOP measured")
        if any(part.total_op for part in parts):
            said.append(f"{sum(part.total_op for part in parts):,} integer OP measured")
    return ", ".join(said)


def _remarks(record: Record, whole: Row) -> tuple[str, ...]:
    estimate, measured = sides(record)
    lines: list[str] = []
    if estimate is not None and whole.estimate is not None:
        lines += _of_estimate(estimate, whole.estimate)
        # The convention is said once.
        lines += views.remarks(estimate)[1 if measured is not None else 0 :]
    if measured is not None:
        lines += views.remarks(measured)
    return tuple(lines)


def _of_estimate(record: Record, part: Part) -> list[str]:
    lines = []
    if part.operations:
        shares = sorted(part.operations.items(), key=lambda item: (-item[1], item[0]))
        lines.append("FLOP by operation: " + ", ".join(f"{operation} {flop:,}" for operation, flop in shares))
    if part.padding or part.causal:
        said = [f"{part.padding:,} on padding"] if part.padding else []
        said += [f"{part.causal:,} on what a causal mask discards"] if part.causal else []
        lines.append(f"of the MAC, an implementation may leave out {' and '.join(said)}")
    intensity = "" if part.intensity is None else f"; arithmetic intensity {part.intensity:.4g} FLOP/B"
    lines.append(f"operators read {part.read:,} B and write {part.written:,} B, each by itself{intensity}")
    if record.memory is not None:
        memory = record.memory
        at = f" (in {memory.at})" if memory.at else ""
        buffers = f", buffers {memory.buffers:,} B" if memory.buffers else ""
        lines.append(
            f"memory: parameters {memory.parameters:,} B{buffers}, activations at most {memory.activations:,} B{at}"
        )
    return lines


def _indented(path: str) -> str:
    if path == ROOT:
        return path
    above, separator, name = path.rpartition(separator_of(path))
    return "  " * (above.count(separator) + 2 if separator else 1) + name
