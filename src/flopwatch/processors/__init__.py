"""Which microarchitecture a processor has: by its numbers or by name; unknown ones end in a sentence, never in a guess."""

from __future__ import annotations

from flopwatch.processors.detection import Kind, Processor, detect, find, names

__all__ = ["Kind", "Processor", "detect", "find", "names"]
