"""What an explanation looks like: a sheet of causes, a sheet of layers or operators with their causes, and a document for machines."""

from __future__ import annotations

from typing import Any

from flopwatch.explaining import CAUSES, Explanation, Part, Place, Row
from flopwatch.sheet import Column, Sheet, Value

AXES = ("cause", "layer", "op")

UNEXPLAINED = "unexplained"

# Sentences that a row of the sheet shows; a document has all.
_SENTENCES = 2
# Layers of unexplained work that a note names.
_NAMED = 5


def explain_sheet(explanation: Explanation, by: str = "cause", *, name: str = "") -> Sheet:
    """The causes with their sizes, largest first, or with `by` "layer" or "op" the gap of each with its causes; rows sum to the gap."""
    gap = explanation.gap
    title = f"{explanation.measured:,} FLOP measured, {explanation.estimated:,} estimated: a gap of {gap:+,}"
    title = f"{name}: {title}" if name else title
    sizes = (Column("gap", "count", "FLOP"), Column("of the gap", "share"))
    rows: list[tuple[Value, ...]]
    if by == "cause":
        columns = [Column("cause"), *sizes, Column("where")]
        rows = [_cause_row(explanation, row) for row in explanation.rows]
        if left := [part.place for part in explanation.parts if part.unexplained]:
            unexplained = explanation.unexplained
            rows.append((UNEXPLAINED, unexplained, _share(unexplained, gap), _where(left)))
    else:
        columns = [Column(by), *sizes, Column("causes", "text", "FLOP")]
        rows = [_axis_row(explanation, label, parts) for label, parts in _grouped(explanation, by)]
    return Sheet(title, tuple(columns), tuple(rows), (*_notes(explanation), *(_shown(row) for row in explanation.rows)))


def document(explanation: Explanation) -> dict[str, Any]:
    """All of it as JSON types: causes with meaning, places and evidence, and each place with its own; sizes are signed FLOP."""
    return {
        "measured_flop": explanation.measured,
        "estimated_flop": explanation.estimated,
        "gap": explanation.gap,
        "explained": explanation.share,
        "unexplained": explanation.unexplained,
        "missing": explanation.missing,
        "causes": [
            {
                "cause": row.cause,
                "meaning": CAUSES[row.cause],
                "flop": row.flop,
                "evidence": list(row.evidence),
                "places": [place._asdict() for place in row.places],
            }
            for row in explanation.rows
        ],
        "places": [_place(part) for part in explanation.parts if part.gap],
    }


def _place(part: Part) -> dict[str, Any]:
    return part.place._asdict() | {
        "measured_flop": part.measured,
        "estimated_flop": part.estimated,
        "gap": part.gap,
        "unexplained": part.unexplained,
        "causes": [{"cause": each.cause, "flop": each.flop, "evidence": each.evidence} for each in part.found],
    }


def _cause_row(explanation: Explanation, row: Row) -> tuple[Value, ...]:
    return (row.cause, row.flop, _share(row.flop, explanation.gap), _where(list(row.places)))


def _shown(row: Row) -> str:
    shown = "; ".join(row.evidence[:_SENTENCES])
    more = f"; and {len(row.evidence) - _SENTENCES} more" if len(row.evidence) > _SENTENCES else ""
    return f"{row.cause}: {CAUSES[row.cause]} (shown by: {shown}{more})"


def _share(flop: int, gap: int) -> float | None:
    return flop / gap if gap else None


def _where(places: list[Place]) -> str:
    layers = list(dict.fromkeys(place.layer for place in places))
    ops = list(dict.fromkeys(_short(place.op) for place in places))
    within = layers[0] if len(layers) == 1 else f"{len(layers)} layers"
    named = ", ".join(ops[:3]) + (f" and {len(ops) - 3} more" if len(ops) > 3 else "")
    return f"{named} in {within}" if named else within


def _short(op: str) -> str:
    return " + ".join(each.rpartition("::")[2] for each in op.split(" + "))


def _grouped(explanation: Explanation, by: str) -> list[tuple[str, list[Part]]]:
    groups: dict[str, list[Part]] = {}
    for part in explanation.parts:
        label = part.place.layer if by == "layer" else part.place.op or "(between operators)"
        groups.setdefault(label, []).append(part)
    found = [(label, parts) for label, parts in groups.items() if any(part.gap for part in parts)]
    return sorted(found, key=lambda item: -abs(sum(part.gap for part in item[1])))


def _axis_row(explanation: Explanation, label: str, parts: list[Part]) -> tuple[Value, ...]:
    sizes: dict[str, int] = {}
    for part in parts:
        for each in part.found:
            sizes[each.cause] = sizes.get(each.cause, 0) + each.flop
        if part.unexplained:
            sizes[UNEXPLAINED] = sizes.get(UNEXPLAINED, 0) + part.unexplained
    gap = sum(part.gap for part in parts)
    named = ", ".join(f"{cause} {flop:+,}" for cause, flop in sorted(sizes.items(), key=lambda item: -abs(item[1])))
    return (label, gap, _share(gap, explanation.gap), named)


def _notes(explanation: Explanation) -> tuple[str, ...]:
    share = explanation.share
    percent = "100 %" if share == 1 else f"{min(share * 100, 99.99):.2f} %"
    notes = [f"explained: {percent} of the gap; rows sum to it: {explanation.gap:+,} FLOP"]
    left = sorted((part for part in explanation.parts if part.unexplained), key=lambda part: -abs(part.unexplained))
    if left:
        named = ", ".join(f"{part.place.layer} {_short(part.place.op)} {part.unexplained:+,}" for part in left[:_NAMED])
        more = f" and {len(left) - _NAMED} more places" if len(left) > _NAMED else ""
        notes.append(f"unexplained, place by place {explanation.missing:,} FLOP: {named}{more}")
    return tuple(notes)
