"""What is counted: a name, the multiply-accumulates that are right, and how PyTorch builds it.

The figures are worked out by hand from named sizes (models: torchvision's own `_ops`, to the last digit), none by any counter. MAC
are those of products, padding included, dense, no bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Built = tuple[Any, tuple[Any, ...]]
"""A model and the arguments of one call."""


@dataclass(frozen=True)
class Case:
    """One row: `train` counts forward and backward; `build` needs PyTorch, None for models of other frameworks."""

    name: str
    group: str
    mac: int
    build: Callable[[], Built] | None = None
    train: bool = False
    also: float | None = None
    """Right by another rule: without what falls on padding; a sum less than there are products (half a MAC)."""


CASES: dict[str, Case] = {}


def case(
    name: str, group: str, mac: int, *, train: bool = False, also: float | None = None
) -> Callable[[Callable[[], Built]], Callable[[], Built]]:
    """Register the function below as the builder of a case."""

    def register(build: Callable[[], Built]) -> Callable[[], Built]:
        CASES[name] = Case(name, group, mac, build, train, also)
        return build

    return register


def calling(function: Callable[..., Any], **held: Any) -> Any:
    """A module that calls a function with its arguments and then the parameters that it holds.

    The function is to look up what it calls only when it is called: some counters replace functions of PyTorch for a while.
    """
    import torch
    from torch import nn

    class Calling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            # Some counters look for a first parameter and end where there is none.
            self.unused = nn.Parameter(torch.zeros(1))
            for name, value in held.items():
                setattr(self, name, nn.Parameter(value))

        def forward(self, *arguments: Any) -> Any:
            return function(*arguments, *(getattr(self, name) for name in held))

    return Calling()


# Whole models of torchvision: MAC to the last digit.
MODELS = {
    "alexnet": 714_188_480,
    "vgg16": 15_470_264_320,
    "resnet18": 1_814_073_344,
    "resnet50": 4_089_184_256,
    "resnext50_32x4d": 4_230_479_872,
    "densenet121": 2_834_161_664,
    "mobilenet_v2": 300_774_272,
    "mobilenet_v3_large": 216_589_760,
    "efficientnet_b0": 385_814_752,
    "convnext_tiny": 4_455_531_264,
    "swin_t": 4_490_566_656,
    "vit_b_16": 17_563_828_224,
    "r3d_18": 40_696_553_472,
}


def _model(name: str) -> Callable[[], Built]:
    def build() -> Built:
        import torch
        from torchvision import models

        shape = (1, 3, 16, 112, 112) if name == "r3d_18" else (1, 3, 224, 224)
        return models.get_model(name, weights=None), (torch.randn(shape),)

    return build


for _name, _mac in MODELS.items():
    case(_name, "models", _mac)(_model(_name))

# Models of the days of Caffe, one image, by their own definition (ResNet with the stride in the first 1x1).
CAFFE = {
    "AlexNet (Caffe)": 724_406_816,
    "GoogLeNet (Caffe)": 1_582_671_872,
    "VGG-16 (Caffe)": 15_470_264_320,
    "ResNet-50 v1 (Caffe)": 3_857_973_248,
    "ResNet-152 v1 (Caffe)": 11_282_415_616,
}
for _name, _mac in CAFFE.items():
    CASES[_name] = Case(_name, "Caffe and Chainer", _mac)
