"""Files that other programs wrote; each sibling is named as it is typed after --from, and hands over events, never FLOP."""

from __future__ import annotations

NAMES = ("perf",)
