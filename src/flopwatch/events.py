"""What counters emit: facts about what ran, without any opinion on what it is worth."""

from __future__ import annotations

from dataclasses import dataclass

from flopwatch.scope import Scope


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block of machine code and how often it ran in one scope.

    `active` holds, for each masked instruction, its byte offset in `code` and the sum of its switched-on lanes over all runs.
    `scalable_bits` is the length of a scalable vector where the code ran (SVE; in streaming mode, of that mode's vectors).
    """

    scope: Scope
    isa: str
    address: int
    code: bytes
    runs: int
    active: tuple[tuple[int, int], ...] = ()
    library: str = ""
    symbol: str = ""
    scalable_bits: int = 128


@dataclass(frozen=True, slots=True)
class Reading:
    """A hardware event as the kernel or a profiler reported it: how often it was counted in one scope.

    `code` is the raw code of the event, `enabled` and `running` are nanoseconds; they are equal unless the counter was shared.
    """

    scope: Scope
    name: str
    count: int
    code: int = 0
    enabled: int = 0
    running: int = 0
