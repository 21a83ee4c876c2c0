"""How each counter is asked: a sibling has `VERSION_OF`, the name of its package, and `count(case) -> Count`.

A sibling is imported in the environment of its counter only. `NotForThis` stands for a case that the counter has no way to take.
"""

from __future__ import annotations


class NotForThisError(Exception):
    """The case is of another framework, or asks for what the counter does not claim to do."""
