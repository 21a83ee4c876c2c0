"""The instruction table as data."""

from __future__ import annotations

import iced_x86
import msgspec
import pytest

from flopwatch.flops.table import CountedRow, FreeRow, load_table, parse_table

TABLE = load_table("x86_64")
MNEMONICS = {name.lower() for name in vars(iced_x86.Mnemonic) if name.isupper()}
HEAD = 'isa = "test"\ncoprocessor = "none"\nfree = []\n'
ROW = '[[counted]]\nnames = "addps"\noperation = "add"\nlanes = "operand"\nsource = "x"\n'


def test_every_row_has_a_source_and_names() -> None:
    rows: tuple[CountedRow | FreeRow, ...] = (*TABLE.counted, *TABLE.free)
    for row in rows:
        assert row.source.strip() and row.names.split(), row


def test_every_name_is_an_instruction() -> None:
    assert set(TABLE.by_mnemonic()) - MNEMONICS == set()


def test_numbers_are_positive() -> None:
    for row in TABLE.counted:
        assert row.times >= 1
        assert isinstance(row.lanes, str) or row.lanes >= 1
        assert all(bits is None or bits in (8, 16, 32, 64) for bits in (row.lane_bits, row.mask_bits))


def test_every_free_reason_is_explained_once() -> None:
    reasons = [row.reason for row in TABLE.free]
    assert len(reasons) == len(set(reasons))
    assert all(row.note for row in TABLE.free)


def test_a_name_in_two_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="addps"):
        parse_table(HEAD + ROW + ROW).by_mnemonic()


@pytest.mark.parametrize("line", ['lanse = "operand"', 'dtype = "fp33"'])
def test_a_typo_is_refused(line: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        parse_table(HEAD + ROW + line)
