"""Import torch and torchvision, build a ResNet-18, and run so many inferences: torch_resnet18.py INFERENCES."""

import sys

import torch
import torchvision

torch.manual_seed(0)
net = torchvision.models.resnet18(weights=None).eval()
image = torch.randn(1, 3, 224, 224)
with torch.inference_mode():
    for _ in range(int(sys.argv[1])):
        print(net(image).argmax().item())
