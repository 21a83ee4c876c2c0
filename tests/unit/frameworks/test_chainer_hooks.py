"""Chainer's functions and links in the order in which they run, each piece of work in one row."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

if find_spec("chainer") is None:
    pytest.skip("needs Chainer", allow_module_level=True)

from flopwatch.errors import UsageError
from flopwatch.frameworks import BACKWARD, FORWARD, OPTIMIZER, OUTSIDE, ROOT
from flopwatch.frameworks.chainer import ChainerHooks, load
from flopwatch.scope import Scopes

pytestmark = pytest.mark.chainer
chainer = load()
_running: Machine | None = None


def work(amount: int) -> None:
    if _running is not None:
        _running.open += amount
        _running.total += amount


class Machine:
    """A fake counter with Chainer's hooks on it."""

    def __init__(self, model: Any = None) -> None:
        self.open = self.total = 0
        self.settled: Counter[int] = Counter()
        self.scopes = Scopes(self.settle)
        self.hooks = ChainerHooks(self.scopes, model)

    def settle(self, label: int) -> None:
        self.settled[label] += self.open
        self.open = 0

    def __enter__(self) -> Machine:
        global _running
        _running = self
        self.hooks.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        global _running
        self.hooks.__exit__(*error)
        self.scopes.close()
        _running = None

    def rows(self, axis: str) -> dict[str, int]:
        rows: Counter[str] = Counter()
        for label, amount in self.settled.items():
            rows[getattr(self.scopes.scope(label), axis)] += amount
        assert sum(rows.values()) == self.total
        return {name: amount for name, amount in rows.items() if amount}

    def history(self) -> list[tuple[str, int]]:
        return [(call.scope.op, self.settled[call.label]) for call in self.hooks.calls]


class Costly(chainer.FunctionNode):
    def __init__(self, amount: int) -> None:
        self.amount = amount

    @property
    def label(self):
        return f"Costly{self.amount}"

    def forward(self, inputs):
        work(self.amount)
        return (inputs[0] * 2,)

    def backward(self, indexes, gradients):
        work(1000 * self.amount)
        return Costly(100 * self.amount).apply(gradients)


class Cost(chainer.Link):
    def __init__(self, amount: int) -> None:
        super().__init__()
        self.amount = amount

    def forward(self, x):
        return Costly(self.amount).apply((x,))[0]


class Block(chainer.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.first, self.second = Cost(1), Cost(2)

    def forward(self, x):
        work(4)
        x = self.second(self.first(x))
        x = Costly(8).apply((x,))[0]
        return self.first(x)


X = chainer.Variable(np.ones((1, 2), np.float32))


def test_functions_in_the_order_of_their_calls():
    with Machine() as machine:
        work(16)
        Block()(X)
    assert machine.history() == [("Costly1", 1), ("Costly2", 2), ("Costly8", 8), ("Costly1", 1)]
    assert machine.rows("layer") == {OUTSIDE: 16, ROOT: 4 + 8, "first": 1 + 1, "second": 2}
    assert machine.rows("function") == {FORWARD: 16 + 4 + 8 + 1 + 1 + 2}


def test_backward_follows_in_reverse_and_belongs_to_the_link():
    with Machine() as machine:
        y = Block()(X)
        y.grad = np.ones((1, 2), np.float32)
        y.backward()
    names = [name for name, _ in machine.history()]
    assert names == ["Costly1", "Costly2", "Costly8", "Costly1", "Costly1", "Costly8", "Costly2", "Costly1"]
    assert machine.history()[4:] == [(name, int(name[6:]) * (1000 + 100)) for name in names[4:]]
    assert machine.rows("layer") == {ROOT: 4 + 8 + 8 * 1100, "first": 2 + 2 * 1100, "second": 2 + 2 * 1100}
    assert machine.rows("function") == {FORWARD: 4 + 8 + 1 + 1 + 2, BACKWARD: (1 + 8 + 2 + 1) * 1100}


def test_a_second_model_gets_names_of_its_own():
    with Machine() as machine:
        Block()(X)
        Block()(X)
    assert len(machine.rows("layer")) == 6
    assert machine.rows("layer")["first"] == 2


def test_an_exception_in_the_middle_of_forward_and_backward():
    class Failing(chainer.FunctionNode):
        def __init__(self, late: bool) -> None:
            self.late = late

        def forward(self, inputs):
            work(1)
            if not self.late:
                raise ZeroDivisionError
            return inputs

        def backward(self, indexes, gradients):
            work(2)
            raise ZeroDivisionError

    class Fragile(chainer.Link):
        def forward(self, x, late):
            return Failing(late).apply((x,))[0]

    model = Fragile()
    with Machine() as machine:
        outside = machine.scopes.current
        with pytest.raises(ZeroDivisionError):
            model(X, False)
        assert machine.scopes.current == outside
        work(4)
        y = model(X, True)
        y.grad = np.ones((1, 2), np.float32)
        with pytest.raises(ZeroDivisionError):
            y.backward()
        assert machine.scopes.current == outside
        work(8)
    assert machine.rows("layer") == {ROOT: 1 + 1 + 2, OUTSIDE: 4 + 8}


def test_an_optimizer_runs_outside():
    class Update(chainer.optimizers.SGD):
        def update(self, lossfun=None, *args):
            work(7)
            super().update(lossfun, *args)

    model = chainer.Sequential(Cost(1))
    optimizer = Update()
    optimizer.setup(model)
    with Machine() as machine:
        optimizer.update(lambda: chainer.functions.sum(model(X)))
    rows = machine.rows("function")
    assert rows == {FORWARD: 1, BACKWARD: 1000 + 100, OPTIMIZER: 7}


def test_nothing_is_left_behind():
    places = [chainer.Link, chainer.FunctionNode, chainer._backprop_utils, chainer.Optimizer]
    before = [dict(vars(place)) for place in places]
    with Machine():
        Block()(X)
        with pytest.raises(UsageError), Machine():
            pass
    assert [dict(vars(place)) for place in places] == before
    assert not chainer.get_function_hooks() and not chainer._get_link_hooks()


def test_the_names_of_a_real_network():
    model = chainer.Sequential(
        chainer.links.Convolution2D(3, 4, 3), chainer.functions.relu, chainer.links.Linear(4 * 4, 2)
    )
    with Machine(model) as machine:
        model(np.ones((1, 3, 4, 4), np.float32))
    assert [name for name, _ in machine.history()] == ["Convolution2DFunction", "ReLU", "Reshape", "LinearFunction"]
    assert [call.scope.layer for call in machine.hooks.calls] == ["0", ROOT, "1", "1"]
