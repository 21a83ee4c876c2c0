"""Records as JSON text and files: written with everything that is derived from them, read back from what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from flopwatch.attribution import Row
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.record.parts import Ops, ops_of, tally_of
from flopwatch.record.record import SCHEMA, Record


def document(record: Record, by: str | None = None) -> dict[str, Any]:
    """The record with all figures that are derived from it, as JSON types; `by` adds the rows of an axis.

    This is what `--json` prints and what a saved file holds; its keys are stable within one `schema`.
    """
    stored: dict[str, Any] = msgspec.to_builtins(record)
    cells = stored.pop("cells")
    for absent in ("layers", "calls", "memory", "estimate"):
        if not stored[absent]:
            del stored[absent]
    if record.estimate is not None:
        stored["estimate"] = document(record.estimate)
    derived: dict[str, Any] = {
        "lanes": record.counted_lanes,
        "flop": {str(dtype): count for dtype, count in record.flop().items()},
        "op": {str(dtype): count for dtype, count in record.op().items()},
        "operations": [_operation(record, each) for each in ops_of(record.tally)],
        "coverage": None if record.events else record.coverage,
    }
    if by is not None:
        derived |= {"by": by, "rows": [_row(record, row) for row in record.rows(by)]}
    return stored | derived | {"cells": cells}


def _operation(record: Record, each: Ops) -> dict[str, Any]:
    tally = tally_of((each,))
    stored: dict[str, Any] = msgspec.to_builtins(each)
    return stored | {"flop": sum(record.flop(tally).values()), "op": sum(record.op(tally).values())}


def _row(record: Record, row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "flop": {str(dtype): count for dtype, count in record.flop(row.tally).items()},
        "op": {str(dtype): count for dtype, count in record.op(row.tally).items()},
        "operations": [_operation(record, each) for each in ops_of(row.tally)],
    }


def encode(record: Record, by: str | None = None) -> bytes:
    """The record as JSON text, with the rows of an axis if `by` names one."""
    return msgspec.json.format(msgspec.json.encode(document(record, by)), indent=1) + b"\n"


def decode(data: bytes, name: str = "the record") -> Record:
    """Read a record from JSON text; raises UsageError if it is none, or was written by a later version."""
    try:
        schema = msgspec.json.decode(data, type=_Header).schema
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{name} is not a flopwatch record.", seen=f"{error}.") from error
    if schema > SCHEMA:
        raise UsageError(
            f"{name} was written by a later flopwatch.",
            seen=f"Its schema is {schema}; this version reads up to {SCHEMA}.",
            todo="Upgrade flopwatch.",
        )
    try:
        record = msgspec.json.decode(data, type=Record)
        record.rule, record.tally  # noqa: B018 - damaged values are to be found here, not in a report
    except (msgspec.DecodeError, ValueError, KeyError) as error:
        raise UsageError(f"{name} is a damaged flopwatch record.", seen=f"{error}.") from error
    return record


class _Header(msgspec.Struct):
    schema: int


def load(path: str | Path) -> Record:
    """Read a saved record; raises UsageError if there is none at `path`."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    return decode(data, repr(str(path)))


def save(record: Record, path: str | Path, by: str | None = None) -> None:
    """Save a record as JSON; raises CannotMeasureError if the file cannot be written."""
    try:
        Path(path).write_bytes(encode(record, by))
    except OSError as error:
        raise CannotMeasureError(f"The record could not be written to {str(path)!r}: {error.strerror}.") from error
