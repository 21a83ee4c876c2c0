"""Fixtures for all tests, and what the marks need."""

from __future__ import annotations

import pytest

from flopwatch import counters
from tests.fakes import FakeCounter


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCounter:
    """The counter that everything finds, instead of a real one."""
    counter = FakeCounter()
    monkeypatch.setattr(counters, "find", lambda name="auto", needs=None: counter)
    return counter
