"""Training steps of a small convolutional net with SGD, Adam and AdamW, in fp32 and under bf16 autocast."""
# needs: torch

import torch
from show import show
from torch import nn

for optimizer in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
    for low in (False, True):
        torch.manual_seed(8)
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Dropout(),
            nn.Linear(128, 10),
        )
        step = optimizer(net.parameters(), lr=0.01)
        for _ in range(4):
            x, y = torch.randn(8, 3, 20, 20), torch.randint(0, 10, (8,))
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
                loss = nn.functional.cross_entropy(net(x), y)
            step.zero_grad()
            loss.backward()
            step.step()
        show(f"{optimizer.__name__} {'bf16' if low else 'fp32'}", loss)
        for name, parameter in net.named_parameters():
            show(name, parameter)
