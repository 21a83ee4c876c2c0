"""What calibration found, kept until the machine starts anew or something about it changes."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from flopwatch import __version__
from flopwatch.counters.hardware.calibration import Calibration

VARIABLE = "FLOPWATCH_CACHE"


def folder(env: Mapping[str, str] | None = None) -> Path:
    """The user's folder for what can be made again: FLOPWATCH_CACHE, or flopwatch in XDG_CACHE_HOME, or in ~/.cache."""
    given = os.environ if env is None else env
    if given.get(VARIABLE):
        return Path(given[VARIABLE])
    base = given.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "flopwatch"


def key(*parts: str) -> str:
    """A name for everything that a calibration depends on: processor, kernel, boot, events; another of any makes another key."""
    return hashlib.sha256("\n".join((__version__, *parts)).encode()).hexdigest()[:20]


def load(name: str, where: Path | None = None) -> tuple[Calibration, ...] | None:
    """What was kept under a key, or None."""
    try:
        data = ((where or folder()) / f"calibration-{name}.json").read_bytes()
        return msgspec.json.decode(data, type=tuple[Calibration, ...])
    except (OSError, msgspec.DecodeError):
        return None


def save(name: str, found: Sequence[Calibration], where: Path | None = None) -> None:
    """Keep it; a folder that cannot be written to means that the next run calibrates again."""
    place = where or folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        for old in place.glob("calibration-*.json"):
            old.unlink(missing_ok=True)
        draft = place / f".calibration-{name}.{os.getpid()}"
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(tuple(found)), indent=1))
        draft.replace(place / f"calibration-{name}.json")
    except OSError:
        pass
