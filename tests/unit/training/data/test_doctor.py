"""The doctor: every kind of trouble, made here as one file or folder, and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("PIL", reason="needs Pillow")

from PIL import Image

from flopwatch.errors import UsageError
from flopwatch.training.data import Kind, Severity, check, find, treated
from tests.unit.training.data.trees import CLASSES, photograph, small, tree

pytestmark = pytest.mark.torch
CAT = Path("train/cat")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Nine good pictures in three classes."""
    return small(tmp_path / "set")


def cut(path: Path, share: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


def as_format(path: Path, kind: str) -> None:
    Image.radial_gradient("L").convert("RGB").save(path, kind)


def with_transparency(path: Path) -> None:
    Image.radial_gradient("L").convert("P").save(path, transparency=0)


MADE: dict[str, tuple[str, Kind, Callable[[Path], object]]] = {
    "empty file": ("new.jpg", Kind.EMPTY, Path.touch),
    "JPEG cut at half": ("0.jpg", Kind.TRUNCATED, lambda path: cut(path, 0.5)),
    "JPEG cut in its head": ("0.jpg", Kind.TRUNCATED, lambda path: path.write_bytes(path.read_bytes()[:12])),
    "JPEG without its last bytes": ("0.jpg", Kind.TRUNCATED, lambda path: path.write_bytes(path.read_bytes()[:-40])),
    "PNG cut at half": ("new.png", Kind.TRUNCATED, lambda path: cut(photograph(path), 0.5)),
    "PNG with a flipped byte": (
        "new.png",
        Kind.TRUNCATED,
        lambda path: photograph(path).write_bytes(
            bytes([*(data := path.read_bytes())[:99], data[99] ^ 255, *data[100:]])
        ),
    ),
    "BMP cut at half": ("new.bmp", Kind.TRUNCATED, lambda path: cut(photograph(path), 0.5)),
    "WebP cut at half": ("new.webp", Kind.TRUNCATED, lambda path: cut(photograph(path), 0.5)),
    "a page of a web site": ("new.jpg", Kind.NOT_A_PICTURE, lambda path: path.write_text("<html>404</html>")),
    "link to nothing": ("new.jpg", Kind.DANGLING, lambda path: path.symlink_to("nowhere")),
    "link to itself": ("new.jpg", Kind.LOOP, lambda path: path.symlink_to("new.jpg")),
    "link up": ("new", Kind.LOOP, lambda path: path.symlink_to("..")),
    "linked folder": ("new", Kind.LINKED, lambda path: path.symlink_to((path.parents[3] / "else").resolve())),
    "grey": ("new.jpg", Kind.GREY, lambda path: photograph(path, "L", shade=30)),
    "black and white": ("new.png", Kind.GREY, lambda path: photograph(path, "1", shade=30)),
    "CMYK": ("new.jpg", Kind.CMYK, lambda path: photograph(path, "CMYK", shade=30)),
    "alpha": ("new.png", Kind.ALPHA, lambda path: photograph(path, "RGBA", shade=30)),
    "palette": ("new.png", Kind.PALETTE, lambda path: photograph(path, "P", shade=30)),
    "transparent colour": ("new.png", Kind.ALPHA, with_transparency),
    "16 bits": ("new.png", Kind.DEEP, lambda path: photograph(path, "I;16", shade=30)),
    "tiny": ("new.jpg", Kind.TINY, lambda path: photograph(path, size=(31, 200), shade=30)),
    "PNG called JPEG": ("new.jpg", Kind.ENDING, lambda path: as_format(path, "PNG")),
    "hidden": (".DS_Store", Kind.HIDDEN, Path.touch),
    "text": ("notes.txt", Kind.UNUSED, Path.touch),
    "GIF": ("new.gif", Kind.UNUSED, lambda path: as_format(path, "GIF")),
}


@pytest.mark.parametrize("case", MADE)
def test_each_kind_is_named(root: Path, case: str) -> None:
    (root.parent / "else").mkdir()
    name, kind, make = MADE[case]
    make(root / CAT / name)
    report = check(root)
    assert report.counts[kind] == 1
    assert report.of(kind) == (str(CAT / name),)
    assert {each.severity for each in report.counts} <= {kind.severity, Severity.ODD}


def test_good_set_has_no_complaint(root: Path) -> None:
    for thorough in (False, True):
        report = check(root, thorough=thorough)
        assert (report.complaints, report.healthy) == ((), True)
        assert (report.pictures, report.classes, report.version) == ((6, 3), 3, "folder")


def test_bytes_behind_the_end_of_a_jpeg_are_no_fault(root: Path) -> None:
    with (root / CAT / "0.jpg").open("ab") as file:
        file.write(b"\0" * 100)
    assert check(root).complaints == ()


def test_huge(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photograph(root / CAT / "new.png", size=(200, 200), shade=30)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)
    assert check(root).of(Kind.HUGE) == ("train/cat/new.png",)


def test_duplicates_by_where_they_are(root: Path) -> None:
    data = (root / CAT / "0.jpg").read_bytes()
    for name in ("train/cat/new.jpg", "train/dog/new.jpg", "val/cat/new.jpg"):
        (root / name).write_bytes(data)
    report = check(root)
    assert report.of(Kind.DUPLICATE) == ("train/cat/new.jpg",)
    assert report.of(Kind.CONTRADICTION) == ("train/dog/new.jpg",)
    assert report.of(Kind.LEAK) == ("val/cat/new.jpg",)
    assert {each.detail for each in report.complaints} == {f"the same as {root}/train/cat/0.jpg"}


def test_classes_that_differ(root: Path) -> None:
    for name in ("fox", "gnu"):
        (root / "train" / name).mkdir()
    photograph(root / "val" / "hen" / "1.jpg", shade=30)
    (root / "val" / "gnu").mkdir()
    report = check(root)
    assert report.of(Kind.MISSING) == ("train/hen", "val/fox")
    assert report.of(Kind.EMPTY_CLASS) == ("train/fox", "train/gnu", "val/gnu")


def test_half_that_is_missing_is_a_complaint(tmp_path: Path) -> None:
    for name in CLASSES:
        photograph(tmp_path / "train" / name / "1.jpg", shade=len(name))
    report = check(tmp_path)
    assert report.of(Kind.MISSING) == ("val",)
    assert not report.healthy


def test_labels_of_imagenette_are_known(tmp_path: Path) -> None:
    tree(tmp_path, {"n01440764": 1, "n02102040": 1}, {"n01440764": 1, "n02102040": 1})
    assert check(tmp_path).counts == {Kind.EMPTY: 4, Kind.MISSING: 8 + 8}


def test_policy_skip_leaves_out_and_says_so(root: Path) -> None:
    cut(root / CAT / "1.jpg", 0.5)
    photograph(root / CAT / "new.jpg", "L", shade=30)
    dataset = treated(find(str(root)), check(root), "skip")
    assert dataset.counts(dataset.train) == (2, 2, 2)
    assert dataset.notes == ("Pictures left out, since they cannot be read (1): train/cat/1.jpg (truncated).",)


def test_policy_skip_changes_nothing_in_a_good_set(root: Path) -> None:
    dataset = find(str(root))
    assert treated(dataset, check(root), "skip") is dataset


def test_policy_skip_needs_something_to_be_left(root: Path) -> None:
    for name in CLASSES:
        cut(root / "val" / name / "0.jpg", 0.5)
    with pytest.raises(UsageError, match="No picture of val/"):
        treated(find(str(root)), check(root), "skip")


def test_policy_fail(root: Path) -> None:
    photograph(root / CAT / "new.jpg", "L", shade=30)
    dataset = find(str(root))
    assert treated(dataset, check(root), "fail") is dataset
    cut(root / CAT / "1.jpg", 0.5)
    (root / "val" / "eel" / "0.jpg").unlink()
    with pytest.raises(UsageError) as refused:
        treated(dataset, check(root), "fail")
    assert refused.value.seen == "train/cat/1.jpg (truncated), val/eel (empty class)."


def test_policy_unknown(root: Path) -> None:
    with pytest.raises(UsageError, match="skip or fail"):
        treated(find(str(root)), check(root), "pray")


def test_sheet_names_faults_and_sums_up_what_is_odd(root: Path) -> None:
    cut(root / CAT / "1.jpg", 0.5)
    for number in range(5):
        photograph(root / CAT / f"grey{number}.jpg", "L", shade=30 + number)
    sheet = check(root).sheet()
    assert sheet.title == f"{root} (folder): 11 + 3 pictures, 3 classes, 1 fault"
    assert [row[:3] for row in sheet.rows] == [("bad", "truncated", 1), ("odd", "grey", 5)]
    assert sheet.rows[1][3] == "train/cat/grey0.jpg, train/cat/grey1.jpg, train/cat/grey2.jpg and 2 more"
    assert len(check(root).sheet(every=True).rows) == 1 + 5


def test_json_names_everything(root: Path) -> None:
    (root / CAT / "new.jpg").write_bytes((root / CAT / "0.jpg").read_bytes())
    document = json.loads(json.dumps(check(root).as_json()))
    assert document["counts"] == {"duplicate": 1}
    assert document["entries"] == [
        {"severity": "odd", "kind": "duplicate", "path": "train/cat/new.jpg", "detail": "the same as train/cat/0.jpg"}
    ]
    assert (document["healthy"], document["pictures"]) == (True, {"train": 7, "val": 3})


def test_progress_hears_of_every_picture(root: Path) -> None:
    heard: list[tuple[int, int]] = []
    check(root, progress=lambda done, total: heard.append((done, total)))
    assert heard == [(done, 9) for done in range(1, 10)]
