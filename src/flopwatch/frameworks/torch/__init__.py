"""PyTorch: the modules and operators of a live model, forward and backward, onto scopes."""

from __future__ import annotations

from flopwatch.frameworks.torch.hooks import TorchHooks
from flopwatch.frameworks.torch.layers import Layers
from flopwatch.frameworks.torch.untouched import untouched

__all__ = ["Layers", "TorchHooks", "untouched"]
