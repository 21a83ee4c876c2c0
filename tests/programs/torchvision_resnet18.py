"""One inference of a ResNet-18 with random weights."""
# needs: torch torchvision

import torch
import torchvision
from show import show

torch.manual_seed(11)
net = torchvision.models.resnet18(weights=None).eval()
with torch.inference_mode():
    show("output", net(torch.randn(1, 3, 224, 224)))
