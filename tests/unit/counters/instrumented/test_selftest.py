"""The engine's self-test passes here, soon, and says what is wrong where it does not."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from flopwatch.counters.instrumented import selftest
from flopwatch.counters.instrumented.inprocess import Engine

pytestmark = pytest.mark.engine

PROGRAM = """
from flopwatch.counters.instrumented import selftest
import time
selftest.run()
begin = time.perf_counter()
print(selftest.run())
print(time.perf_counter() - begin)
"""


def test_passes_in_a_process_of_its_own() -> None:
    out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    answer, seconds = out.splitlines()
    assert answer == "Availability(ok=True, reason='', todo='')"
    assert float(seconds) < 1  # under 0.1 on an idle machine


def test_passes_without_the_wider_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = time.perf_counter()
    for flags in ({"avx"}, set[str]()):
        monkeypatch.setattr(selftest, "_processor_flags", lambda flags=flags: flags)
        assert selftest.run().ok
    assert time.perf_counter() - begin < 20


def test_says_that_counting_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "_running", Engine())
    answer = selftest.run()
    assert not answer.ok
    assert "under way" in answer.reason


def test_says_what_was_counted_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_processor_flags", set[str])
    monkeypatch.setattr(Engine, "read", lambda self: ())
    assert selftest.run().reason == "the engine counted 0 rounds of a loop of 1000."
