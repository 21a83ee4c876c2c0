"""chainer_computational_cost: a hook on Chainer's functions; an FMA is one FLOP, its default."""

from __future__ import annotations

from typing import Any

from peers.adapters import NotForThisError
from peers.answers import Count
from peers.cases import Case

VERSION_OF = "chainer_computational_cost"

LINKS = {
    "GoogLeNet (Caffe)": "GoogLeNet",
    "VGG-16 (Caffe)": "VGG16Layers",
    "ResNet-50 v1 (Caffe)": "ResNet50Layers",
    "ResNet-152 v1 (Caffe)": "ResNet152Layers",
}


def prepare(case: Case) -> Any:
    """A link with random weights."""
    if case.name not in LINKS:
        raise NotForThisError
    from chainer import links

    return getattr(links, LINKS[case.name])(pretrained_model=None)


def count(case: Case, link: Any) -> Count:
    """One forward under the hook."""
    import chainer
    import numpy
    from chainer_computational_cost import ComputationalCostHook

    image = numpy.zeros((1, 3, 224, 224), numpy.float32)
    with chainer.using_config("train", False), chainer.no_backprop_mode(), ComputationalCostHook() as hook:
        link(image, layers=["prob"])
    said = tuple(f"ignored: {name}" for name in hook.ignored_layers)
    return Count(hook.total_report["flops"], "MAC", said)
