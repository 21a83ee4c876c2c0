"""What `flopwatch model --json` prints: the record's document, and the rows of an axis with figures ready to use."""

from __future__ import annotations

from typing import Any

from flopwatch import record as records
from flopwatch.model_views.rows import Part, Row, part_of, rows_of, sides
from flopwatch.record import Record


def document(record: Record, by: str = "layer", *, depth: int | None = None) -> dict[str, Any]:
    """JSON types; null stands for what was not estimated or not measured. Keys are stable within one `schema`."""
    estimate, measured = sides(record)
    whole = Row(
        record.command[0],
        "",
        record.params,
        None if estimate is None else part_of(estimate, estimate.cells),
        None if measured is None else part_of(measured, measured.cells),
    )
    return records.document(record) | {
        "model": record.command[0],
        "total": _row(whole),
        "by": by,
        "rows": [_row(row) for row in rows_of(record, by, depth)],
    }


def _row(row: Row) -> dict[str, Any]:
    estimate, measured = row.estimate, row.measured
    return {
        "name": row.name,
        "kind": row.kind,
        "params": row.params,
        **_estimated(estimate),
        "measured_flop": None if measured is None else measured.total,
        "measured": None if measured is None else _by_name(measured.flop),
        "measured_op": None if measured is None else _by_name(measured.op),
        "measured_stages": None if measured is None else measured.stages,
        "ratio": row.ratio,
    }


def _estimated(part: Part | None) -> dict[str, Any]:
    if part is None:
        names = ("mac", "flop", "op", "operations", "stages", "calls", "padding_mac", "causal_mac", "read", "written")
        return dict.fromkeys((*names, "intensity"))
    return {
        "mac": part.mac,
        "flop": part.total,
        "op": _by_name(part.op),
        "operations": _by_name(part.operations),
        "stages": part.stages,
        "calls": part.calls,
        "padding_mac": part.padding,
        "causal_mac": part.causal,
        "read": part.read,
        "written": part.written,
        "intensity": part.intensity,
    }


def _by_name(counts: Any) -> dict[str, int]:
    return {str(name): count for name, count in counts.items()}
