"""TorchScript, fx, vmap, second derivatives, and a file saved and read."""
# needs: torch

import io

import torch
from show import show

torch.manual_seed(10)
net = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.Tanh(), torch.nn.Linear(30, 1))
x = torch.randn(6, 20)
show("fx", torch.fx.symbolic_trace(net)(x))
show("vmap", torch.func.vmap(torch.func.grad(lambda one: net(one).sum()))(x))
show("hessian", torch.autograd.functional.hessian(lambda one: net(one).sum(), x[0]))
file = io.BytesIO()
torch.save(net.state_dict(), file)
file.seek(0)
net.load_state_dict(torch.load(file))
show("loaded", net(x))
