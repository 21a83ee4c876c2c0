"""What a counter answers for one case, and what is to be thought of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Unit = Literal["MAC", "FLOP"]


@dataclass(frozen=True)
class Count:
    """A figure as a counter gives it; `said` is what it said of operators that it does not know, `others` its work beside products."""

    value: float
    unit: Unit
    said: tuple[str, ...] = ()
    others: int | None = None

    @property
    def mac(self) -> float:
        """The figure as multiply-accumulates: half of a number of FLOP."""
        return self.value / 2 if self.unit == "FLOP" else self.value


@dataclass(frozen=True)
class Answer:
    """A count, or the error that came instead of it; `seconds` include reading or tracing the model, not building it."""

    case: str
    count: Count | None = None
    error: str = ""
    seconds: float = 0.0
    version: str = ""

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def of(document: dict[str, Any]) -> Answer:
        """Back from JSON."""
        count = document.get("count")
        if count is not None:
            count = Count(count["value"], count["unit"], tuple(count["said"]), count["others"])
        return Answer(**{**document, "count": count})


VERDICTS = ("right", "right+", "warned", "silent", "crashed")
"""right: exactly the products, by one rule or another. right+: the products, and other arithmetic or bias added as if it
were products. warned: wrong, but it said that something was not counted. silent: wrong without a word. crashed: no figure."""

# Those who count other arithmetic as well value it differently: a batch normalisation is two operations an element, or four.
LENIENCE = 2


def verdict(answer: Answer, mac: int, also: float | None, others: int) -> str:
    """What to think of an answer where `mac` is right, `also` by another rule, and the model does so many other operations."""
    if answer.count is None:
        return "crashed"
    found = answer.count.mac
    if found in (mac, also):
        return "right"
    if mac < found <= mac + LENIENCE * others:
        return "right+"
    return "warned" if answer.count.said else "silent"


@dataclass
class Score:
    """How often a counter came to each verdict, and its seconds."""

    seconds: float = 0.0
    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VERDICTS, 0))
