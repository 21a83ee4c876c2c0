"""Matrix products in every datatype, with one and two threads."""
# needs: torch

import torch
from show import show

torch.manual_seed(1)
for threads in (1, 2):
    torch.set_num_threads(threads)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128):
        a, b = torch.randn(96, 130, dtype=dtype), torch.randn(130, 70, dtype=dtype)
        show(f"{dtype} x{threads}", a @ b)
        show("vector", a @ b[:, 0])
        show("batch", torch.bmm(a.reshape(2, 48, 130), b.expand(2, 130, 70)))
