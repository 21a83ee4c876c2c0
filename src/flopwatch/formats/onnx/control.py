"""Control flow: which branch is taken, how often a body runs, and what each run of it does.

A body whose runs are all alike is followed once and counted as often as it runs. One whose values change their shapes from run
to run, or that decides itself when to stop, is followed run by run, as far as its numbers are known without running anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import flopwatch.formats.onnx.calls as calls
from flopwatch.events import Op
from flopwatch.flops.formulas import Work, estimate
from flopwatch.formats.onnx.inference import Call
from flopwatch.formats.onnx.values import BOOL, INT64, Value, common, merged, of_data
from flopwatch.scope import Scope

if TYPE_CHECKING:
    from flopwatch.formats.onnx.walking import Frame, Walk

KINDS = ("If", "Loop", "Scan", "SequenceMap")

LONGEST = 1_000
"""A body is followed run by run no more often than this, nor through more nodes than `MOST`."""
MOST = 20_000


def follow(walk: Walk, call: Call, frame: Frame, layer: str) -> list[Value]:
    """Follow the graphs of such a node as often as they run; gives its outputs, unknown ones if that is not known."""
    kind = call.node.op_type
    attributes = call.attributes
    flow = _Flow(walk, call, frame, layer)
    if kind == "If":
        return flow.branch(attributes["then_branch"], attributes["else_branch"])
    if kind == "Loop":
        return flow.loop(attributes["body"])
    if kind == "Scan":
        return flow.scan(attributes["body"], attributes)
    return flow.sequence_map(attributes["body"])


@dataclass(slots=True)
class _Flow:
    walk: Walk
    call: Call
    frame: Frame
    layer: str

    def branch(self, then: Any, otherwise: Any) -> list[Value]:
        condition = self.call.inputs[0]
        if condition is not None and condition.data is not None:
            self._free()
            return self._run(then if condition.data.reshape(-1)[0] else otherwise, [])
        sides = []
        for graph in (then, otherwise):
            with self.walk.aside() as ops:
                outputs = self._run(graph, [])
            sides.append((_weight(ops), ops, outputs))
        larger = 1 if sides[1][0] > sides[0][0] else 0
        if sides[0][0] != sides[1][0]:
            name = ("then", "else")[larger]
            self.walk.notes[
                f"{self.layer}: the condition is not known before the model runs; the larger branch ({name}) is counted"
            ] = None
        self._free()
        for op in sides[larger][1]:
            self.walk.emit(op)
        return [common(pair) for pair in zip(sides[0][2], sides[1][2], strict=False)]

    def loop(self, body: Any) -> list[Value]:
        most, condition, *carried = [*self.call.inputs, None, None][: max(2, len(self.call.inputs))]
        if any(value is None for value in carried):
            carried = [value if value is not None else Value() for value in carried]
        start = [value for value in carried if value is not None]
        trips = _number(most) if most is not None else None
        if most is not None and trips is None:
            return self._unknown("how often it runs", body, len(start))
        if condition is not None and condition.data is not None and not condition.data.reshape(-1)[0]:
            trips = 0
        elif condition is not None and condition.data is None:
            trips = 0 if trips == 0 else -1
        if trips == -1:
            return self._unknown("whether it runs at all", body, len(start))
        if trips == 0:
            self._free()
            return [*start, *self._stacked(body, len(start) + 1, [], 0)]
        alike = self._alike(body, start)
        if alike is not None and trips is not None and alike[2]:
            ops, outputs, _ = alike
            self._free()
            self._repeat(ops, trips)
            return [*outputs[1 : 1 + len(start)], *self._stacked(body, len(start) + 1, outputs, trips)]
        return self._unrolled(body, start, trips)

    def _alike(self, body: Any, start: Sequence[Value]) -> tuple[list[Op], list[Value], bool] | None:
        """One run of a body of which all runs are alike: operators, outputs, and whether it surely goes on; None if they differ."""
        carried = list(start)
        for _ in range(len(carried) + 2):
            with self.walk.aside() as ops:
                outputs = self._run(body, [Value((), INT64), Value((), BOOL), *carried])
            after = outputs[1 : 1 + len(carried)]
            if all(one.like(two) for one, two in zip(carried, after, strict=True)):
                going = self._goes_on(body, outputs[0])
                return None if any(op.name.endswith(calls.UNKNOWN_SHAPE) for op in ops) else (ops, outputs, going)
            for place, (one, two) in enumerate(zip(carried, after, strict=True)):
                if one.sequence or one.shape != two.shape or one.dtype != two.dtype:
                    return None
                if not one.like(two):
                    carried[place] = one.without_data()
        return None

    def _goes_on(self, body: Any, condition: Value) -> bool:
        """Whether the condition that comes out of a body is true, or is the one that went in (which was)."""
        if condition.data is not None:
            return bool(condition.data.reshape(-1)[0])
        made, given = body.output[0].name, body.input[1].name
        while made != given:
            node = next((node for node in body.node if made in node.output), None)
            if node is None or node.op_type not in ("Identity", "Cast"):
                return False
            made = node.input[0]
        return True

    def _unrolled(self, body: Any, start: Sequence[Value], trips: int | None) -> list[Value]:
        import numpy as np

        carried = list(start)
        parts: list[list[Value]] = []
        limit = min(LONGEST, MOST // max(1, len(body.node)))
        ended = trips
        with self.walk.aside() as ops:
            for trip in range(limit + 1):
                if trip == ended:
                    break
                if trip == limit:
                    return self._unknown("how often it runs", body, len(start), spread=True)
                going = of_data(np.array(True))
                outputs = self._run(body, [of_data(np.array(trip, dtype=np.int64)), going, *carried])
                carried = outputs[1 : 1 + len(start)]
                parts.append(outputs[1 + len(start) :])
                if outputs[0].data is None:
                    return self._unknown("how often it runs", body, len(start))
                if not outputs[0].data.reshape(-1)[0]:
                    ended = trip + 1
        self._free()
        for op in ops:
            self.walk.emit(op)
        return [*carried, *(_stack(column) for column in zip(*parts, strict=True))]

    def scan(self, body: Any, attributes: dict[str, Any]) -> list[Value]:
        given = [value if value is not None else Value() for value in self.call.inputs]
        batched = self.call.version < 9
        if batched:
            given = given[1:]  # the lengths
        count = attributes["num_scan_inputs"]
        states, scanned = given[: len(given) - count], given[len(given) - count :]
        axes = attributes.get("scan_input_axes") or [0] * count
        if batched:
            axes = [1] * count
        lengths = {_size(value, axis) for value, axis in zip(scanned, axes, strict=True)}
        batch = _size(scanned[0], 0) if batched else 1
        if len(lengths) != 1 or None in lengths or batch is None:
            return self._unknown("how long its inputs are", body, len(states))
        slices = [_without(value, axis, batched) for value, axis in zip(scanned, axes, strict=True)]
        if batched:
            states = [_without(value, None, True) for value in states]
        trips = (lengths.pop() or 0) * batch
        with self.walk.aside() as ops:
            outputs = self._run(body, [*(state.without_data() for state in states), *slices])
        self._free()
        self._repeat(ops, trips)
        stacks = outputs[len(states) :]
        places = attributes.get("scan_output_axes") or [0] * len(stacks)
        length = trips // batch if batch else 0
        if batched:
            found = [_with(value, 0, batch) for value in outputs[: len(states)]]
            return [*found, *(_with(_with(value, 0, length), 0, batch) for value in stacks)]
        made = [_with(value, place, length) for value, place in zip(stacks, places, strict=False)]
        return [*outputs[: len(states)], *made]

    def sequence_map(self, body: Any) -> list[Value]:
        first, *others = self.call.inputs
        if first is None or first.items is None:
            return self._unknown("how long its sequence is", body, 0)
        self._free()
        made = []
        for place in range(len(first.items)):
            given = [first.items[place]]
            for other in others:
                if other is not None and other.items is not None:
                    given.append(other.items[place])
                else:
                    given.append(other if other is not None and not other.sequence else merged(other or Value()))
            made.append(self._run(body, given))
        return [Value(items=tuple(row[place] for row in made)) for place in range(len(body.output))]

    def _run(self, body: Any, inputs: Sequence[Value]) -> list[Value]:
        from flopwatch.formats.onnx.walking import Frame

        inner = Frame(self.frame.opsets, f"{self.layer}.", self.frame, bindings=self.frame.bindings)
        names = [each.name for each in body.input]
        return self.walk.graph(body, inner, dict(zip(names, inputs, strict=False)))

    def _repeat(self, ops: Sequence[Op], times: int) -> None:
        if times:
            for op in ops:
                self.walk.emit(replace(op, times=op.times * times))

    def _stacked(self, body: Any, first: int, outputs: Sequence[Value], trips: int) -> list[Value]:
        """The outputs of a loop that put the values of all runs behind each other."""
        if not outputs:
            return [Value() for _ in body.output[first:]]
        return [_with(value, 0, trips) for value in outputs[first:]]

    def _unknown(self, what: str, body: Any, carried: int, *, spread: bool = False) -> list[Value]:
        reason = "it takes too many runs to follow each" if spread else f"{what} is not known before the model runs"
        self.walk.notes[f"{self.layer}: {reason}; what is in it is not counted"] = None
        name = calls.name_of(self.call)
        self.walk.emit(
            Op(f"{name} ({what} is not known)", scope=Scope(layer=self.layer, op=name, function=calls.FORWARD))
        )
        return [Value() for _ in self.call.node.output]

    def _free(self) -> None:
        name = calls.name_of(self.call)
        self.walk.emit(Op(name, scope=Scope(layer=self.layer, op=name, function=calls.FORWARD)))


def _weight(ops: Sequence[Op]) -> tuple[int, int, int]:
    """How large a branch is: FLOP and OP, then what nobody has a formula for, then calls."""
    work = unknown = 0
    for op in ops:
        found = estimate(op)
        if isinstance(found, Work):
            work += op.times * (sum(found.tally.flop().values()) + sum(found.tally.op().values()))
        elif type(found).__name__ == "Unknown":
            unknown += op.times
    return work, unknown, len(ops)


def _number(value: Value) -> int | None:
    return int(value.data.reshape(-1)[0]) if value.data is not None else None


def _size(value: Value, axis: int) -> int | None:
    return value.shape[axis] if value.shape is not None and -len(value.shape) <= axis < len(value.shape) else None


def _without(value: Value, axis: int | None, batched: bool) -> Value:
    """A value without the dimension that is scanned, and without its batch."""
    if value.shape is None:
        return Value(None, value.dtype)
    axis = None if axis is None else axis % len(value.shape)
    kept = [size for place, size in enumerate(value.shape) if place != axis and not (batched and place == 0)]
    return Value(tuple(kept), value.dtype)


def _with(value: Value, axis: int, size: int) -> Value:
    if value.shape is None:
        return Value(None, value.dtype)
    place = axis % (len(value.shape) + 1)
    return Value((*value.shape[:place], size, *value.shape[place:]), value.dtype)


def _stack(column: Sequence[Value]) -> Value:
    return _with(common(list(column)), 0, len(column))
