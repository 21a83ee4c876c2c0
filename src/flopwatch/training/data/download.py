"""Imagenette from the network, through torchvision, seen only when it is whole."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.training.data import imagenette
from flopwatch.training.data.building import build, where

SECONDS_WITHOUT_ANSWER = 20
# Errors of this machine, not of the network.
LOCAL = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)


def downloaded(size: str, cache: Path | None = None) -> Path:
    """The folder of Imagenette version 2 in that size (160, 320, full), downloaded and extracted if it is not there yet."""
    archive = imagenette.archives()[size]
    return build(where(cache) / archive.folder, lambda folder: _download(folder, size, archive))


def _download(folder: Path, size: str, archive: imagenette.Archive) -> None:
    try:
        from torchvision.datasets import Imagenette
    except ImportError:
        raise CannotMeasureError(
            "Imagenette is downloaded through torchvision, which is not installed.",
            todo=f"Install flopwatch[torch], or extract {archive.url} and give its folder.",
        ) from None
    try:
        with _patience():
            Imagenette(folder, size=size if size == "full" else f"{size}px", download=True)
    except (OSError, RuntimeError, EOFError) as error:
        if isinstance(error, OSError) and error.errno in LOCAL:
            raise
        raise UsageError(
            f"{archive.folder} cannot be downloaded: {str(error).removesuffix('.')}.",
            todo=f"Extract {archive.url} where there is a network and give its folder with --data, "
            "or use --data made:imagenette, which needs none.",
        ) from None
    inside = folder / archive.folder
    for path in inside.iterdir():
        path.rename(folder / path.name)
    inside.rmdir()
    (folder / f"{archive.folder}.tgz").unlink(missing_ok=True)


@contextmanager
def _patience() -> Iterator[None]:
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SECONDS_WITHOUT_ANSWER)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
