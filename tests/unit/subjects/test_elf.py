"""What is found out about a program before it is run; the files are made here, byte by byte, or by gcc."""

from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from flopwatch.errors import CannotMeasureError, FlopwatchError, UsageError
from flopwatch.subjects import elf

LOADER = b"/lib64/ld-linux-x86-64.so.2\0"


def made(path: Path, *, bits: int = 64, machine: int = elf.X86_64, loader: bytes = LOADER, kind: int = 3) -> Path:
    """The smallest file with the headers of such a program."""
    ident = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9)
    if bits == 64:
        header = ident + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        entry = struct.pack("<IIQQQQQQ", 3 if loader else 1, 4, 120, 0, 0, len(loader), len(loader), 1)
    else:
        header = ident + struct.pack("<HHIIIIIHHHHHH", kind, machine, 1, 0, 52, 0, 0, 52, 32, 1, 0, 0, 0)
        entry = struct.pack("<IIIIIIII", 3 if loader else 1, 84, 0, 0, len(loader), len(loader), 4, 1)
    path.write_bytes(header + entry + loader)
    path.chmod(0o755)
    return path


def refusal(path: Path | str) -> FlopwatchError:
    with pytest.raises(FlopwatchError) as caught:
        elf.check(elf.inspect(elf.locate(str(path))))
    return caught.value


def test_a_dynamic_program_is_accepted(tmp_path: Path) -> None:
    program = elf.inspect(str(made(tmp_path / "program")))
    assert program == elf.Program(str(tmp_path / "program"), 64, elf.X86_64, LOADER[:-1].decode())
    elf.check(program)
    elf.check(elf.inspect(sys.executable))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"loader": b""}, "cannot be counted: it is statically linked"),
        ({"bits": 32, "machine": 3}, "cannot be counted: it is built for x86 (32 bit)"),
        ({"bits": 32, "machine": elf.X86_64}, "cannot be counted: it is built for x86-64 (32 bit)"),
        ({"machine": 183}, "cannot be counted: it is built for AArch64 (64 bit)"),
        ({"machine": 999}, "cannot be counted: it is built for machine 999 (64 bit)"),
    ],
)
def test_programs_that_cannot_be_counted(tmp_path: Path, changes: dict[str, int], sentence: str) -> None:
    error = refusal(made(tmp_path / "program", **changes))  # type: ignore[arg-type]
    assert isinstance(error, CannotMeasureError)
    assert error.exit_code == 4
    assert sentence in str(error)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize(("bit", "word"), [(stat.S_ISUID, "setuid"), (stat.S_ISGID, "setgid")])
def test_a_program_that_changes_its_user(tmp_path: Path, bit: int, word: str) -> None:
    path = made(tmp_path / "program")
    elf.check(elf.inspect(str(path)))
    os.chown(path, 65534, 65534)
    path.chmod(0o755 | bit)
    assert f"it is a {word} program" in str(refusal(path))


def test_a_script_leads_to_its_interpreter(tmp_path: Path) -> None:
    interpreter = made(tmp_path / "interpreter", loader=b"")
    script = tmp_path / "script"
    script.write_text(f"#! {interpreter} -x\n")
    script.chmod(0o755)
    outer = tmp_path / "outer"
    outer.write_text(f"#!{script}\n")
    outer.chmod(0o755)
    assert elf.inspect(str(outer)).scripts == (str(outer), str(script))
    assert f"the interpreter of '{outer}'" in str(refusal(outer))


def test_scripts_that_lead_nowhere(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!{script}\n")
    script.chmod(0o755)
    assert "more than 5 #! lines" in str(refusal(script))
    script.write_text("#!/no/such/interpreter\n")
    assert "'/no/such/interpreter', which does not exist" in str(refusal(script))


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"", "It is empty."),
        (b"echo hello\n", "neither an ELF program nor a script"),
        (b"#!\n", "neither an ELF program nor a script"),
        (b"\x7fELF", "cut short or damaged"),
        (b"\x7fELF\x02\x01" + b"\xff" * 10 + b"\x03\x00\x3e\x00" + b"\xff" * 60, "cut short or damaged"),
        (b"\x7fELF\x07\x01" + bytes(80), "cut short or damaged"),
    ],
)
def test_files_that_are_no_programs(tmp_path: Path, content: bytes, seen: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    path.chmod(0o755)
    error = refusal(path)
    assert isinstance(error, UsageError)
    assert seen in error.seen


def test_an_object_file_is_no_program(tmp_path: Path) -> None:
    assert "not an executable" in refusal(made(tmp_path / "object.o", kind=1)).seen


def test_commands_that_cannot_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").write_text("text")
    assert "was not found in any folder of PATH. Check the spelling." in str(refusal("no-such-command"))
    assert "Write ./here for the file in this folder." in str(refusal("here"))
    assert "There is no file './none'" in str(refusal("./none"))
    assert "is a folder" in str(refusal(tmp_path))
    assert "is not executable" in str(refusal("./here"))


def test_a_path_of_its_own_is_searched(tmp_path: Path) -> None:
    made(tmp_path / "only-there")
    assert elf.locate("only-there", path=str(tmp_path)) == str(tmp_path / "only-there")


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_what_gcc_builds(tmp_path: Path) -> None:
    source = tmp_path / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-o", tmp_path / "dynamic", source], check=True)
    elf.check(elf.inspect(str(tmp_path / "dynamic")))
    for flag in ("-static", "-static-pie"):
        if subprocess.run(["gcc", flag, "-o", tmp_path / "static", source], capture_output=True).returncode == 0:
            assert "statically linked" in str(refusal(tmp_path / "static"))
