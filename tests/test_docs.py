"""Every command has help and stands in the documents, and the documents' own claims hold."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from flopwatch import cli, counters, reports
from flopwatch.explaining import CAUSES
from flopwatch.flops.convention import CONVENTIONS

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/*.md"))


def text_of(*names: str) -> str:
    return "\n".join((ROOT / name).read_text() for name in names)


def command(name: str) -> click.Command:
    found = cli.group.get_command(click.Context(cli.group), name)
    assert found is not None
    return found


def test_the_tuple_of_commands_is_the_folder() -> None:
    files = {path.stem for path in Path(cli.__file__).parent.glob("*.py")} - {"__init__", "output"}
    assert set(cli.NAMES) == files


@pytest.mark.parametrize("name", cli.NAMES)
def test_every_command_and_option_has_help_and_is_documented(name: str) -> None:
    found = command(name)
    assert found.help
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.name} has no help"
    assert f"flopwatch {name}" in text_of("README.md", "docs/command-line.md")
    document = text_of("docs/command-line.md")
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert any(f"`{option}" in document for option in parameter.opts), (
                f"{name} {parameter.opts} is not documented"
            )


@pytest.mark.parametrize("name", [*CONVENTIONS, *counters.NAMES, *reports.NAMES])
def test_every_convention_counter_and_format_is_documented(name: str) -> None:
    assert name in text_of("docs/how-it-counts.md", "docs/command-line.md").lower()


@pytest.mark.parametrize(("cause", "meaning"), CAUSES.items())
def test_every_cause_of_a_gap_is_documented(cause: str, meaning: str) -> None:
    assert f"| {cause} | {meaning} |" in text_of("docs/estimates.md")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_flop_is_a_count_and_a_rate_has_its_slash(path: Path) -> None:
    assert not re.search(r"\bFLOPS\b", path.read_text()), "write FLOP for a count and FLOP/s for a rate"


def test_every_target_of_the_makefile_explains_itself() -> None:
    makefile = text_of("Makefile")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    for target in phony.group(1).split():
        assert re.search(rf"^{target}:.*## ", makefile, re.MULTILINE), f"make {target} has no help"
