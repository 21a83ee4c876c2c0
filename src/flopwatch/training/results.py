"""The result of a run: one JSON document, written anew at every epoch, with a CSV of its rows beside it."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from flopwatch.errors import CannotMeasureError
from flopwatch.measuring import machine, versions
from flopwatch.sheet import Column, Sheet, Value

SCHEMA = 1
DOCUMENT = "run.json"
TABLE = "epochs.csv"

Document = dict[str, Any]

# The columns of epochs.csv: key of a row, or two for a value inside one.
_CSV = (
    "epoch",
    "top1",
    "top1_low",
    "top1_high",
    "top5",
    "n",
    "loss",
    "train_top1",
    "train_loss",
    "lr",
    "seconds",
    "validation_seconds",
    "images_per_second.end_to_end",
    "images_per_second.compute",
    "images_per_second.loader",
    "images_per_second.validation",
    "data_wait",
    "updates",
    "skipped",
    "peak_memory",
)


def torch_versions() -> dict[str, str]:
    """Versions of what computes: flopwatch's own and those of PyTorch, its libraries and model packages."""
    import torch

    found = {**versions(), "torch": str(torch.__version__)}
    for package in ("torchvision", "timm", "pillow"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        cudnn: Any = torch.backends.cudnn
        found["cudnn"] = str(cudnn.version())
    if getattr(torch.version, "hip", None):
        found["hip"] = str(torch.version.hip)
    return found


def surroundings(device: str) -> dict[str, str]:
    """The machine in words, with the device and PyTorch's threads."""
    import torch

    found = {**machine(), "threads": str(torch.get_num_threads()), "load": f"{os.getloadavg()[0]:.2f}"}
    if device.startswith("cuda"):
        found["device"] = torch.cuda.get_device_name(device)
    return found


class Log:
    """Writes a run's document and table into a folder, whole or not at all; nothing without a folder.

    TensorBoard's files are written beside them where the package is installed.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._board: Any = None
        if folder is not None and find_spec("tensorboard") is not None:
            with contextlib.suppress(ImportError):
                self._board = import_module("torch.utils.tensorboard").SummaryWriter(str(folder))

    def write(self, document: Document, row: dict[str, Any] | None = None) -> None:
        """Put the document, as it is now, into the folder; `row` is new in it. Raises CannotMeasureError if that cannot be."""
        if self._folder is None:
            return
        _replace(self._folder / DOCUMENT, encode(document))
        _replace(self._folder / TABLE, csv_text(document["rows"]).encode())
        if self._board is not None and row is not None:
            for key in ("top1", "top5", "loss", "train_loss", "lr", "seconds"):
                if row.get(key) is not None:
                    self._board.add_scalar(key, row[key], row["epoch"])
            self._board.flush()


def encode(document: Document) -> bytes:
    """The document as JSON, indented."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def csv_text(rows: list[dict[str, Any]]) -> str:
    """The rows as comma-separated values with a header; what is not known is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for row in rows:
        writer.writerow("" if (value := _value(row, key)) is None else value for key in _CSV)
    return out.getvalue()


def _value(row: dict[str, Any], key: str) -> Any:
    outer, _, inner = key.partition(".")
    found = row.get(outer)
    return found.get(inner) if inner and found is not None else found


def _replace(path: Path, content: bytes) -> None:
    fresh = path.with_name(path.name + ".new")
    try:
        with open(fresh, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise CannotMeasureError(
            f"The result could not be written to {str(path)!r}: {error.strerror}.",
            todo="Make room, or choose another folder with --output DIR.",
        ) from error


COLUMNS = (
    Column("epoch", "count"),
    Column("top-1", "share"),
    Column("±95 %", "share"),
    Column("top-5", "share"),
    Column("loss", "real"),
    Column("seconds", "real"),
    Column("img/s", "real"),
    Column("compute", "real"),
    Column("loader", "real"),
    Column("waiting", "share"),
)
"""Of the table of epochs: images a second end to end, of the processor by itself, of the loader by itself."""


def sheet(document: Document) -> Sheet:
    """The epochs as a table, with the run's notes."""
    rows = tuple(values(row) for row in document["rows"])
    return Sheet(title(document), COLUMNS, rows, tuple(document["notes"]))


def title(document: Document) -> str:
    """What was trained, on what."""
    recipe = document["recipe"]
    what = "evaluated" if document["job"]["evaluate"] else "trained"
    return (
        f"{document['arch']} {what} on {document['data']['name']}, {document['precision']['name']}, batch "
        f"{recipe['batch']}, {recipe['image_size']} px, {document['device']}"
    )


def values(row: dict[str, Any]) -> tuple[Value, ...]:
    """One epoch in those columns."""
    rates = row["images_per_second"]
    low, high = row["top1_low"], row["top1_high"]
    return (
        row["epoch"],
        row["top1"],
        (high - low) / 2 if low is not None else None,
        row["top5"],
        row["loss"],
        row["seconds"],
        rates["end_to_end"],
        rates["compute"],
        rates["loader"],
        row["data_wait"],
    )
