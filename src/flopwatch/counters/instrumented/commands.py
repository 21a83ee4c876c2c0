"""Count a command: preload the engine into it and all that it starts, wait, read the ledgers."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from flopwatch.counters import CommandOptions, CommandResult, ProcessImage
from flopwatch.counters.instrumented import ledger, library
from flopwatch.counters.instrumented.stopping import has_ended
from flopwatch.errors import CannotMeasureError
from flopwatch.flops import opcode_filter
from flopwatch.subjects import process

SHARED_MEMORY = "/dev/shm"
IMPORTS_LEFT_OUT = "Python's imports ran uninstrumented and are not in the counts; --imports counts them"
ROOM = 512 << 20  # bytes that a big program's ledgers may need
GRACE = 0.5  # seconds
LEAST = 1 << 20  # bytes without which there is no point in beginning
NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux, which Python names from 3.12 on


def run(argv: Sequence[str], options: CommandOptions) -> CommandResult:
    """Run a command to its end and return what it and its children executed."""
    with folder(imports=options.imports) as place:
        ended = process.run(argv, environment(place, options.env))
        _wait_for_the_last(place)
        found, hidden, imports = read(place)
        reasons: tuple[str, ...] = ()
        if (place / "filter").read_bytes()[-1]:
            reasons = (f"in some processes counting could not begin: no room for counts in {place.parent}",)
        elif not any(image.pid == ended.pid for image in found):
            reasons = ("the program was not counted: its loader did not load the engine",)
        notes = (IMPORTS_LEFT_OUT,) if imports else ()
        return CommandResult(ended.exit_code, ended.signal, tuple(found), hidden, reasons, ended.interrupted, notes)


@contextmanager
def folder(*, imports: bool = True, executable: bool = False) -> Iterator[Path]:
    """A folder for ledgers, in memory where there is room, with what the engine reads at its start.

    `executable` if code may have to be loaded from there, which the system can forbid for what is mounted (noexec).
    """
    engine = library.find()
    if engine is None:
        raise CannotMeasureError("The counting engine has not been built.", todo="Install flopwatch with gcc at hand.")
    place = _make_folder(executable)
    try:
        # The loader splits its list of preloaded objects at spaces and colons, which our own path may hold.
        (place / "engine.so").symlink_to(engine)
        (place / "filter").write_bytes(opcode_filter() + bytes([imports, 0]))
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _make_folder(executable: bool) -> Path:
    """A new folder in shared memory or where temporary files go, wherever there is room first. Raises CannotMeasureError."""
    refused = ""
    for parent in sorted((SHARED_MEMORY, *_temporary()), key=lambda path: _room(path, executable) < ROOM):
        try:
            place = Path(tempfile.mkdtemp(prefix="flopwatch-", dir=parent))
        except OSError as error:
            refused += f"{parent}: {error.strerror}. "
            continue
        try:
            (place / "room").write_bytes(bytes(LEAST))
            (place / "room").unlink()
            return place
        except OSError as error:
            refused += f"{parent}: {error.strerror}. "
            shutil.rmtree(place, ignore_errors=True)
    raise CannotMeasureError(
        "There is no folder to count in.", seen=refused.rstrip(), todo="Set TMPDIR to a folder with room for counts."
    )


def _temporary() -> tuple[str, ...]:
    try:
        return (tempfile.gettempdir(),)
    except OSError:
        return ()  # not one of the usual folders can be written to


def _room(path: str, executable: bool) -> int:
    try:
        state = os.statvfs(path)
    except OSError:
        return 0
    if executable and state.f_flag & os.ST_NOEXEC:
        return 0
    return state.f_bavail * state.f_frsize


def environment(place: Path, env: Mapping[str, str] | None) -> dict[str, str]:
    """The program's environment with the engine preloaded; the engine takes both, which come last, out again."""
    given = dict(os.environ if env is None else env)
    own = {"FLOPWATCH_LEDGER": str(place), "LD_PRELOAD": f"{place}/engine.so"}
    if given.get("LD_PRELOAD"):
        own["LD_PRELOAD"] += f":{given.pop('LD_PRELOAD')}"
    return {key: value for key, value in given.items() if key not in own} | own


def _wait_for_the_last(place: Path) -> None:
    """Give helpers that end when they see that the program has ended (as multiprocessing has) the time to do so."""
    deadline = time.monotonic() + GRACE
    pids = {int(path.name.split(".")[0]) for path in _ledgers(place)}
    while (pids := {pid for pid in pids if not has_ended(pid)}) and time.monotonic() < deadline:
        time.sleep(0.005)


def _ledgers(place: Path) -> list[Path]:
    """The ledgers by process, oldest first in each."""
    paths = [path for path in place.iterdir() if path.name.count(".") == 1 and path.name[0].isdigit()]
    return sorted(paths, key=lambda path: tuple(map(int, path.name.split("."))))


def read(place: Path) -> tuple[list[ProcessImage], tuple[str, ...], int]:
    """All process images of a folder, oldest first in each process, what was hidden from them, how many imports ran natively."""
    found: list[ProcessImage] = []
    hidden: dict[str, None] = {}
    imports = 0
    order = _ledgers(place)
    names = {path.name for path in order}
    became = {int(name.split(".")[0]) for name in names}  # the first ledger of a vfork child is what it became
    for path in order:
        with path.open("rb") as file, _copy(file.fileno()) as memory:
            with memoryview(memory) as view:
                try:
                    head = ledger.header(view)
                except ValueError:
                    continue  # its process died while it wrote the head
                pid, number = map(int, path.name.split("."))
                starts = [ledger.AREAS + slot * ledger.AREA_BYTES for slot in range(head.threads)]
                areas = [view[start : start + ledger.AREA_BYTES] for start in starts]
                followed = became | {pid} if f"{pid}.{number + 1}" in names else became - {pid}
                found += ledger.images(view, areas, ended=has_ended(pid), followed=followed)
                for area in areas:
                    area.release()
            hidden.update(dict.fromkeys(head.hidden))
            imports += head.imports
    return _with_origins(found), tuple(hidden), imports


def _copy(file: int) -> mmap.mmap:
    """A sparse file's content: to look at a hole of the file itself would fill it, and fail where the disk is full."""
    size = os.fstat(file).st_size
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    end = 0
    with memoryview(memory) as view:
        while end < size:
            try:
                start = os.lseek(file, end, os.SEEK_DATA)
            except OSError:
                break  # nothing but a hole is left
            end = min(os.lseek(file, start, os.SEEK_HOLE), size)
            os.preadv(file, [view[start:end]], start)
    return memory


def _with_origins(images: list[ProcessImage]) -> list[ProcessImage]:
    """A new image in a process that another image started came by exec."""
    started = {image.pid for image in images}
    return [
        replace(image, how="exec") if image.how == "spawn" and image.parent in started | {image.pid} else image
        for image in images
    ]
