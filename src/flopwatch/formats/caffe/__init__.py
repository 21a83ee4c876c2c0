"""Caffe: networks in prototxt files, followed from their text alone; neither weights nor Caffe are needed."""

from __future__ import annotations

from flopwatch.formats.caffe.tracing import trace

__all__ = ["trace"]
