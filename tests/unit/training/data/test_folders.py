"""A folder becomes a data set: which files, which labels, and what is said about the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flopwatch.errors import UsageError
from flopwatch.training.data import find
from tests.unit.training.data.trees import tree


def labels(root: Path, **options: float) -> list[tuple[str, int]]:
    """The pictures to learn, from the root, with their labels."""
    return [(str(Path(path).relative_to(root)), label) for path, label in find(str(root), **options).train]  # type: ignore[arg-type]


def test_labels_are_the_order_of_the_names(tmp_path: Path) -> None:
    dataset = find(str(tree(tmp_path, {"dog": 1, "cat": 2}, {"cat": 1, "dog": 3})))
    assert dataset.classes == ("cat", "dog")
    assert labels(tmp_path) == [
        ("train/cat/cat_0.JPEG", 0),
        ("train/cat/cat_1.JPEG", 0),
        ("train/dog/dog_0.JPEG", 1),
    ]
    assert (dataset.counts(dataset.train), dataset.counts(dataset.val)) == ((2, 1), (1, 3))
    assert dataset.version == "folder"


def test_chance_is_the_most_frequent_class_of_validation(tmp_path: Path) -> None:
    assert find(str(tree(tmp_path, {"cat": 9, "dog": 1}, {"cat": 1, "dog": 3}))).chance == 3 / 4


@pytest.mark.torch
def test_same_files_in_same_order_as_torchvision(tmp_path: Path) -> None:
    from torchvision.datasets import ImageFolder

    tree(tmp_path, {"cat": 3, "dog": 2}, {"cat": 1, "dog": 1})
    for name in ("b/1.png", "a/z.webp", "a.jpg", "B.PPM", "notes.txt"):
        path = tmp_path / "train" / "cat" / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert [tuple(item) for item in find(str(tmp_path)).train] == ImageFolder(str(tmp_path / "train")).samples


def test_class_without_folder_in_one_half_shifts_no_label(tmp_path: Path) -> None:
    dataset = find(str(tree(tmp_path, {"cat": 1, "dog": 1, "eel": 1}, {"cat": 1, "eel": 1})))
    assert [(Path(path).parent.name, label) for path, label in dataset.val] == [("cat", 0), ("eel", 2)]
    assert "Classes without a folder, in val/: dog." in dataset.notes


def test_class_that_only_validation_has_is_named(tmp_path: Path) -> None:
    dataset = find(str(tree(tmp_path, {"cat": 1, "eel": 1}, {"cat": 1, "dog": 1, "eel": 1})))
    assert [label for _, label in dataset.train] == [0, 2]
    assert "Classes without a folder, in train/: dog." in dataset.notes


def test_empty_class_keeps_its_label(tmp_path: Path) -> None:
    dataset = find(str(tree(tmp_path, {"cat": 2, "dog": 0, "eel": 2}, {"cat": 1, "dog": 1, "eel": 1})))
    assert dataset.classes == ("cat", "dog", "eel")
    assert "Classes without a picture, in train/: dog." in dataset.notes


def test_one_picture_of_a_class_is_said(tmp_path: Path) -> None:
    dataset = find(str(tree(tmp_path, {"cat": 1, "dog": 2}, {"cat": 1, "dog": 1})))
    assert dataset.notes == ("Classes with one picture to learn from, in train/: cat.",)


def test_hidden_files_and_folders_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, {"cat": 2, "dog": 2}, {"cat": 1, "dog": 1})
    (tmp_path / "train" / ".cache").mkdir()
    (tmp_path / "train" / "cat" / "._cat_0.JPEG").touch()
    dataset = find(str(tmp_path))
    assert len(dataset.train) == 2 + 2
    assert dataset.classes == ("cat", "dog")
    assert dataset.notes == ("Hidden files and folders left out, in train/: 2.",)


def test_linked_class_folder_is_followed(tmp_path: Path) -> None:
    root = tree(tmp_path / "set", {"cat": 2, "dog": 2}, {"cat": 1, "dog": 1})
    (root / "train" / "dog").rename(tmp_path / "elsewhere")
    (root / "train" / "dog").symlink_to(tmp_path / "elsewhere")
    assert [label for _, label in find(str(root)).train] == [0, 0, 1, 1]


@pytest.mark.parametrize("place", ["train/cat/again", "train/round"])
@pytest.mark.parametrize("target", ["..", "../..", "."])
def test_links_that_lead_up_are_not_followed(tmp_path: Path, place: str, target: str) -> None:
    tree(tmp_path, {"cat": 2, "dog": 2}, {"cat": 1, "dog": 1})
    (tmp_path / place).symlink_to(target)
    dataset = find(str(tmp_path))
    assert (dataset.classes, len(dataset.train)) == (("cat", "dog"), 4)
    assert dataset.notes == ("Links not followed, since they lead back to a folder above them, in train/: 1.",)


def test_link_to_itself_and_link_to_nothing(tmp_path: Path) -> None:
    tree(tmp_path, {"cat": 2, "dog": 2}, {"cat": 1, "dog": 1})
    (tmp_path / "train" / "cat" / "self.jpg").symlink_to("self.jpg")
    (tmp_path / "train" / "dog" / "gone.jpg").symlink_to("nothing")
    dataset = find(str(tmp_path))
    assert len(dataset.train) == 4
    assert set(dataset.notes) == {
        "Links not followed, since they lead back to a folder above them, in train/: 1.",
        "Links left out, since they lead nowhere, in train/: 1.",
    }


def test_folders_that_lead_to_each_other_are_read_once(tmp_path: Path) -> None:
    tree(tmp_path, {"cat": 1, "dog": 1}, {"cat": 1, "dog": 1})
    cat = tmp_path / "train" / "cat"
    for name in "abcdefgh":
        (cat / name).mkdir()
        (cat / name / "1.jpg").touch()
    for name in "abcdefgh":
        for other in "abcdefgh":
            (cat / name / f"to-{other}").symlink_to(cat / other)
    assert find(str(tmp_path)).counts(find(str(tmp_path)).train) == (1 + 8, 1)


def test_set_within_the_folder_that_was_given(tmp_path: Path) -> None:
    tree(tmp_path / "imagewoof2", {"cat": 2, "dog": 2}, {"cat": 1, "dog": 1})
    assert find(str(tmp_path)).name == "imagewoof2"


def test_a_share_takes_the_first_of_each_class(tmp_path: Path) -> None:
    tree(tmp_path, {"cat": 10, "dog": 4}, {"cat": 2, "dog": 2})
    assert labels(tmp_path, scale=0.25) == [
        ("train/cat/cat_0.JPEG", 0),
        ("train/cat/cat_1.JPEG", 0),
        ("train/dog/dog_0.JPEG", 1),
    ]
    assert find(str(tmp_path), scale=0.25).notes == ("Only 0.25 of each class: 3 of 14 training pictures, 2 of 4.",)


def test_labels_of_all_of_imagenet_are_its_indices(tmp_path: Path) -> None:
    counts = {f"n{number:08d}": 1 for number in range(1000)}
    assert find(str(tree(tmp_path, counts, counts))).indices == tuple(range(1000))


REFUSED = {
    "nothing given": ("", "No data set was given. Give a folder with train/ and val/, or imagenette-160"),
    "nothing there": ("nowhere", "There is no data set 'nowhere': no folder and no name of one."),
    "near name": ("imagenete-320", "Did you mean imagenette-320?"),
    "no val": ("no-val", "The data set no-val has no folder val/. Seen: train/. Put some pictures of each class into no-val/val/CLASS/."),
    "no train": ("no-train", "has no folder train/"),
    "valid": ("valid", "If its valid/ is meant for validation, rename it: mv valid/valid valid/val."),
    "half of an archive": ("imagenette2-160", "It may have been extracted in part"),
    "archive beside it": ("beside", "extract beside.tgz again, into an empty folder"),
    "no layout": ("flat", "flat is not a data set: it has neither train/ nor val/. Seen: cat/, dog/."),
    "nothing in it": ("empty", "The folder has no folders and no pictures."),
    "one half": ("no-val/train", "no-val/train is one half of a data set. Give the folder that holds it: no-val."),
    "an archive": ("beside.tgz", "beside.tgz is an archive. Extract it (tar -xf)"),
    "a file": ("file.txt", "file.txt is a file, not a data set."),
    "several": ("several", "several holds more than one data set. Seen: a, b. Give one of them: several/a."),
    "empty train": ("train-empty", "There is no picture in train-empty/train/. It has 2 class folders."),
    "empty val": ("val-empty", "There is no picture in val-empty/val/. It has no class folders."),
    "one class": ("one-class", "has one class, cat: whatever a network says would be right."),
    "nothing in common": ("apart", "have no class in common. train/ has cat, dog; val/ has eel."),
}  # fmt: skip


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is refused, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("no-val", "imagenette2-160", "beside"):
        tree(Path(name), {"cat": 1, "dog": 1}, {})
    tree(Path("no-train"), {}, {"cat": 1, "dog": 1})
    tree(Path("valid"), {"cat": 1, "dog": 1}, {})
    Path("valid/valid").mkdir()
    for name in ("beside.tgz", "file.txt"):
        Path(name).touch()
    for name in ("flat/cat", "flat/dog", "empty", "val-empty/val"):
        Path(name).mkdir(parents=True)
    for name in "ab":
        tree(Path("several") / name, {"cat": 1}, {"cat": 1})
    tree(Path("train-empty"), {"cat": 0, "dog": 0}, {"cat": 1, "dog": 1})
    tree(Path("val-empty"), {"cat": 1, "dog": 1}, {})
    tree(Path("one-class"), {"cat": 2}, {"cat": 2})
    tree(Path("apart"), {"cat": 1, "dog": 1}, {"eel": 1})


@pytest.mark.usefixtures("bad")
@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_is_wrong(case: str) -> None:
    text, sentence = REFUSED[case]
    with pytest.raises(UsageError) as refused:
        find(text)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("scale", [0, -1, 1.5, float("nan"), float("inf")])
def test_shares_that_make_no_sense(tmp_path: Path, scale: float) -> None:
    with pytest.raises(UsageError, match="makes no sense"):
        find(str(tmp_path), scale=scale)


def test_nothing_heavy_is_loaded_to_find_a_set() -> None:
    code = "import sys, flopwatch.training.data; print({'torch', 'numpy', 'PIL'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
