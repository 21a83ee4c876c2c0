"""Each unit of work lands in exactly one scope, whatever is entered, left, left twice or never left."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from flopwatch.scope import Scope, Scopes

A, B, C = Scope(layer="a"), Scope(layer="b"), Scope(layer="c")
BASE = Scope(layer="base")


class Machine:
    """A fake counter: `work(n)` executes n operations, `settle` gives all since the last settle to a label."""

    def __init__(self) -> None:
        self.open = 0
        self.total = 0
        self.settled: Counter[int] = Counter()
        self.scopes = Scopes(self.settle, BASE)

    def work(self, amount: int) -> None:
        self.open += amount
        self.total += amount

    def settle(self, label: int) -> None:
        self.settled[label] += self.open
        self.open = 0

    def rows(self) -> dict[str, int]:
        self.scopes.close()
        rows: Counter[str] = Counter()
        for label, amount in self.settled.items():
            rows[self.scopes.scope(label).layer] += amount
        assert sum(rows.values()) == self.total
        return {name: amount for name, amount in rows.items() if amount}


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_work_belongs_to_the_innermost_scope(machine: Machine) -> None:
    scopes = machine.scopes
    machine.work(1)
    with scopes.enter(A):
        machine.work(2)
        with scopes.enter(B):
            machine.work(4)
        machine.work(8)
        with scopes.enter(B):
            machine.work(16)
    machine.work(32)
    assert machine.rows() == {"base": 1 + 32, "a": 2 + 8, "b": 4 + 16}


def test_an_exception_leaves_all_scopes(machine: Machine) -> None:
    with pytest.raises(ZeroDivisionError), machine.scopes.enter(A):
        machine.work(1)
        with machine.scopes.enter(B):
            machine.work(2)
            raise ZeroDivisionError
    machine.work(4)
    assert machine.rows() == {"a": 1, "b": 2, "base": 4}


def test_a_suspended_generator_does_not_end_the_scopes_above_it(machine: Machine) -> None:
    scopes = machine.scopes

    def steps():
        with scopes.enter(A):
            machine.work(1)
            yield
            machine.work(2)

    generator = steps()
    next(generator)
    with scopes.enter(B):
        next(generator, None)  # runs inside b: the innermost scope entered last
        machine.work(4)
    machine.work(8)
    assert machine.rows() == {"a": 1, "b": 2 + 4, "base": 8}


def test_a_frame_can_be_popped_twice(machine: Machine) -> None:
    frame = machine.scopes.push(A)
    machine.scopes.pop(frame)
    with machine.scopes.enter(B):
        machine.scopes.pop(frame)
        machine.work(1)
    assert machine.rows() == {"b": 1}


def test_unwind_drops_what_was_never_left(machine: Machine) -> None:
    scopes = machine.scopes
    with scopes.enter(A):
        top = scopes.top()
        lost = scopes.push(B)
        scopes.push(C)
        machine.work(1)
        scopes.unwind(top)
        machine.work(2)
        scopes.pop(lost)
        machine.work(4)
    assert machine.rows() == {"c": 1, "a": 2 + 4}


def test_each_thread_has_a_stack_of_its_own(machine: Machine) -> None:
    def other() -> None:
        assert machine.scopes.current == BASE
        with machine.scopes.enter(B):
            machine.work(1)

    with machine.scopes.enter(A):
        machine.work(2)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert machine.scopes.current == A
        machine.work(4)
    rows = machine.rows()
    assert rows["a"] >= 4 and rows["b"] == 1


def test_nothing_is_settled_after_close(machine: Machine) -> None:
    frame = machine.scopes.push(A)
    machine.work(1)
    rows = machine.rows()
    machine.open = 99
    machine.scopes.pop(frame)
    with machine.scopes.enter(B):
        pass
    assert rows == {"a": 1}
    assert machine.open == 99


def test_labels_are_interned_and_fresh_ones_are_not() -> None:
    scopes = Scopes(lambda label: None)
    assert scopes.label(A) == scopes.label(Scope(layer="a"))
    assert scopes.label(A) != scopes.label(B)
    one, two = scopes.fresh(A), scopes.fresh(A)
    assert len({one, two, scopes.label(A)}) == 3
    assert scopes.scope(one) == scopes.scope(two) == A
    with pytest.raises(IndexError):
        scopes.scope(-1)
