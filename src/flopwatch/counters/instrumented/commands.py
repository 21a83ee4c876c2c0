"""Count a command: preload the engine into it and all that it starts, wait, read the ledgers."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from flopwatch.counters import CommandOptions, CommandResult, ProcessImage
from flopwatch.counters.instrumented import ledger, library
from flopwatch.errors import CannotMeasureError
from flopwatch.flops import opcode_filter
from flopwatch.subjects import process

SHARED_MEMORY = "/dev/shm"
IMPORTS_LEFT_OUT = "Python's imports ran uninstrumented and are not in the counts; --imports counts them"
ROOM = 512 << 20  # bytes that a big program's ledgers may need


def run(argv: Sequence[str], options: CommandOptions) -> CommandResult:
    """Run a command to its end and return what it and its children executed."""
    with folder(imports=options.imports) as place:
        ended = process.run(argv, environment(place, options.env))
        found, hidden, imports = read(place)
        reasons: tuple[str, ...] = ()
        if not any(image.pid == ended.pid for image in found):
            reasons = ("the program was not counted: its loader did not load the engine",)
        notes = (IMPORTS_LEFT_OUT,) if imports else ()
        return CommandResult(ended.exit_code, ended.signal, tuple(found), hidden, reasons, ended.interrupted, notes)


@contextmanager
def folder(*, imports: bool = True) -> Iterator[Path]:
    """A folder for ledgers, in memory where there is room, with what the engine reads at its start."""
    engine = library.find()
    if engine is None:
        raise CannotMeasureError("The counting engine has not been built.", todo="Install flopwatch with gcc at hand.")
    parent = SHARED_MEMORY if _has_room(SHARED_MEMORY) else None
    place = Path(tempfile.mkdtemp(prefix="flopwatch-", dir=parent))
    try:
        (place / "filter").write_bytes(opcode_filter() + bytes([imports]))
        # The loader splits its list of preloaded objects at spaces and colons, which our own path may hold.
        (place / "engine.so").symlink_to(engine)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _has_room(path: str) -> bool:
    try:
        state = os.statvfs(path)
    except OSError:
        return False
    return os.access(path, os.W_OK) and state.f_bavail * state.f_frsize >= ROOM


def environment(place: Path, env: Mapping[str, str] | None) -> dict[str, str]:
    """The program's environment with the engine preloaded; the engine takes both, which come last, out again."""
    given = dict(os.environ if env is None else env)
    own = {"FLOPWATCH_LEDGER": str(place), "LD_PRELOAD": f"{place}/engine.so"}
    if given.get("LD_PRELOAD"):
        own["LD_PRELOAD"] += f":{given.pop('LD_PRELOAD')}"
    return {key: value for key, value in given.items() if key not in own} | own


def read(place: Path) -> tuple[list[ProcessImage], tuple[str, ...], int]:
    """All process images of a folder, oldest first in each process, what was hidden from them, how many imports ran natively."""
    found: list[ProcessImage] = []
    hidden: dict[str, None] = {}
    imports = 0
    paths = [path for path in place.iterdir() if path.name.count(".") == 1 and path.name[0].isdigit()]
    order = sorted(paths, key=lambda path: tuple(map(int, path.name.split("."))))
    names = {path.name for path in order}
    for path in order:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
            with memoryview(memory) as view:
                try:
                    head = ledger.header(view)
                except ValueError:
                    continue  # its process died while it wrote the head
                pid, number = map(int, path.name.split("."))
                starts = [ledger.AREAS + slot * ledger.AREA_BYTES for slot in range(head.threads)]
                areas = [view[start : start + ledger.AREA_BYTES] for start in starts]
                images = ledger.images(view, areas, ended=not Path(f"/proc/{pid}").exists())
                for area in areas:
                    area.release()
            hidden.update(dict.fromkeys(head.hidden))
            imports += head.imports
            if head.state == ledger.EXECUTING and f"{pid}.{number + 1}" not in names:
                lost = f"{head.executing}, which it became, was not counted (a static, setuid or foreign program)"
                images[0] = replace(images[0], complete=False, reasons=(*images[0].reasons, lost))
            found += images
    return _with_origins(found), tuple(hidden), imports


def _with_origins(images: list[ProcessImage]) -> list[ProcessImage]:
    """A new image in a process that another image started came by exec."""
    started = {image.pid for image in images}
    return [
        replace(image, how="exec") if image.how == "spawn" and image.parent in started | {image.pid} else image
        for image in images
    ]
