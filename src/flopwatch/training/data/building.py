"""Folders that can be made again: made once, seen only when they are whole, by any number of processes at a time."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flopwatch.counters.hardware.cache import folder
from flopwatch.errors import CannotMeasureError


def where(cache: Path | None) -> Path:
    """The folder for data sets: the one given, or `data` in the user's cache."""
    return folder() / "data" if cache is None else cache


def processors() -> int:
    """How many of them this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def build(target: Path, fill: Callable[[Path], None]) -> Path:
    """`target`, after `fill` has filled a folder beside it that then takes its name; at once if it is there already.

    Raises CannotMeasureError where it cannot be written, and leaves nothing behind.
    """
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target):
            if not target.is_dir():
                _fill(target, fill)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise CannotMeasureError(
            f"The data set {target} cannot be written: {error.strerror or error}.",
            seen=f"{shutil.disk_usage(_existing(target)).free / 1e6:.0f} MB are free there." if full else "",
            todo="Make room, or set FLOPWATCH_CACHE to a folder that can be written and has room.",
        ) from None
    return target


def _fill(target: Path, fill: Callable[[Path], None]) -> None:
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir()
        fill(unfinished)
        try:
            unfinished.rename(target)
        except OSError:
            if not target.is_dir():  # else somebody else was as fast
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Let one process of this machine make it while the others wait; what a killed one left behind is removed."""
    with open(target.with_name(f".{target.name}.lock"), "w") as lock:
        locked = False
        with suppress(OSError):  # some shared file systems know no locks: then it is made twice, and one is kept
            fcntl.flock(lock, fcntl.LOCK_EX)
            locked = True
        if locked:
            for left in target.parent.glob(f".{target.name}.[0-9]*"):
                shutil.rmtree(left, ignore_errors=True)
        yield


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
