"""The real machine behind a `Host`: nothing that it asks may raise or hang."""

from __future__ import annotations

import sys
from pathlib import Path

from flopwatch.diagnosis import Host, isa
from flopwatch.diagnosis.frameworks import CAPS, torch_facts
from flopwatch.diagnosis.host import load, run, version


def test_a_command_that_is_missing_fails_or_hangs_is_no_output() -> None:
    assert run(["/nowhere/command"], 5) is None
    assert run([sys.executable, "-c", "import time; time.sleep(60)"], 0.2) is None
    assert Host().output(sys.executable, "-c", "print('a'); exit(3)") == ""
    assert Host().output(sys.executable, "-c", "print('a')") == "a"


def test_versions_are_read_without_importing() -> None:
    assert version("msgspec")
    assert version("no-such-package-here") is None


def test_a_library_that_cannot_be_loaded_says_why() -> None:
    assert "libnowhere.so" in load("libnowhere.so")


def test_files_that_are_not_there_are_empty(tmp_path: Path) -> None:
    host = Host(root=tmp_path)
    (tmp_path / "number").write_text("12\n")
    (tmp_path / "binary").write_bytes(b"Raspberry\xff\0")
    assert (host.read("x/y"), host.number("x"), host.glob("*/z"), host.cpuinfo()) == ("", None, [], [])
    assert host.number("number") == 12
    assert host.number("binary") is None
    assert host.read("binary").startswith("Raspberry")


def test_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("cpu10", "cpu2", "cpu1"):
        (tmp_path / name).mkdir()
    assert Host(root=tmp_path).glob("cpu*") == ["cpu1", "cpu2", "cpu10"]


def test_what_pytorch_prints_is_read_and_nothing_else() -> None:
    def host(text: str) -> Host:
        return Host(run=lambda argv, seconds: run([sys.executable, "-c", f"print({text!r})"], seconds))

    assert torch_facts(host("AVX2 False")) == {"torch_capability": "AVX2", "torch_onednn": False}
    assert torch_facts(host("Traceback")) == {"torch_capability": None, "torch_onednn": None}


def test_flags_are_chosen_by_name_or_stem() -> None:
    flags = frozenset(("avx", "avx2", "avx512f", "avx512_bf16", "amx_tile", "sse", "rtm"))
    assert isa.chosen(flags, isa.X86) == ["avx", "avx2", "avx512_bf16", "avx512f", "amx_tile"]
    assert isa.chosen(flags, isa.HIDDEN) == ["rtm"]
    assert len(set(CAPS)) == len(CAPS)
