"""`flopwatch doctor` as typed, on played machines and on this one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flopwatch import api, cli
from tests.unit.diagnosis.machines import Machine


@pytest.mark.parametrize(
    ("name", "code"), [("bare-metal-open", 0), ("cloud-without-pmu", 0), ("raspberry-pi-3", 4), ("macos", 4)]
)
def test_text_and_exit_code(
    name: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(api, "doctor", Machine(name, tmp_path).diagnosis)
    assert cli.run(["doctor"]) == code
    out = capsys.readouterr().out
    assert out.startswith("flopwatch ")
    assert ("cannot count" in out.splitlines()[0]) is (code == 4)
    assert max(map(len, out.splitlines())) <= 80
    for section in ("WHAT COUNTS HERE", "PROCESSOR", "CACHES", "EVENTS", "PERMISSIONS", "GPU", "FRAMEWORKS"):
        assert section in out.splitlines()


def test_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(api, "doctor", Machine("docker", tmp_path).diagnosis)
    assert cli.run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["usable"] == ["instrumented"]
    assert found["sections"][0]["findings"][1]["state"] == "to do"


def test_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever it is: findings, sentences, and an exit code that agrees with them."""
    code = cli.run(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == (0 if found["usable"] else 4)
    assert {each["name"] for each in found["sections"][0]["findings"]} == {"instrumented", "hardware"}
