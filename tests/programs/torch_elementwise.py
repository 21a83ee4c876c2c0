"""Norms, activations, softmax, pooling, interpolation and reductions in three datatypes."""
# needs: torch

import torch
import torch.nn.functional as F
from show import show

torch.manual_seed(7)
for dtype in (torch.float32, torch.float64, torch.bfloat16):
    x = torch.randn(3, 20, 19, 21).to(dtype)
    show(f"{dtype} layer norm", F.layer_norm(x, x.shape[1:]))
    show("batch norm", F.batch_norm(x, None, None, training=True))
    show("group norm", F.group_norm(x, 4))
    for name in ("gelu", "silu", "relu", "elu", "softplus", "sigmoid", "tanh", "mish", "hardswish"):
        show(name, getattr(F, name)(x))
    show("tanh gelu", F.gelu(x, approximate="tanh"))
    show("softmax", F.softmax(x, 1))
    show("max pool", F.max_pool2d(x, 3))
    show("mean pool", F.avg_pool2d(x, 3, padding=1))
    show("bilinear", F.interpolate(x, scale_factor=1.7, mode="bilinear"))
    for name in ("exp", "log1p", "sin", "erf", "rsqrt", "cumsum"):
        show(name, torch.cumsum(x, 1) if name == "cumsum" else torch.nan_to_num(getattr(torch, name)(x)))
    show("sums", torch.stack([x.sum(), x.mean(), x.var(), x.amax(), x.norm()]))
