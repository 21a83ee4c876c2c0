"""Single operators, one for each way in which a counter has been seen to fail."""

from __future__ import annotations

import operator

from peers.cases import Built, calling, case

OPS = "operators"
OUT, IN, SIDE, KERNEL = 8, 3, 8, 3
PIXELS, TAPS = SIDE * SIDE, KERNEL * KERNEL
CONV = PIXELS * OUT * IN * TAPS
EVEN = 4
# Of the taps in one direction, those that fall on a pixel.
INSIDE = KERNEL * SIDE - 2


@case("conv2d", OPS, CONV, also=OUT * IN * INSIDE**2)
def conv2d() -> Built:
    import torch
    from torch import nn

    return nn.Conv2d(IN, OUT, KERNEL, padding=1), (torch.randn(1, IN, SIDE, SIDE),)


@case("conv1d", OPS, SIDE * OUT * IN * KERNEL, also=OUT * IN * INSIDE)
def conv1d() -> Built:
    import torch
    from torch import nn

    return nn.Conv1d(IN, OUT, KERNEL, padding=1), (torch.randn(1, IN, SIDE),)


@case("conv3d", OPS, SIDE**3 * OUT * IN * KERNEL**3)
def conv3d() -> Built:
    import torch
    from torch import nn

    return nn.Conv3d(IN, OUT, KERNEL, padding=1), (torch.randn(1, IN, SIDE, SIDE, SIDE),)


