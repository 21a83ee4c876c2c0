"""Convolutions in fp32, fp64, bf16 and fp16: plain, strided, grouped, transposed, one-dimensional and pointwise."""
# needs: torch

import torch
import torch.nn.functional as F
from show import show

torch.manual_seed(3)
torch.set_num_threads(2)
for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
    x, w = torch.randn(2, 16, 28, 28).to(dtype), torch.randn(32, 16, 3, 3).to(dtype)
    show(f"{dtype} conv", F.conv2d(x, w, padding=1))
    show("strided", F.conv2d(x, w, stride=2))
    show("grouped", F.conv2d(x, w[:, :4], groups=4))
    show("depthwise", F.conv2d(x, w[:16, :1], groups=16, padding=1))
    show("pointwise", F.conv2d(x, w[:, :, :1, :1]))
    show("transposed", F.conv_transpose2d(x, w[:16].transpose(0, 1)[:16], stride=2))
    show("one dimension", F.conv1d(x[:, :, 0], w[:, :, 0]))
