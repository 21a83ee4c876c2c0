"""LSTM, GRU and embedding, forward and backward."""
# needs: torch

import torch
from show import show

torch.manual_seed(5)
x = torch.randn(4, 12, 24)
for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
    net = kind(24, 40, num_layers=2, batch_first=True, bidirectional=True)
    out = net(x)[0]
    show(kind.__name__, out)
    out.square().mean().backward()
    show("gradient", next(net.parameters()).grad)
table = torch.nn.Embedding(100, 16)
show("embedding", table(torch.arange(20).reshape(4, 5)))