@case("conv2d, groups", OPS, PIXELS * OUT * (OUT // 4) * TAPS, also=OUT * (OUT // 4) * INSIDE**2)
def conv_groups() -> Built:
    import torch
    from torch import nn

    return nn.Conv2d(OUT, OUT, KERNEL, padding=1, groups=4), (torch.randn(1, OUT, SIDE, SIDE),)


@case("conv2d, depthwise", OPS, PIXELS * OUT * TAPS, also=OUT * INSIDE**2)
def conv_depthwise() -> Built:
    import torch
    from torch import nn

    return nn.Conv2d(OUT, OUT, KERNEL, padding=1, groups=OUT), (torch.randn(1, OUT, SIDE, SIDE),)


@case("conv2d, dilation", OPS, CONV)
def conv_dilation() -> Built:
    import torch
    from torch import nn

    return nn.Conv2d(IN, OUT, KERNEL, padding=2, dilation=2), (torch.randn(1, IN, SIDE, SIDE),)


@case("conv2d, padding='same'", OPS, CONV)
def conv_same() -> Built:
    import torch
    from torch import nn

    return nn.Conv2d(IN, OUT, KERNEL, padding="same"), (torch.randn(1, IN, SIDE, SIDE),)


@case("conv2d, padding='same', even kernel", OPS, PIXELS * OUT * IN * EVEN * EVEN)
def conv_same_even() -> Built:
    import torch
    from torch import nn

    return nn.Conv2d(IN, OUT, EVEN, padding="same"), (torch.randn(1, IN, SIDE, SIDE),)


@case("conv2d, no batch", OPS, CONV)
def conv_unbatched() -> Built:
    import torch
    from torch import nn

    return nn.Conv2d(IN, OUT, KERNEL, padding=1), (torch.randn(IN, SIDE, SIDE),)


@case("F.conv2d", OPS, CONV)
def conv_function() -> Built:
    import torch
    from torch.nn import functional

    weight = torch.randn(OUT, IN, KERNEL, KERNEL)
    return calling(lambda x, w: functional.conv2d(x, w, padding=1), weight=weight), (torch.randn(1, IN, SIDE, SIDE),)


@case("subclass of Conv2d", OPS, CONV)
def conv_subclass() -> Built:
    import torch
    from torch import nn

    class Mine(nn.Conv2d):
        pass

    return nn.Sequential(Mine(IN, OUT, KERNEL, padding=1)), (torch.randn(1, IN, SIDE, SIDE),)


@case("conv_transpose2d", OPS, (2 * 2) * 3 * 1 * (2 * 2))
def transposed() -> Built:
    import torch
    from torch import nn

    return nn.ConvTranspose2d(3, 1, 2, stride=2), (torch.randn(1, 3, 2, 2),)


@case("conv_transpose2d, depthwise", OPS, 2 * PIXELS * 4 * TAPS)
def transposed_depthwise() -> Built:
    import torch
    from torch import nn

    layer = nn.ConvTranspose2d(4, 4, KERNEL, stride=2, padding=1, output_padding=1, groups=4)
    return layer, (torch.randn(2, 4, SIDE, SIDE),)


ROWS, INNER, COLUMNS, BATCH = 3, 4, 5, 2


@case("linear", OPS, (5 * 10) * 3 * 8)
def linear() -> Built:
    import torch
    from torch import nn

    return nn.Linear(3, 8), (torch.randn(5, 10, 3),)


@case("linear on a vector", OPS, 10 * 11)
def linear_vector() -> Built:
    import torch
    from torch import nn

    return nn.Linear(10, 11), (torch.randn(10),)


@case("F.linear", OPS, (5 * 10) * 3 * 8)
def linear_function() -> Built:
    import torch
    from torch.nn import functional

    return calling(lambda x, w: functional.linear(x, w), weight=torch.randn(8, 3)), (torch.randn(5, 10, 3),)


@case("one Linear, called twice", OPS, 2 * (6 * 6))
def shared() -> Built:
    import torch
    from torch import nn

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            again: torch.Tensor = self.layer(self.layer(x))
            return again

    return Twice(), (torch.randn(1, 6),)


@case("torch.matmul", OPS, BATCH * ROWS * INNER * COLUMNS)
def matmul() -> Built:
    import torch

    return calling(lambda a, b: torch.matmul(a, b)), (
        torch.randn(BATCH, ROWS, INNER),
        torch.randn(BATCH, INNER, COLUMNS),
    )


@case("a @ b", OPS, BATCH * ROWS * INNER * COLUMNS)
def at() -> Built:
    import torch

    return calling(operator.matmul), (torch.randn(BATCH, ROWS, INNER), torch.randn(BATCH, INNER, COLUMNS))


@case("torch.bmm", OPS, BATCH * ROWS * INNER * COLUMNS)
def bmm() -> Built:
    import torch

    return calling(lambda a, b: torch.bmm(a, b)), (torch.randn(BATCH, ROWS, INNER), torch.randn(BATCH, INNER, COLUMNS))


@case("torch.mm", OPS, ROWS * INNER * COLUMNS)
def mm() -> Built:
    import torch

    return calling(lambda a, b: torch.mm(a, b)), (torch.randn(ROWS, INNER), torch.randn(INNER, COLUMNS))


@case("torch.baddbmm", OPS, BATCH * ROWS * INNER * COLUMNS)
def baddbmm() -> Built:
    import torch

    factors = torch.randn(BATCH, ROWS, INNER), torch.randn(BATCH, INNER, COLUMNS)
    return calling(lambda c, a, b: torch.baddbmm(c, a, b)), (torch.randn(BATCH, ROWS, COLUMNS), *factors)


@case("matmul, broadcast", OPS, (2 * 5) * 3 * 4 * 6)
def broadcast() -> Built:
    import torch

    return calling(lambda a, b: torch.matmul(a, b)), (torch.randn(2, 1, 3, 4), torch.randn(5, 4, 6))


@case("matrix by vector", OPS, 5 * 8)
def mv() -> Built:
    import torch

    return calling(lambda a, b: torch.mv(a, b)), (torch.randn(5, 8), torch.randn(8))


@case("torch.dot", OPS, 8, also=8 - 1 / 2)
def dot() -> Built:
    import torch

    return calling(lambda a, b: torch.dot(a, b)), (torch.randn(8), torch.randn(8))


@case("einsum", OPS, 3 * 7 * 129 * 129 * 33)
def einsum() -> Built:
    import torch

    queries = torch.randn(3, 7, 129, 33)
    return calling(lambda q, k: torch.einsum("bhid,bhjd->bhij", q, k)), (queries, torch.randn(3, 7, 129, 33))


@case("grouped_mm", OPS, 8 * 16 * 32)
def grouped_mm() -> Built:
    import torch
    from torch.nn import functional

    ends = torch.tensor([2, 4, 6, 8], dtype=torch.int32)
    rows, weight = torch.randn(8, 16).bfloat16(), torch.randn(4, 16, 32).bfloat16()
    return calling(lambda x, w: functional.grouped_mm(x, w, offs=ends), weight=weight), (rows,)


@case("int8 product (_int_mm)", OPS, 32 * 16 * 8)
def int_mm() -> Built:
    import torch

    return calling(lambda a, b: torch._int_mm(a, b)), (
        torch.ones(32, 16, dtype=torch.int8),
        torch.ones(16, 8, dtype=torch.int8),
    )


@case("sparse by dense", OPS, 10 * 5)
def sparse() -> Built:
    import torch

    places = torch.stack((torch.arange(10) % 6, torch.arange(10) % 8))
    matrix = torch.sparse_coo_tensor(places, torch.ones(10), (6, 8)).coalesce()
    return calling(lambda a, b: torch.sparse.mm(a, b)), (matrix, torch.randn(8, 5))


@case("dynamically quantized Linear", OPS, 10 * 10)
def quantized() -> Built:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(10, 10))
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}), (torch.randn(1, 10),)


@case("torch.compile", OPS, 10 * 10)
def compiled() -> Built:
    import torch
    from torch import nn

    return torch.compile(nn.Sequential(nn.Linear(10, 10)), backend="eager"), (torch.randn(1, 10),)


@case("torch.jit.script", OPS, 10 * 10)
def scripted() -> Built:
    import torch
    from torch import nn

    return torch.jit.script(nn.Sequential(nn.Linear(10, 10))), (torch.randn(1, 10),)


@case("embedding", OPS, 0)
def embedding() -> Built:
    import torch
    from torch import nn

    return nn.Embedding(100, 16), (torch.zeros(2, 7, dtype=torch.long),)


@case("backward of a depthwise convolution", OPS, 3 * PIXELS * OUT * TAPS, train=True)
def conv_backward() -> Built:
    import torch
    from torch import nn

    layer = nn.Conv2d(OUT, OUT, KERNEL, padding=1, groups=OUT, bias=False)
    return layer, (torch.randn(1, OUT, SIDE, SIDE, requires_grad=True),)
