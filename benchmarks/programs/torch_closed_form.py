"""Multiply-adds of a torchvision model's convolutions from their shapes: torch_closed_form.py NAME.

Prints two numbers: every product, and those whose factors both lie inside the image (padding skipped).
"""

import sys

import torch
import torchvision
from torch import nn


def inside(size, kernel, stride, padding):
    """How many pairs of output and kernel position meet the image rather than its padding, along one side."""
    outputs = (size + 2 * padding - kernel) // stride + 1
    return sum(0 <= out * stride - padding + at < size for out in range(outputs) for at in range(kernel))


def add(layer, arguments, output):
    (image,) = arguments
    channels = layer.in_channels * layer.out_channels // layer.groups
    sides = zip(image.shape[2:], layer.kernel_size, layer.stride, layer.padding, strict=True)
    height, width = (inside(*side) for side in sides)
    found[0] += layer.in_channels // layer.groups * layer.weight[0, 0].numel() * output.numel()
    found[1] += channels * height * width


found = [0, 0]
net = torchvision.models.get_model(sys.argv[1], weights=None).eval()
for layer in net.modules():
    if isinstance(layer, nn.Conv2d):
        layer.register_forward_hook(add)
with torch.inference_mode():
    net(torch.zeros(1, 3, 224, 224))
print(*found)
