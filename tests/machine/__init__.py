"""Tests that run programs, with and without counting."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.machine.helpers")
