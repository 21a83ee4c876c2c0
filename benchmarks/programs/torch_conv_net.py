"""Time passes of a warm conv net: prints the shortest in seconds.

torch_conv_net.py [spans]: with "spans" prints four, before flopwatch is imported, after, within a span, and after it.
"""

import sys
import time

import torch
from torch import nn

PASSES = 30

torch.manual_seed(0)
torch.set_num_threads(1)  # on a busy machine threads that wait for each other measure the others' work
net = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(64, 64, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(64, 128, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(128, 10),
).eval()
image = torch.randn(4, 3, 112, 112)


def shortest() -> float:
    """Seconds of the shortest pass; the first few, which prepare code, are left out."""
    for _ in range(5):
        net(image)
    times = []
    for _ in range(PASSES):
        start = time.perf_counter()
        net(image)
        times.append(time.perf_counter() - start)
    return min(times)


with torch.inference_mode():
    figures = [shortest()]
    if sys.argv[1:] == ["spans"]:
        import flopwatch

        span = flopwatch.count()
        figures.append(shortest())
        with span:
            figures.append(shortest())
        figures.append(shortest())
print(*figures)
