"""flopwatch itself."""

from __future__ import annotations

from typing import Any

from peers.answers import Count
from peers.cases import Case

VERSION_OF = "flopwatch"

# By its name in the cases: the model of a Chainer link.
CHAINER = {
    "GoogLeNet (Caffe)": "chainer:googlenet",
    "VGG-16 (Caffe)": "chainer:vgg16",
    "ResNet-50 v1 (Caffe)": "chainer:resnet50",
    "ResNet-152 v1 (Caffe)": "chainer:resnet152",
}


def prepare(case: Case) -> Any:
    """A subject; models are built outside of the time that is measured."""
    from flopwatch.subjects.model import ModelSubject, Request, find
    from peers.adapters import NotForThisError

    if case.build is None:
        if case.name not in CHAINER:
            raise NotForThisError
        return find(Request(CHAINER[case.name]))
    model, arguments = case.build()
    return ModelSubject(case.name, "torch", model, arguments, "the case's own input")


def count(case: Case, subject: Any) -> Count:
    """Estimate one inference, or forward and backward of a training step without its loss and its optimizer."""
    from flopwatch import models

    estimated = models.estimate_subject(subject, train=case.train)
    others = sum(estimated.flop().values()) - 2 * estimated.mac
    said = tuple(f"unknown: {each.name}" for each in estimated.unknown)
    return Count(estimated.mac, "MAC", said, max(0, others))
