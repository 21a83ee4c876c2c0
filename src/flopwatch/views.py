"""What a record looks like: the sheets that reports show, made from a record and nothing else."""

from __future__ import annotations

import re
import shlex
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from flopwatch.attribution import Row
from flopwatch.flops.tally import Tally
from flopwatch.record import Calls, Record, ops_of, tally_of
from flopwatch.sheet import Column, Sheet, Value

D = TypeVar("D", bound=str)

LONGEST_NAME = 36  # what 80 columns leave beside the figures
CONVENTIONS = {
    "pmu": "pmu (as Intel's FP_ARITH events count: FMA = 2, min, max and approximations = 1)",
    "arithmetic": "arithmetic (FMA = 2; min, max and approximations = 0)",
}


def overview(record: Record) -> tuple[Sheet, ...]:
    """What `flopwatch stat` prints without further wishes: totals, operations, and what to know about them."""
    counted = (events(record),) if record.events else (operations(record),)
    return (totals(record), *counted, Sheet("", (), (), remarks(record)))


def totals(record: Record) -> Sheet:
    """FLOP and integer OP by datatype, with the rate where the command was timed."""
    flop, op = record.flop(), record.op()
    every = sum(flop.values())
    columns = [Column("datatype"), Column("FLOP", "count"), Column("of all FLOP", "share")]
    rows: list[list[Value]] = [[str(dtype), count, _share(count, every)] for dtype, count in _largest_first(flop)]
    rows.append(["all floating-point", every, _share(every, every)])
    if op:
        columns.append(Column("integer OP", "count"))
        rows = [[*row, None] for row in rows]
        rows += [[str(dtype), None, None, count] for dtype, count in _largest_first(op)]
    if record.seconds:
        columns.append(Column("rate", "real", "GFLOP/s"))
        rows = [[*row, _rate(row[1], record.seconds)] for row in rows]
    return Sheet(_title(record), tuple(columns), tuple(tuple(row) for row in rows))


def operations(record: Record) -> Sheet:
    """Executed instructions by operation, datatype, lanes and masking, with their worth."""
    rows: list[tuple[Value, ...]] = []
    for each in ops_of(record.tally):
        tally = tally_of((each,))
        worth = sum(record.flop(tally).values()) + sum(record.op(tally).values())
        rows.append((each.operation, each.dtype, each.lanes, "masked" if each.masked else "", each.count, worth))
    rows.sort(key=lambda row: -int(row[5] or 0))
    columns = (
        Column("operation"),
        Column("datatype"),
        Column("lanes", "count"),
        Column(""),
        Column("instructions", "count"),
        Column("FLOP or OP", "count"),
    )
    return Sheet("", columns, tuple(rows))


def events(record: Record) -> Sheet:
    """The hardware events that were counted, with their raw codes and FLOP per count."""
    rows: list[tuple[Value, ...]] = [
        (each.name, f"r{each.code}" if each.code else "", each.count, each.weight) for each in record.events
    ]
    columns = (Column("event"), Column("code"), Column("count", "count"), Column("FLOP per count", "count"))
    return Sheet("", columns, tuple(rows))


def by_axis(record: Record, axis: str, top: int = 0, *, full_names: bool = False) -> Sheet:
    """The rows of one axis, most work first; with `top`, the rows after that many are summed in one."""
    rows = list(record.rows(axis))
    rest = rows[top:] if top and len(rows) > top + 1 else []
    if rest:
        rows = [*rows[:top], Row(f"({len(rest):,} more)", Tally.total(row.tally for row in rest))]
    names = [row.name for row in rows]
    if not full_names:
        names = shortened(names, axis)
    every = sum(record.flop().values())
    has_op = bool(record.op())
    columns = [Column(axis), Column("FLOP", "count"), Column("of all FLOP", "share")]
    if has_op:
        columns.append(Column("integer OP", "count"))
    columns.append(Column("datatypes"))
    found: list[tuple[Value, ...]] = []
    for name, row in zip(names, rows, strict=True):
        flop, op = record.flop(row.tally), record.op(row.tally)
        worth = sum(flop.values())
        values: list[Value] = [name, worth, _share(worth, every)]
        if has_op:
            values.append(sum(op.values()))
        found.append((*values, " ".join(str(dtype) for counts in (flop, op) for dtype, _ in _largest_first(counts))))
    return Sheet(f"by {axis}", tuple(columns), tuple(found))


