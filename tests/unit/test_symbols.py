from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from flopwatch.counters import Region
from flopwatch.symbols import NO_SYMBOL, RUN_TIME_CODE, UNMAPPED, Place, Symbols, demangle, read_jit_map

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to build a library with known symbols")

SOURCE = "static int helper(int x) { return x * 3; }\nint visible(int x) { return helper(x) + 1; }\n"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "lib.c").write_text(SOURCE)
    made = folder / "lib.so"
    subprocess.run(["gcc", "-O0", "-shared", "-fPIC", "-o", made, folder / "lib.c"], check=True)
    return made


def offset_of(library: Path, symbol: str) -> int:
    lines = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout.splitlines()
    return next(int(line.split()[0], 16) for line in lines if line.endswith(f" {symbol}"))


@needs_gcc
def test_functions_of_a_library_static_ones_too(library: Path) -> None:
    base = 0x7F0000000000
    symbols = Symbols([Region(base, base + 0x10000, 0, str(library))])
    for name in ("visible", "helper"):
        assert symbols.resolve(base + offset_of(library, name) + 4) == Place(str(library), name)


@needs_gcc
def test_a_stripped_library_keeps_the_names_that_it_exports(library: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "-o", stripped, library], check=True)
    symbols = Symbols([Region(0, 0x10000, 0, str(stripped))])
    assert symbols.resolve(offset_of(library, "visible")).symbol == "visible"
    assert symbols.resolve(offset_of(library, "helper")).symbol == NO_SYMBOL


@needs_gcc
def test_a_region_that_begins_inside_the_file(library: Path) -> None:
    start = 0x5000000
    within = offset_of(library, "visible")
    page = within & ~0xFFF
    symbols = Symbols([Region(start, start + 0x1000, page, str(library))])
    assert symbols.resolve(start + within - page).symbol == "visible"


@pytest.mark.parametrize("path", ["", "[heap]", "[anon:jit]", "/memfd:doublemapper (deleted)"])
def test_run_time_code_has_the_names_that_its_maker_gives(path: str) -> None:
    text = "1000 20 first\n1000 20 second name\nbroken\n"
    symbols = Symbols([Region(0x1000, 0x2000, 0, path)], text)
    assert symbols.resolve(0x1010) == Place(RUN_TIME_CODE, "second name")
    assert symbols.resolve(0x1020) == Place(RUN_TIME_CODE, RUN_TIME_CODE)


def test_places_without_names() -> None:
    symbols = Symbols([Region(0x1000, 0x2000, 0, "/gone.so (deleted)"), Region(0x3000, 0x4000, 0, "[vdso]")])
    assert symbols.resolve(0x1000) == Place("/gone.so", NO_SYMBOL)
    assert symbols.resolve(0x3000) == Place("[vdso]", NO_SYMBOL)
    assert symbols.resolve(0x2000) == Place(UNMAPPED, UNMAPPED)
    assert Symbols([]).resolve(0) == Place(UNMAPPED, UNMAPPED)


def test_a_file_that_is_no_library_has_no_symbols(tmp_path: Path) -> None:
    for content in (b"", b"text", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 80):
        file = tmp_path / f"file{len(content)}"
        file.write_bytes(content)
        assert Symbols([Region(0, 100, 0, str(file))]).resolve(1).symbol == NO_SYMBOL


def test_demangling() -> None:
    assert demangle("main") == "main"
    assert demangle("_Znonsense") == "_Znonsense"
    assert demangle("_ZN3one3twoEi") in ("one::two(int)", "_ZN3one3twoEi")  # as it is where libstdc++ is missing


def test_an_old_name_table_of_another_process_with_that_number_is_not_taken() -> None:
    pid = 4_100_000_000 + os.getpid() % 1000  # higher than any process number
    path = Path(f"/tmp/perf-{pid}.map")
    try:
        path.write_text("1000 20 name\n")
        assert read_jit_map(pid, time.time() - 60) == "1000 20 name\n"
        assert read_jit_map(pid, time.time() + 60) == ""
    finally:
        path.unlink()
    assert read_jit_map(pid, 0) == ""
