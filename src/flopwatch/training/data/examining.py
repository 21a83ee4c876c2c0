"""One picture file: whether it can be read, and what about it is unusual."""

from __future__ import annotations

import os

from PIL import Image, UnidentifiedImageError

from flopwatch.training.data.complaints import Complaint, Kind

# The shorter side in pixels below which a picture has little to show.
TINY = 32
# Ending → what it promises, by Pillow's names.
PROMISED = {
    ".jpg": ("JPEG", "MPO"),
    ".jpeg": ("JPEG", "MPO"),
    ".png": ("PNG",),
    ".ppm": ("PPM",),
    ".pgm": ("PPM",),
    ".bmp": ("BMP", "DIB"),
    ".tif": ("TIFF",),
    ".tiff": ("TIFF",),
    ".webp": ("WEBP",),
}
# How files begin that are pictures, or were before they were cut; how a whole JPEG ends.
BEGINNINGS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF", b"II*\x00", b"MM\x00*", b"BM")
END_OF_JPEG = b"\xff\xd9"
BY_MODE = {
    "1": (Kind.GREY,),
    "L": (Kind.GREY,),
    "LA": (Kind.GREY, Kind.ALPHA),
    "P": (Kind.PALETTE,),
    "PA": (Kind.PALETTE, Kind.ALPHA),
    "RGBA": (Kind.ALPHA,),
    "RGBa": (Kind.ALPHA,),
    "CMYK": (Kind.CMYK,),
}


def examine(path: str, tiny: int, thorough: bool) -> list[Complaint]:
    """What is wrong with this file: one bad thing, or any number of odd ones."""
    try:
        if os.path.getsize(path) == 0:
            return [Complaint(Kind.EMPTY, path)]
        with Image.open(path) as picture:
            odd = list(_odd(picture, path, tiny))
            if picture.format == "PNG" and not thorough:
                picture.verify()  # the check sums of all its parts
            elif thorough or not _ends_well(path, picture.format):
                _decode(picture)
    except PermissionError:
        return [Complaint(Kind.CLOSED, path)]
    except Image.DecompressionBombError as error:
        return [Complaint(Kind.HUGE, path, str(error))]
    except UnidentifiedImageError:
        return [Complaint(*_unidentified(path))]
    except Exception as error:  # Pillow's readers raise whatever the broken bytes lead to
        return [Complaint(Kind.TRUNCATED, path, str(error))]
    return odd


def what_is(path: str) -> str:
    """About a file whose ending is not that of a picture."""
    try:
        with Image.open(path) as picture:
            return f"a {picture.format} picture by its content"
    except Exception:  # as above
        return ""


def _odd(picture: Image.Image, path: str, tiny: int) -> list[Complaint]:
    kinds = list(BY_MODE.get(picture.mode, ()))
    if "transparency" in picture.info and Kind.ALPHA not in kinds:
        kinds.append(Kind.ALPHA)
    if picture.mode.startswith(("I", "F")):
        kinds.append(Kind.DEEP)
    found = [Complaint(kind, path) for kind in kinds]
    if min(picture.size) < tiny:
        found.append(Complaint(Kind.TINY, path, f"{picture.size[0]} x {picture.size[1]}"))
    if picture.format not in PROMISED[os.path.splitext(path)[1].lower()]:
        found.append(Complaint(Kind.ENDING, path, f"a {picture.format} picture by its content"))
    return found


def _ends_well(path: str, kind: str | None) -> bool:
    if kind not in ("JPEG", "MPO"):
        return False
    with open(path, "rb") as file:
        file.seek(-len(END_OF_JPEG), os.SEEK_END)
        return file.read() == END_OF_JPEG


def _decode(picture: Image.Image) -> None:
    """All of it, by the smallest scale that the decoder has: every bit is read, fewer pixels are made."""
    picture.draft(None, (max(1, picture.size[0] // 8), max(1, picture.size[1] // 8)))
    picture.load()


def _unidentified(path: str) -> tuple[Kind, str, str]:
    with open(path, "rb") as file:
        beginning = file.read(16)
    if beginning.startswith(BEGINNINGS):
        return Kind.TRUNCATED, path, "begins as a picture, but its head is not whole"
    return Kind.NOT_A_PICTURE, path, f"begins with {beginning!r}"