def summary(record: Record) -> Sheet:
    """Everything about the whole in one list of quantities, for programs that read lines."""
    rows: list[tuple[Value, ...]] = []
    rows += [(f"flop.{dtype}", count, "FLOP") for dtype, count in _largest_first(record.flop())]
    rows.append(("flop", sum(record.flop().values()), "FLOP"))
    rows += [(f"op.{dtype}", count, "OP") for dtype, count in _largest_first(record.op())]
    for each in ops_of(record.tally):
        masked = ".masked" if each.masked else ""
        rows.append((f"instructions.{each.operation}.{each.dtype}.{each.lanes}{masked}", each.count, "instructions"))
    rows += [(f"unknown.{each.name}", each.count, "instructions") for each in record.unknown]
    rows += [(f"event.{each.name}", each.count, f"r{each.code}" if each.code else "") for each in record.events]
    rows.append(("coverage", None if record.events else record.coverage, "share"))
    rows.append(("complete", int(record.complete), "0 or 1"))
    rows.append(("exit_code", record.exit_code, ""))
    rows.append(("seconds", record.seconds, "s"))
    rows.append(("flop_per_second", _per_second(record), "FLOP/s"))
    return Sheet(_title(record), (Column("quantity"), Column("value", "real"), Column("unit")), tuple(rows))


def remarks(record: Record) -> tuple[str, ...]:
    """Sentences that belong to the figures: shares, coverage, what is missing or hidden, time."""
    if record.calls is not None:
        convention = f"convention: {CONVENTIONS.get(record.convention, record.convention)}"
        return (convention, coverage(record), *(f"note: {note}" for note in record.notes))
    lanes = "switched-on lanes only" if record.counted_lanes == "active" else "lanes of masked instructions in full"
    lines = [f"convention: {CONVENTIONS.get(record.convention, record.convention)}, {lanes}"]
    if record.weighed:
        lines = ["convention: the processor's own, see the notes: its counters give FLOP, not operations"]
    if sum(record.flop().values()):
        lines += _shares(record)
    lines.append(coverage(record))
    if record.hidden:
        lines.append(f"hidden from the program: {', '.join(record.hidden)} (so it may have chosen other code)")
    lines += [f"PARTIAL: {reason}" for reason in record.partial]
    if not record.complete and not record.partial:
        lines.append("PARTIAL: not everything was counted")
    lines += _repeats(record)
    lines += _times(record)
    if record.exit_code and not record.signal:
        lines.append(f"the program ended with exit code {record.exit_code}")
    return (*lines, *(f"note: {note}" for note in record.notes))


def coverage(record: Record) -> str:
    """How much of what ran is understood, in one line."""
    if record.events:
        return _coverage_of_events(record)
    if record.calls is not None:
        return _coverage_of_calls(record, record.calls)
    if not record.vector_instructions and not record.unknown:
        return "coverage: no vector instruction was executed"
    share = f"{record.coverage * 100:.2f}"
    if record.unknown and share == "100.00":
        share = "99.99"
    line = f"coverage: {share} % of the vector instructions classified"
    if not record.unknown:
        return f"{line}; unknown: none"
    kinds = ", ".join(f"{each.name} ({each.count:,} times)" for each in record.unknown[:5])
    more = ", …" if len(record.unknown) > 5 else ""
    return f"{line}; unknown: {len(record.unknown)} kinds: {kinds}{more}"


def _coverage_of_events(record: Record) -> str:
    known = len(record.events) - sum(any(each.name == event.name for each in record.unknown) for event in record.events)
    line = f"coverage: {known} of {len(record.events)} events classified; what no event counts is not seen"
    kinds = ", ".join(f"{each.name} ({each.count:,} times)" for each in record.unknown[:5])
    return f"{line}; unknown: {kinds or 'none'}"


