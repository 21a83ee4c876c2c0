from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from flopwatch import counters
from flopwatch.counters import ANYTHING, Availability, CommandOptions, CommandResult, Needs
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.subjects import elf


class Refusing:
    """A counter that does not work here."""

    name = "refusing"

    def available(self, needs: Needs = ANYTHING) -> Availability:
        return Availability(False, "There is no such processor.", "Use another one.")

    def run_command(self, argv: Sequence[str], options: CommandOptions) -> CommandResult:
        raise NotImplementedError

    def attach(self, pid: int, wait: Callable[[], bool], needs: Needs = ANYTHING) -> CommandResult:
        raise NotImplementedError

    def check(self, program: elf.Program, *, running: bool = False) -> None:
        raise NotImplementedError


def test_the_tuple_of_names_is_the_folder() -> None:
    folder = Path(counters.__file__).parent
    found = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    assert set(counters.NAMES) == found - {"__init__"}


def test_a_name_that_does_not_exist_is_a_sentence() -> None:
    with pytest.raises(UsageError, match=r"no counter named 'sundial'. Choose one of: auto, hardware, instrumented"):
        counters.find("sundial")


@pytest.mark.parametrize(
    ("name", "happened"), [("auto", "No counter works here."), ("refusing", "The refusing counter does not work here.")]
)
def test_a_counter_that_does_not_work_says_why(monkeypatch: pytest.MonkeyPatch, name: str, happened: str) -> None:
    module = ModuleType("flopwatch.counters.refusing")
    module.COUNTER = Refusing()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(counters, "NAMES", ("refusing",))
    with pytest.raises(CannotMeasureError) as caught:
        counters.find(name)
    assert str(caught.value) == f"{happened} refusing: There is no such processor. Use another one."
