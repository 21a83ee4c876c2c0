"""One step of a Chainer model: an inference, or forward, loss, backward and optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flopwatch.frameworks.chainer.compat import load
from flopwatch.subjects.model import ModelSubject


@contextmanager
def steps(subject: ModelSubject, *, train: bool) -> Iterator[Callable[[], None]]:
    """A function that runs the model once. Training takes softmax cross entropy against class 0, and plain SGD.

    A training step changes the model: it is a copy.
    """
    chainer = load()
    model = subject.model.copy(mode="copy") if train else subject.model
    with chainer.using_config("train", train), chainer.using_config("enable_backprop", train):
        yield _training(chainer, model, subject.arguments) if train else lambda: model(*subject.arguments)


def _training(chainer: Any, model: Any, arguments: tuple[Any, ...]) -> Callable[[], None]:
    optimizer = chainer.optimizers.SGD(lr=1e-3)
    optimizer.setup(model)

    def step() -> None:
        model.cleargrads()
        output = model(*arguments)
        if isinstance(output, dict):
            output = next(iter(output.values()))
        labels = output.xp.zeros(len(output), dtype="int32")
        loss = chainer.functions.softmax_cross_entropy(output, labels)
        loss.backward()
        optimizer.update()

    return step
