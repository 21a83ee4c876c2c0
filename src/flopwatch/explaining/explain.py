"""Find the causes of a gap, place by place."""

from __future__ import annotations

from collections.abc import Callable

from flopwatch.errors import UsageError
from flopwatch.explaining import causes
from flopwatch.explaining.attention import explain_attention, explain_derivative, is_derivative
from flopwatch.explaining.causes import Explanation, Found, Part
from flopwatch.explaining.functions import explain_functions
from flopwatch.explaining.pairing import Pair, pairs
from flopwatch.explaining.products import explain_integers, explain_products
from flopwatch.explaining.values import explain_values
from flopwatch.flops.operations import Operation
from flopwatch.flops.tally import Tally
from flopwatch.record import Record

Rule = Callable[[Pair], list[Found]]


def explain(measured: Record, estimate: Record) -> Explanation:
    """Why a measurement and an estimate of the same model differ, in FLOP under the measured record's convention.

    Each cause is predicted from shapes or shown by the kinds of instructions that ran, or is not named: see `causes.CAUSES`, and
    `Explanation.share` for how much of the gap that accounts for. Raises UsageError for records of different models, inputs,
    datatypes or steps, and for one whose counter did not tell operations apart.
    """
    if measured.weighed:
        raise UsageError(
            "What hardware counted cannot be explained.",
            seen="It tells how much arithmetic there was, but not which.",
            todo="Count with --counter instrumented.",
        )
    if measured.command and estimate.command and measured.command != estimate.command:
        raise UsageError(
            "Measurement and estimate are not of the same thing.",
            seen=f"One is of {', '.join(measured.command)}; the other of {', '.join(estimate.command)}.",
        )
    unknown = {each.name for each in estimate.unknown}
    known: dict[object, tuple[Found, ...]] = {}
    return Explanation(tuple(_part(pair, unknown, known) for pair in pairs(measured, estimate)))


def _part(pair: Pair, unknown: set[str], known: dict[object, tuple[Found, ...]]) -> Part:
    measured, estimated = pair.flop(pair.measured), pair.flop(pair.estimated)
    part = Part(pair.place, measured, estimated)
    if not part.gap:
        return part
    # Layers that are alike have the same causes.
    key = (pair.place.op, pair.shapes, pair.measured, pair.estimated, pair.written)
    if key not in known:
        found = _masked(pair)
        left = part.gap - sum(each.flop for each in found)
        if left:
            found += _whole(pair, unknown, left) or _rule(pair)(pair)
        known[key] = tuple(each for each in found if each.flop)
    return Part(pair.place, measured, estimated, known[key])


def _masked(pair: Pair) -> list[Found]:
    """Lanes that masks switched off, known to the digit where masks were recorded; the rules see active lanes alone."""
    if pair.record.counted_lanes != "full":
        return []
    rule = pair.record.rule
    spare = sum(pair.measured.flop(rule, "full").values()) - sum(pair.measured.flop(rule, "active").values())
    return [Found(causes.MASKED_LANES, spare, "the masks of the instructions say so")] if spare else []


def _whole(pair: Pair, unknown: set[str], left: int) -> list[Found]:
    """Places where the whole gap has one cause."""
    if not pair.place.op:
        return [] if pair.estimated else [Found(causes.BETWEEN, left, "no operator was running")]
    nameless = [each.op for each in pair.shapes if each.op in unknown]
    if nameless and left > 0:
        return [Found(causes.NO_FORMULA, left, f"{nameless[0]} has no formula")]
    if not pair.estimated and pair.cells:
        name = pair.place.op.rpartition("::")[2]
        return [Found(causes.FREE, left, f"{name} computes nothing that a formula would count")]
    return []


def _rule(pair: Pair) -> Rule:
    estimated: Tally = pair.estimated
    if any(key.operation is Operation.INT_MAD for key in estimated):
        return explain_integers
    functions = any(key.operation is Operation.TRANSCENDENTAL for key in estimated)
    if pair.mac and is_derivative(pair):
        return explain_derivative
    if pair.mac:
        return explain_attention if functions else explain_products
    return explain_functions if functions else explain_values
