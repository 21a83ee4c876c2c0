"""The call of the 2018 article, on a fake engine."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

if find_spec("chainer") is None:
    pytest.skip("needs Chainer", allow_module_level=True)

import numpy as np

import flopwatch
from flopwatch.errors import UsageError
from flopwatch.frameworks import OUTSIDE, ROOT
from flopwatch.frameworks.chainer import load
from tests.fake_engine import FLOP, FakeEngine, work

pytestmark = pytest.mark.chainer
chainer = load()


class Costly(chainer.FunctionNode):
    def forward(self, inputs):
        work(3)
        return (inputs[0] * 2,)

    def backward(self, indexes, gradients):
        work(5)
        return gradients


class Model(chainer.Chain):
    def predict(self, x):
        work(7)
        return self(x)

    def forward(self, x):
        work(11)
        return Costly().apply((x,))[0]


def test_the_call_of_the_article():
    model = Model()
    image = chainer.Variable(np.ones((1, 2), np.float32))
    with flopwatch.chainer.CounterHook(engine=FakeEngine()) as counter:
        y = model.predict(image)
        y.grad = np.ones((1, 2), np.float32)
        y.backward()
        with pytest.raises(UsageError, match="after the with block"):
            counter.total  # noqa: B018 - raising is what is tested
    assert counter.call_history == [("Costly", FLOP * 3), ("Costly", FLOP * 5)]
    assert counter.total == FLOP * (7 + 11 + 3 + 5)
    assert [call.stage for call in counter.calls] == ["forward", "backward"]
    assert counter.by_link == {OUTSIDE: FLOP * 7, ROOT: FLOP * (11 + 3 + 5)}
    assert counter.by_function == {"": FLOP * (7 + 11), "Costly": FLOP * (3 + 5)}
