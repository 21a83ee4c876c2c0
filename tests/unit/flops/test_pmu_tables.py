"""Every row of every event table, checked."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest

from flopwatch import processors
from flopwatch.flops import pmu
from flopwatch.flops.convention import PMU
from flopwatch.flops.operations import DType, Operation
from flopwatch.flops.pmu import PmuRow, PmuTable

TABLES = [pmu.load(name) for name in pmu.names()]
FOLDER = resources.files("flopwatch.flops") / "tables" / "pmu"
# Umasks of these are no sets of bits: type and operation are fields of one number.
FIELDS = {"zen5", "zen6"}


def problems_of(table: PmuTable) -> list[str]:
    """What is wrong with a table as a whole."""
    found = []
    codes = Counter(code for row in table.rows for code in (row.code, *row.other_codes))
    found += [f"the raw code {code:#x} stands in several rows" for code, times in codes.items() if times > 1]
    names = Counter(name.lower() for row in table.rows for name in (row.name, *row.also))
    found += [f"the name {name} stands in several rows" for name, times in names.items() if times > 1]
    if table.can != "yes" and not table.because:
        found.append(f"can is {table.can}, and nothing says why")
    if not table.cannot:
        found.append("nothing says what it cannot do")
    if table.can == "no" and table.set:
        found.append("it cannot count, yet has sets")
    if table.can != "no" and not (table.set and table.counts):
        found.append("nothing says what it counts")
    if len({each.dtype for each in table.set}) < len(table.set):
        found.append("two sets have the same datatype")
    for text in (table.because, table.counts, *table.overcounts, *table.cannot, *table.notes):
        if text and not re.fullmatch(r"[A-Z0-9x].*\.", text):
            found.append(f"not a sentence: {text}")
    return found


def problems_of_row(table: PmuTable, row: PmuRow) -> list[str]:
    """What is wrong with one row."""
    found = []
    if not row.source:
        found.append("no source")
    if not (0 <= row.event <= (0xFFF if table.isa == "x86_64" else 0xFFFF) and 0 <= row.umask <= 0xFF):
        found.append("event or umask out of range")
    if table.isa == "aarch64" and (row.umask or row.cmask):
        found.append("umask on Arm")
    kinds = [row.weight is not None, bool(row.when_zero), bool(row.warns), bool(row.free)]
    if sum(kinds) > 1:
        found.append("more than one worth")
    if not any(kinds) and not row.note:
        found.append("worth not known, and nothing says why")
    if (row.weight is None) != (row.dtype is None) or (row.weight is None) != (row.operation is None):
        found.append("weight, operation and datatype go together")
    if row.weight is not None:
        if not 1 <= row.weight <= 64:
            found.append("weight out of range")
        if row.lanes is None and row.operation is not Operation.ANY:
            found.append("an operation without lanes")
        if row.lanes is not None and row.lanes not in (1, 2, 4, 8, 16, 32):
            found.append("lanes out of range")
        if row.lanes is not None and row.operation and PMU.weights[row.operation] * row.lanes != row.weight:
            found.append("lanes and weight disagree")
    if row.counters not in (1, 2):
        found.append("counters out of range")
    if row.per_bits is not None and table.vector_bits is None:
        found.append("counts per bits of a vector, whose length is not given")
    parts = [table.by_name[name.lower()] for name in row.includes]
    if row.weight is not None and any(part.weight != row.weight or part.per_bits != row.per_bits for part in parts):
        found.append("includes events of another weight")
    if parts and table.isa == "x86_64" and table.name not in FIELDS:
        union = 0
        for part in parts:
            union |= part.umask
        if union & ~row.umask or any(part.event != row.event for part in parts):
            found.append("includes events that it does not count")
    return found


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_table(table: PmuTable) -> None:
    assert problems_of(table) == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows(table: PmuTable) -> None:
    wrong = {row.name: problems_of_row(table, row) for row in table.rows}
    assert {name: problems for name, problems in wrong.items() if problems} == {}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_sets_count_each_operation_once(table: PmuTable) -> None:
    for dtype, rows in table.sets.items():
        assert all(row.weight is not None or row.when_zero for row in rows), dtype
        assert dtype is DType.ANY or all(row.dtype is dtype for row in rows), dtype
    for rows in (table.apart(), table.whole()):
        leaves = [leaf for row in rows for leaf in table.leaves([row])]
        assert len(leaves) == len(set(leaves))
    assert table.leaves(table.apart()) == table.leaves(table.whole())


@pytest.mark.parametrize("name", pmu.names())
def test_files_extend_instead_of_copying(name: str) -> None:
    own = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    if "extends" not in own:
        return
    base = pmu.load(own["extends"])
    full = pmu.load(name)
    for row in own.get("row", ()):
        before = base.by_name.get(row["name"].lower())
        assert before != full.by_name[row["name"].lower()], f"{row['name']} is the same as in {base.name}"


def test_the_lint_finds_what_it_is_for() -> None:
    def made(rows: str, head: str = "") -> PmuTable:
        text = f'title = "t"\nisa = "x86_64"\ncan = "yes"\ncounts = "C."\ncannot_see = ["S."]\nsources = ["s"]\n{head}'
        return pmu.resolve("t", lambda name: text + "budget = { counters = 4 }\n" + rows)

    same = (
        '[[row]]\nname = "{}"\nevent = 3\numask = 0xa0\nsource = "s"\noperation = "any"\ndtype = "fp32"\nweight = 1\n'
    )
    assert "the raw code 0xa003 stands in several rows" in problems_of(made(same.format("a") + same.format("b")))
    half = same.format("a").replace("weight = 1", "weight = 2\nlanes = 4")
    assert problems_of_row(made(half), made(half).rows[0]) == ["lanes and weight disagree"]
    with pytest.raises(ValueError, match="fp23"):
        made(same.format("a").replace("fp32", "fp23"))
    with pytest.raises(ValueError, match="no row named b"):
        made(same.format("a") + 'includes = ["b"]\n')


def test_every_table_is_reachable_and_every_processor_has_one() -> None:
    rows = processors.detection.data()
    named = {row.microarchitecture for row in (*rows.x86, *rows.arm) if row.microarchitecture}
    named |= {table for row in rows.x86 for table in row.kinds.values()}
    assert named == set(pmu.names())


def test_no_name_of_a_chip_stands_in_code() -> None:
    names = {name for name in processors.names() if len(name) > 3 and name.isascii()}
    words = re.compile(rf"\b({'|'.join(map(re.escape, sorted(names)))})\b", re.IGNORECASE)
    source = Path(pmu.__file__).parent.parent
    for path in source.rglob("*.py"):
        found = words.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path.name}: {found}"
