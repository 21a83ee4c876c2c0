"""A diagnosis as a sheet: one line for each finding, in one of three states."""

from __future__ import annotations

from flopwatch.diagnosis import Diagnosis
from flopwatch.diagnosis.findings import Finding
from flopwatch.sheet import Column, Sheet, Value


def sheet(diagnosis: Diagnosis) -> Sheet:
    """All sections, one below the other; what to do stands behind the reason."""
    rows: list[tuple[Value, ...]] = []
    for index, section in enumerate(diagnosis.sections):
        if index:
            rows.append(("", "", ""))
        rows.append((section.name.upper(), "", ""))
        rows += [(f"  {each.name}", str(each.state), _text(each)) for each in section.findings]
    return Sheet(
        _title(diagnosis), (Column("what"), Column("state"), Column("found, or why not, or what to do")), tuple(rows)
    )


def _text(finding: Finding) -> str:
    return f"{finding.text} {finding.todo}".strip()


def _title(diagnosis: Diagnosis) -> str:
    if not diagnosis.usable:
        return f"flopwatch {diagnosis.flopwatch} cannot count FLOP on this machine"
    return f"flopwatch {diagnosis.flopwatch} counts FLOP on this machine by: {', '.join(diagnosis.usable)}"
