"""Fashion-MNIST from the files of Debian's package, here of a few pictures."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="needs NumPy")
Image = pytest.importorskip("PIL.Image", reason="needs Pillow")

from flopwatch.errors import UsageError  # noqa: E402
from flopwatch.training.data import fashion, find  # noqa: E402

pytestmark = pytest.mark.torch
TRAIN, VAL = 20, 10


def head(kind: int, *sizes: int) -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in (kind, *sizes))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Pictures whose every pixel is their number, labelled 9, 8, … 0, 9, 8, …"""
    folder = tmp_path / "fashion-mnist"
    folder.mkdir()
    for word, count in (("train", TRAIN), ("t10k", VAL)):
        pixels = b"".join(bytes([number]) * 28 * 28 for number in range(count))
        labels = bytes(9 - number % 10 for number in range(count))
        (folder / f"{word}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head(0x803, count, 28, 28) + pixels))
        (folder / f"{word}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(head(0x801, count) + labels))
    return folder


def test_laid_out_as_folders(source: Path, tmp_path: Path) -> None:
    dataset = find(str(source), cache=tmp_path / "cache")
    assert (dataset.name, dataset.version, dataset.notes) == ("fashion-mnist", "fashion-mnist scale 1", ())
    assert dataset.names[9] == "ankle boot"
    assert (dataset.counts(dataset.train), dataset.counts(dataset.val)) == ((2,) * 10, (1,) * 10)
    assert dataset.train[-1] == (str(dataset.root / "train" / "9-ankle-boot" / "00010.png"), 9)
    with Image.open(dataset.train[-1].path) as picture:
        assert (picture.mode, picture.size, picture.getextrema()) == ("L", (28, 28), (10, 10))


def test_a_share_takes_the_first_of_each_list(source: Path, tmp_path: Path) -> None:
    dataset = find(str(source), cache=tmp_path / "cache", scale=0.1)
    assert [label for _, label in dataset.train] == [8, 9]
    assert [label for _, label in dataset.val] == [9]
    assert len(dataset.classes) == 10


def test_name_means_debians_package(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fashion, "SOURCE", source)
    assert len(find("fashion-mnist", cache=tmp_path / "cache").val) == VAL
    monkeypatch.setattr(fashion, "SOURCE", tmp_path / "nowhere")
    with pytest.raises(UsageError, match="apt-get install dataset-fashion-mnist"):
        find("fashion-mnist", cache=tmp_path / "other")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"nothing", "Not a gzipped file"),
        (gzip.compress(head(0x801, 2) + b"12")[:-9], "Compressed file ended"),
        (gzip.compress(head(0x802, 2) + b"12"), "it begins with 0x802, not 0x801"),
        (gzip.compress(head(0x801, 3) + b"123"), "10 pictures have 3 labels"),
        (gzip.compress(head(0x801, VAL) + bytes(range(1, 1 + VAL))), "there is a label 10 in t10k, and ten classes"),
    ],
)
def test_damaged_files_are_named(source: Path, tmp_path: Path, content: bytes, what: str) -> None:
    (source / "t10k-labels-idx1-ubyte.gz").write_bytes(content)
    with pytest.raises(UsageError) as refused:
        fashion.laid_out(source=source, cache=tmp_path / "cache")
    assert what in str(refused.value)
    assert [path.name for path in (tmp_path / "cache").iterdir() if not path.name.endswith(".lock")] == []


def test_other_set_in_the_same_files_is_called_by_its_digits(source: Path, tmp_path: Path) -> None:
    fashion_cache = find(str(source), cache=tmp_path / "cache").root
    digits = source.rename(source.with_name("mnist"))
    dataset = find(str(digits), cache=tmp_path / "cache")
    assert dataset.root != fashion_cache
    assert (dataset.name, dataset.classes) == ("mnist", tuple("0123456789"))
