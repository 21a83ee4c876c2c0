"""Scaled dot-product attention by each implementation, multi-head attention and a transformer layer."""
# needs: torch

import torch
import torch.nn.functional as F
from show import show

torch.manual_seed(6)
for dtype in (torch.float32, torch.bfloat16, torch.float64):
    q, k, v = (torch.randn(2, 4, 48, 32).to(dtype) for _ in range(3))
    show(f"{dtype}", F.scaled_dot_product_attention(q, k, v))
    show("causal", F.scaled_dot_product_attention(q, k, v, is_causal=True))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        show("math", F.scaled_dot_product_attention(q, k, v))
layer = torch.nn.TransformerEncoderLayer(64, 4, batch_first=True).eval()
show("layer", layer(torch.randn(2, 10, 64)))
show("multi-head", torch.nn.MultiheadAttention(64, 8)(*[torch.randn(10, 2, 64)] * 3)[0])
