"""Single layers for `flopwatch model torch_layers.py:FACTORY`; run as a program, LAYER DTYPE PASSES, it only runs one."""

import sys
import warnings

import torch
from torch import nn

ROWS, FEATURES = 128, 512
CHANNELS, SIDE = 64, 56


class IntegerProduct(nn.Module):
    """int8 times int8, summed in int32."""

    def forward(self, left, right):
        return torch._int_mm(left, right)


def linear():
    return nn.Linear(FEATURES, FEATURES), torch.randn(ROWS, FEATURES)


def conv():
    return nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), torch.randn(1, CHANNELS, SIDE, SIDE)


def int8_product():
    sizes = ((ROWS, FEATURES), (FEATURES, FEATURES))
    return IntegerProduct(), *(torch.randint(-9, 9, size, dtype=torch.int8) for size in sizes)


def int8_linear():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this way of quantizing is to be replaced some day
        layers = nn.Sequential(nn.Linear(FEATURES, FEATURES))
        quantized = torch.ao.quantization.quantize_dynamic(layers, {nn.Linear}, dtype=torch.qint8)
    return quantized, torch.randn(ROWS, FEATURES)


if __name__ == "__main__":
    layer, dtype, passes = sys.argv[1:]
    torch.manual_seed(0)
    model, *arguments = globals()[layer]()
    if dtype != "int8":  # those layers are what they are
        model = model.to(getattr(torch, dtype))
        arguments = [each.to(getattr(torch, dtype)) for each in arguments]
    with torch.inference_mode():
        for _ in range(int(passes)):
            model(*arguments)
