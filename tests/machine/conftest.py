"""Programs that are built for a session are removed at its end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.machine import helpers


@pytest.fixture(scope="session", autouse=True)
def _built() -> Iterator[None]:
    yield
    helpers.remove_built()
