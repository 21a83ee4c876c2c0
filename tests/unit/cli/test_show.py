"""`flopwatch show`, on files that perf wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flopwatch import cli
from tests.unit.test_imported import ARTICLE, ARTICLE_FLOP


@pytest.fixture
def counts(tmp_path: Path) -> str:
    path = tmp_path / "counts.csv"
    path.write_text(ARTICLE)
    return str(path)


def test_the_articles_counts(counts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", "--from", "perf", counts, "--cpu", "skylake"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"fp32 {ARTICLE_FLOP:,} 100 %" in out
    assert "convention: the processor's own" in out and "in fused multiply-adds: not told apart" in out
    assert "coverage: 4 of 4 events classified" in out


def test_as_json(counts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", "--from", "perf", counts, "--cpu", "skylake", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["flop"] == {"fp32": 3_253_835_546}
    assert document["counter"] == "hardware"
    assert {(each["operation"], each["dtype"]) for each in document["operations"]} == {("any", "fp32")}
    assert [each["code"] for each in document["events"]] == ["2c7", "8c7", "20c7", "80c7"]


def test_saved_and_shown_again(counts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = str(tmp_path / "r.json")
    assert cli.run(["show", "--from", "perf", counts, "--cpu", "skylake", "-o", saved]) == 0
    assert cli.run(["show", saved, "-x", ";"]) == 0
    assert f"flop;{ARTICLE_FLOP};FLOP" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--cpu", "skylke"], 2, "Did you mean skylake"),
        ([], 2, "does not say which processor it comes from"),
        (["--cpu", "haswell"], 4, "It has no event that counts SSE or AVX arithmetic"),
        (["--cpu", "zen4"], 4, "None of the events counts FLOP on zen4"),
        (["--cpu", "skylake", "--convention", "arithmetic"], 2, "cannot be weighed by another rule"),
        (["--cpu", "skylake", "--strict"], 0, ""),
    ],
)
def test_errors(counts: str, arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", "--from", "perf", counts, *arguments]) == code
    assert said in capsys.readouterr().err


def test_cpu_alone_makes_no_sense(counts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["show", counts, "--cpu", "skylake"]) == 2
    assert "Add --from perf" in capsys.readouterr().err
