from __future__ import annotations

import pytest

from flopwatch.sheet import Column, Sheet


def test_a_heading_has_its_unit() -> None:
    assert Column("rate", "real", "GFLOP/s").heading == "rate [GFLOP/s]"
    assert Column("symbol").heading == "symbol"


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 values for 1 columns"):
        Sheet("t", (Column("a"),), (("x", "y"),))