def _coverage_of_calls(record: Record, calls: Calls) -> str:
    every = calls.counted + calls.free + calls.unknown
    line = f"coverage: {every:,} operator calls: {calls.counted:,} counted, {calls.free:,} free"
    if not calls.unknown:
        return f"{line}, unknown: none"
    share = _percent(calls.unknown_bytes / calls.bytes) if calls.bytes else "no share"
    kinds = ", ".join(f"{each.name} ({each.count:,} times, in {', '.join(each.layers)})" for each in record.unknown[:5])
    more = ", …" if len(record.unknown) > 5 else ""
    return f"{line}, {calls.unknown:,} UNKNOWN, which are not in the figures and handle {share} of the bytes: {kinds}{more}"


def shortened(names: Sequence[str], axis: str) -> list[str]:
    """Names for a table: libraries without their folder, symbols without their arguments; different names stay so."""
    if axis == "library":
        plain = [name.rsplit("/", 1)[-1] for name in names]
        return [_cut(short if plain.count(short) == 1 else name) for short, name in zip(plain, names, strict=True)]
    plain = [_without_arguments(name) for name in names]
    times, seen = Counter(plain), Counter[str]()
    found = []
    for name in plain:
        seen[name] += 1
        found.append(_cut(name) + (f" #{seen[name]}" if times[name] > 1 else ""))
    return found


def _without_arguments(name: str) -> str:
    """A C++ name without result type, template arguments and parameters; any other name as it is."""
    if ("(" not in name and "<" not in name) or name.startswith(("[", "(")):
        return name
    kept, depth = [], 0
    name = re.sub(r" \[clone [^]]*\]", "", name)
    for letter in name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator{}"):
        depth += (letter in "<(") - (letter in ">)")
        if depth == 0 and letter not in ">)":
            kept.append(letter)
    return "".join(kept).removesuffix(" const").rsplit(" ", 1)[-1] or name


def _cut(name: str) -> str:
    half = (LONGEST_NAME - 1) // 2
    return name if len(name) <= LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


def _title(record: Record) -> str:
    command = shlex.join(record.command).replace("\n", "⏎")
    return f"{record.subject}: {command if len(command) <= 68 else command[:67] + '…'}" if command else record.subject


def _shares(record: Record) -> list[str]:
    tally, rule = record.tally, record.rule
    fused = tally.fma_share(rule)
    widths = sorted(tally.width_shares(rule).items(), key=lambda item: -item[1])
    text = ", ".join(f"{width if not width.isdigit() else width + ' bit'} {_percent(share)}" for width, share in widths)
    share = "not told apart" if fused is None else f"{_percent(fused)} of the FLOP"
    lines = [f"in fused multiply-adds: {share}", f"by vector width: {text}"]
    masked = [(key, count) for key, count in tally.items() if key.masked]
    if masked and not tally.masks_recorded:
        lines.append("masked-off lanes: not known, since masks were not recorded")
    elif masked:
        wasted, every = tally.wasted_lanes(), sum(key.lanes * count.instructions for key, count in masked)
        lines.append(
            f"masked-off lanes: {wasted:,} of {every:,} lanes of masked instructions ({_percent(wasted / every)})"
        )
    return lines


def _repeats(record: Record) -> list[str]:
    if len(record.repeats) < 2:
        return []
    counts = [sum(run.flop.values()) for run in record.repeats]
    if len(set(counts)) == 1:
        return [f"{len(counts)} runs, all with the same count"]
    mean, spread = statistics.fmean(counts), statistics.stdev(counts)
    share = f" ({spread / mean:.2%})" if mean else ""
    return [f"{len(counts)} runs: {mean:,.0f} ± {spread:,.0f} FLOP{share}; the table shows the middle one"]


def _times(record: Record) -> list[str]:
    if record.seconds is None:
        return []
    spread = ""
    if len(record.timed_seconds) > 1:
        spread = f" (median of {len(record.timed_seconds)}, standard deviation {statistics.stdev(record.timed_seconds):.3g} s)"
    rate = _per_second(record)
    return [f"time without instrumentation: {record.seconds:.4g} s{spread}, {(rate or 0) / 1e9:.4g} GFLOP/s"]


def _per_second(record: Record) -> float | None:
    return sum(record.flop().values()) / record.seconds if record.seconds else None


def _rate(flop: Value, seconds: float) -> float | None:
    return flop / seconds / 1e9 if isinstance(flop, (int, float)) else None


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _largest_first(counts: Mapping[D, int]) -> Sequence[tuple[D, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
