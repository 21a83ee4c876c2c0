"""Fashion-MNIST as folders of pictures, from the files that Debian's dataset-fashion-mnist installs.

Other sets in the same files (MNIST itself) are laid out as well; their classes are called by their digits.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from flopwatch.errors import UsageError
from flopwatch.training.data.building import build, where
from flopwatch.training.data.finding import MARK
from flopwatch.training.data.sets import Progress

SOURCE = Path("/usr/share/datasets/fashion-mnist")
# In the order of their labels, which is also that of the alphabet. Source: Xiao et al. 2017, Fashion-MNIST, table 2.
CLASSES = (
    "0-t-shirt",
    "1-trouser",
    "2-pullover",
    "3-dress",
    "4-coat",
    "5-sandal",
    "6-shirt",
    "7-sneaker",
    "8-bag",
    "9-ankle-boot",
)
# Our folder → the set's word for it.
SPLITS = {"train": "train", "val": "t10k"}
# The first four bytes of the two kinds of files, big-endian: bytes in three dimensions, bytes in one.
PICTURES, LABELS = 0x803, 0x801


def laid_out(
    *, source: Path | None = None, scale: float = 1.0, cache: Path | None = None, progress: Progress | None = None
) -> Path:
    """The folder with train/ and val/, written now if it is not there yet; UsageError without the files.

    A share takes the first of each list, not of each class: the lists are mixed.
    """
    source = source or SOURCE
    _present(source)
    name, classes = ("fashion-mnist", CLASSES) if "fashion" in str(source) else (source.name, tuple("0123456789"))
    target = where(cache) / f"{name}-{_checksum(source):08x}-scale{scale:g}"
    return build(target, lambda folder: _write(folder, source, scale, _mark(name, classes, scale), progress))


def _present(source: Path) -> None:
    missing = [name for word in SPLITS.values() for name in _names(word) if _file(source, name) is None]
    if missing:
        raise UsageError(
            "Fashion-MNIST is not on this machine.",
            seen=f"{source} has no {missing[0]}.gz.",
            todo="On Debian or Ubuntu: apt-get install dataset-fashion-mnist. Or use made:imagenette, which needs nothing.",
        )


def _checksum(source: Path) -> int:
    """Of the small files, to tell sets apart."""
    paths = [_file(source, _names(word)[1]) for word in SPLITS.values()]
    return zlib.crc32(b"".join(path.read_bytes() for path in paths if path))


def _names(word: str) -> tuple[str, str]:
    return f"{word}-images-idx3-ubyte", f"{word}-labels-idx1-ubyte"


def _file(source: Path, name: str) -> Path | None:
    return next((path for path in (source / f"{name}.gz", source / name) if path.is_file()), None)


def _write(folder: Path, source: Path, scale: float, mark: dict[str, Any], progress: Progress | None) -> None:
    lists = {}
    for split, word in SPLITS.items():
        pictures, labels = (
            _read(source, name, kind) for name, kind in zip(_names(word), (PICTURES, LABELS), strict=True)
        )
        if len(pictures) != len(labels):
            raise _damaged(source, f"{len(pictures)} pictures have {len(labels)} labels")
        if len(labels) and labels.max() >= len(mark["classes"]):
            raise _damaged(source, f"there is a label {labels.max()} in {word}, and ten classes")
        count = max(1, round(len(labels) * scale))
        lists[split] = pictures[:count], labels[:count]
    total, done = sum(len(labels) for _, labels in lists.values()), 0
    for split, (pictures, labels) in lists.items():
        for name in mark["classes"]:
            (folder / split / name).mkdir(parents=True)
        for number, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
            Image.fromarray(picture).save(
                folder / split / mark["classes"][label] / f"{number:05d}.png", compress_level=1
            )
            done += 1
            if progress:
                progress(done, total)
    (folder / MARK).write_text(json.dumps(mark, indent=1), encoding="utf-8")


def _read(source: Path, name: str, kind: int) -> NDArray[np.uint8]:
    path = _file(source, name)
    assert path is not None
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        head = [int.from_bytes(data[place : place + 4], "big") for place in range(0, 4 * (1 + kind % 256), 4)]
        if head[0] != kind:
            raise _damaged(path, f"it begins with {head[0]:#x}, not {kind:#x}")
        return np.frombuffer(data, np.uint8, offset=4 * len(head)).reshape(head[1:])
    except (EOFError, ValueError, gzip.BadGzipFile) as error:
        raise _damaged(path, str(error)) from None


def _damaged(path: Path, what: str) -> UsageError:
    return UsageError(
        f"{path} is damaged: {what}.",
        todo="Install the package again: apt-get install --reinstall dataset-fashion-mnist.",
    )


def _mark(name: str, classes: tuple[str, ...], scale: float) -> dict[str, Any]:
    return {
        "name": name,
        "version": f"{name} scale {scale:g}",
        "classes": list(classes),
        "names": [each.split("-", 1)[-1].replace("-", " ") for each in classes],
        "notes": [],
    }
