"""Chainer: the links and functions of a live model, forward and backward, onto scopes."""

from __future__ import annotations

from flopwatch.frameworks.chainer.compat import load
from flopwatch.frameworks.chainer.hooks import Call, ChainerHooks

__all__ = ["Call", "ChainerHooks", "load"]
