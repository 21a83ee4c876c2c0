"""8-bit integer products by torch._int_mm, and sums of small integers."""
# needs: torch

import torch
from show import show

torch.manual_seed(2)
a = torch.randint(-128, 128, (64, 128), dtype=torch.int8)
b = torch.randint(-128, 128, (128, 96), dtype=torch.int8)
show("int_mm", torch._int_mm(a, b))
show("exact", torch._int_mm(a, b) == a.int() @ b.int())
show("int64", a.long() @ b.long())
