"""Layers that compare with labels; each gives a single number."""

from __future__ import annotations

from collections.abc import Sequence

from flopwatch.formats.caffe.layers.rules import Made, Shape, axis_of, layer, refuse, several, size
from flopwatch.formats.caffe.network import Layer


@layer("SoftmaxWithLoss")
def softmax_loss(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """A second top, if there is one, are the probabilities. Files made for viewers leave the labels out: the cost is the same."""
    shape = several(layer, bottoms, 1, 3)[0]
    axis = axis_of(layer, layer.settings("softmax_param").integer("axis", 1, least=-9), shape)
    return Made(((), shape), {}, {"axis": axis})


@layer("EuclideanLoss", "SigmoidCrossEntropyLoss")
def elementwise_loss(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """Two bottoms with as many numbers."""
    several(layer, bottoms, 2, 2)
    if size(bottoms[0]) != size(bottoms[1]):
        refuse(layer, "needs two bottoms with as many numbers", bottoms)
    return Made(((), bottoms[0]))


@layer("HingeLoss", "MultinomialLogisticLoss", "InfogainLoss", "ContrastiveLoss", "SmoothL1Loss", "MultiBoxLoss")
def other_loss(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """The loss alone."""
    several(layer, bottoms, 2)
    return Made(((),))


@layer("Accuracy")
def accuracy(layer: Layer, bottoms: Sequence[Shape]) -> Made:
    """The share of hits; a second top has it for each class. Files made for viewers leave the labels out."""
    shape = several(layer, bottoms, 1, 2)[0]
    axis = axis_of(layer, layer.settings("accuracy_param").integer("axis", 1, least=-9), shape)
    return Made(((), (shape[axis],)))
