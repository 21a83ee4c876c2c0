"""The small programs count what their source says, to the last operation, and behave as they do without counting."""

from __future__ import annotations

import pytest

from tests.machine import helpers
from tests.targets.expected import BUILDS, CASES, FOLDER, Build, sizes

pytestmark = pytest.mark.engine

BUILT = [(name, way) for name, case in CASES.items() for way in BUILDS if way in case.builds]
IDS = [f"{name}-{way.name}" for name, way in BUILT]


def test_every_source_has_an_expected_count() -> None:
    sources = {path.stem for path in FOLDER.iterdir() if path.suffix in (".c", ".cpp")}
    assert sources - {"plugin", "served"} == set(CASES)  # a library, and what test_attach attaches to


@pytest.mark.parametrize(("name", "way"), BUILT, ids=IDS)
def test_runs_without_counting(name: str, way: Build) -> None:
    """Each target is right by itself: its own checks pass and it ends as the table says."""
    case = CASES[name]
    helpers.need_machine(*way.needs, *case.needs)
    native = helpers.run([str(helpers.build(name, way))], stdin=case.stdin)
    assert native.code == case.code, native.stderr


@pytest.mark.parametrize(("name", "way"), BUILT, ids=IDS)
def test_counts_exactly(name: str, way: Build) -> None:
    case = CASES[name]
    helpers.need_machine(*way.needs, *case.needs)
    program = [str(helpers.build(name, way))]
    native = helpers.run(program, stdin=case.stdin)
    counted = helpers.count(program, "--by", "process", stdin=case.stdin)
    helpers.assert_same(native, counted.run)

    named = sizes(*(case.sources or (helpers.source(name).name,)))
    counts = case.counts(named, way)
    assert counted.operations() == {key: number for key, number in counts.items() if number}
    assert counted.flop() == counts.flop()
    assert counted.active() == dict(case.active(named))
    assert counted.record["unknown"] == []
    assert counted.record["exit_code"] == case.code
    if case.complete is not None:
        assert counted.record["complete"] is case.complete, counted.record["partial"]

    rows = [sum(row["flop"].values()) for row in counted.record["rows"]]
    assert sum(rows) == sum(counts.flop().values()), "the processes sum to the total"
    if case.processes and counts:
        assert sum(1 for row in counted.record["rows"] if row["operations"]) == case.processes
