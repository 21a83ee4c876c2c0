"""Estimate: run a model once on tensors without data and emit every operator that it calls, forward, backward and optimizer."""

from __future__ import annotations

from flopwatch.frameworks.torch.tracing.following import trace

__all__ = ["trace"]
