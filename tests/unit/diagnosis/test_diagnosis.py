"""The doctor on machines of many kinds, played from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flopwatch.diagnosis import SUBJECTS, State, encode
from flopwatch.diagnosis.view import sheet
from flopwatch.reports import table
from tests.unit.diagnosis.machines import DATA, NAMES, Machine


@pytest.fixture(params=NAMES)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return Machine(request.param, tmp_path)


def test_every_expected_line_is_there(machine: Machine) -> None:
    found = machine.diagnosis()
    assert machine.data["expect"]
    for place, wanted in machine.data["expect"].items():
        section, name = place.split("/", 1)
        lines = [each for each in found.section(section).findings if each.name == name]
        assert lines, f"{place} is missing: {[each.name for each in found.section(section).findings]}"
        state, _, words = wanted.partition(":")
        assert lines[0].state == state, f"{place}: {lines[0]}"
        for word in filter(None, (word.strip() for word in words.split(" | "))):
            assert any(word in f"{line.text} {line.todo}" for line in lines), f"{place}: {word!r} is not in {lines}"


def test_the_verdict_and_the_exit_code_agree(machine: Machine) -> None:
    found = machine.diagnosis()
    working = [each.name for each in found.section("what counts here").findings if each.state is State.OK]
    assert list(found.usable) == working
    assert found.exit_code == (0 if working else 4)


def test_a_line_has_one_of_three_states_and_says_why_or_what_to_do(machine: Machine) -> None:
    for section in machine.diagnosis().sections:
        assert section.findings, f"{section.name} is empty"
        for each in section.findings:
            assert each.text, each
            assert each.state in ("ok", "cannot", "to do")
            assert bool(each.todo) or each.state is not State.TODO, each
            assert not (each.state is State.OK and each.todo), each


def test_the_sheet_fits_80_columns_and_loses_no_word(machine: Machine, tmp_path: Path) -> None:
    found = machine.diagnosis()
    path = tmp_path / "sheet"
    with path.open("w") as file:
        table.render(sheet(found), file)
    text = path.read_text()
    assert max(map(len, text.splitlines())) <= 80
    together = "".join(text.split())
    for section in found.sections:
        for each in section.findings:
            for word in each.todo.split():
                assert word in together or len(word) > 40, word


def test_json_has_the_same_findings_and_bare_facts(machine: Machine) -> None:
    found = machine.diagnosis()
    document = json.loads(encode(found))
    assert document["schema"] == 1
    assert document["usable"] == list(found.usable)
    assert [section["name"] for section in document["sections"]] == [section.name for section in found.sections]
    assert {"name", "state", "text", "todo"} == set(document["sections"][0]["findings"][0])
    facts = {section["name"]: section["facts"] for section in document["sections"]}
    assert facts["what counts here"] == {"usable": list(found.usable)}
    assert {"model", "cpuid", "board", "cpus", "microarchitectures"} <= set(facts["processor"])
    assert {"versions", "isa_caps"} <= set(facts["frameworks"])


def test_every_subject_is_a_section_and_every_machine_is_explained(tmp_path: Path) -> None:
    found = Machine("bare-metal", tmp_path).diagnosis()
    assert len(found.sections) == 1 + len(SUBJECTS)
    assert len({section.name for section in found.sections}) == len(found.sections)
    for path in DATA.glob("*.toml"):
        assert path.read_text().startswith("# "), path


def test_an_empty_machine_ends_in_sentences(tmp_path: Path) -> None:
    """Nothing can be read: no line is missing, and nothing is made up."""
    machine = Machine("nothing", tmp_path)
    found = machine.diagnosis()
    assert found.exit_code == 4
    assert sheet(found).title.endswith("cannot count FLOP on this machine")
    assert found.section("caches").facts == {"caches": []}
