"""Python threads that each run a net, beside torch's own pool; then the pool's size is changed."""
# needs: torch

from concurrent.futures import ThreadPoolExecutor

import torch
from show import show

torch.manual_seed(9)
net = torch.nn.Sequential(torch.nn.Linear(100, 200), torch.nn.GELU(), torch.nn.Linear(200, 50)).eval()
inputs = [torch.randn(64, 100) for _ in range(12)]
for threads in (1, 2, 3):
    torch.set_num_threads(threads)
    with ThreadPoolExecutor(4) as pool, torch.inference_mode():
        for number, out in enumerate(pool.map(net, inputs)):
            show(f"{threads} threads, input {number}", out)
