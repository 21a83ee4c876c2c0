"""Imagenette: which version and size a folder holds, labels that nothing shifts, archives extracted in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from flopwatch.errors import UsageError
from flopwatch.training.data import contamination, find, imagenette
from tests.unit.training.data.trees import photograph, tree

WNIDS = tuple(each.wnid for each in imagenette.classes())
CHAIN_SAW = "n03000684"


def archive(root: Path, version: int) -> Path:
    """The tree of a version, of empty files."""
    counts = imagenette.counts(version)
    return tree(
        root, {wnid: count for wnid, (count, _) in counts.items()}, {wnid: count for wnid, (_, count) in counts.items()}
    )


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 2 as extracted; not to be changed."""
    return archive(tmp_path_factory.mktemp("second") / "imagenette2-320", 2)


@pytest.fixture
def copy(second: Path, tmp_path: Path) -> Path:
    """Version 2 by links to its class folders, to be changed."""
    root = tmp_path / second.name
    for split in ("train", "val"):
        (root / split).mkdir(parents=True)
        for wnid in WNIDS:
            (root / split / wnid).symlink_to(second / split / wnid)
    return root


def shorten(folder: Path, count: int) -> None:
    """Let a class folder have its first pictures only."""
    names = sorted(path.name for path in folder.iterdir())[:count]
    folder.unlink()
    folder.mkdir()
    for name in names:
        (folder / name).touch()


def test_version_2(second: Path) -> None:
    dataset = find(str(second))
    assert (len(dataset.train), len(dataset.val)) == (9469, 3925)
    assert dataset.version == "imagenette v2 320px"
    assert dataset.classes == WNIDS
    assert dataset.names[3] == "chain saw"
    assert dataset.indices == (0, 217, 482, 491, 497, 566, 569, 571, 574, 701)
    assert dataset.chance == 419 / 3925
    assert dataset.notes == ()


def test_version_1(tmp_path: Path) -> None:
    dataset = find(str(archive(tmp_path / "imagenette-160", 1)))
    assert (len(dataset.train), len(dataset.val)) == (9469 + 3925 - 500, 10 * 50)
    assert (dataset.version, dataset.chance) == ("imagenette v1 160px", 1 / 10)


@pytest.mark.torch
def test_index_of_each_class_is_that_of_torchvisions_weights() -> None:
    from torchvision.models import ResNet18_Weights

    names = ResNet18_Weights.IMAGENET1K_V1.meta["categories"]
    assert [names[each.index] for each in imagenette.classes()] == [each.name for each in imagenette.classes()]


@pytest.mark.torch
@pytest.mark.parametrize(("size", "words"), [((213, 160), "160px"), ((320, 480), "320px"), ((500, 375), "full size")])
def test_size_is_read_from_the_pictures_not_from_the_name(tmp_path: Path, size: tuple[int, int], words: str) -> None:
    root = tmp_path / "imagenette2-320"
    for split in ("train", "val"):
        for wnid in WNIDS:
            photograph(root / split / wnid / "1.JPEG", size=size)
    assert find(str(root)).version == f"imagenette subset {words}"


def test_missing_folder_shifts_no_label(copy: Path) -> None:
    (copy / "val" / CHAIN_SAW).unlink()
    dataset = find(str(copy))
    assert dataset.counts(dataset.val) == (387, 395, 357, 0, 409, 394, 389, 419, 399, 390)
    assert dataset.version == "imagenette v2 incomplete 320px"
    assert dataset.notes == (
        "Imagenette version 2 is not complete: 9469 of 9469 training and 3539 of 3925 validation pictures are here; "
        "missing: val/n03000684. Labels are unchanged.",
        "Classes without a folder, in val/: n03000684.",
    )


def test_folder_missing_in_both_shifts_no_label(copy: Path) -> None:
    for split in ("train", "val"):
        (copy / split / WNIDS[0]).unlink()
    dataset = find(str(copy))
    assert {label for _, label in dataset.train} == {label for _, label in dataset.val} == set(range(1, 10))


def test_a_few_pictures_removed_is_said(copy: Path) -> None:
    shorten(copy / "train" / CHAIN_SAW, 856)
    assert "too few: train/n03000684 (856 of 858)" in find(str(copy)).notes[0]


def test_archive_extracted_in_part_is_refused(copy: Path) -> None:
    shorten(copy / "val" / CHAIN_SAW, 100)
    for wnid in WNIDS[4:]:
        (copy / "val" / wnid).unlink()
    with pytest.raises(UsageError) as refused:
        find(str(copy))
    here = 387 + 395 + 357 + 100
    assert str(refused.value) == (
        f"{copy} holds only a part of Imagenette version 2: it looks like an archive that was extracted in part. "
        f"There are 9469 of 9469 training and {here} of 3925 validation pictures. "
        "Too few: val/n03000684 (100 of 386). "
        "Missing: val/n03028079, val/n03394916, val/n03417042, val/n03425413 and 2 more. "
        "Remove the folder and extract the archive again, or remove the class folders that are too small."
    )
    assert len(find(str(copy), incomplete=True).val) == here


def test_subset_is_none_of_the_versions(tmp_path: Path) -> None:
    dataset = find(str(tree(tmp_path, dict.fromkeys(WNIDS[2:4], 2), dict.fromkeys(WNIDS[2:4], 1))))
    assert dataset.version == "imagenette subset"
    assert {label for _, label in dataset.train} == {2, 3}
    assert dataset.notes[0] == (
        "A subset of Imagenette: 4 of 9469 training and 2 of 3925 validation pictures of version 2 are here."
    )


def test_weights_that_have_seen_the_validation_pictures(tmp_path: Path) -> None:
    """ImageNet's own names tell its training pictures (class and number) from its validation pictures."""
    tree(tmp_path, dict.fromkeys(WNIDS, 1), dict.fromkeys(WNIDS, 2))
    assert contamination(find(str(tmp_path))).startswith("20 of 20 validation pictures (100.0%)")
    for wnid in WNIDS:
        (tmp_path / "val" / wnid / f"{wnid}_0.JPEG").rename(tmp_path / "val" / wnid / f"ILSVRC2012_val_{wnid[1:]}.JPEG")
    assert contamination(find(str(tmp_path))) == (
        "10 of 20 validation pictures (50.0%) belong to ImageNet's training set: weights that were trained on ImageNet "
        "have seen them, so their accuracy here is too good."
    )


def test_other_sets_have_nothing_to_do_with_imagenet(tmp_path: Path) -> None:
    dataset = find(str(tree(tmp_path, {"cat": 1, "dog": 1}, {"cat": 1, "dog": 1})))
    assert (dataset.indices, contamination(dataset)) == ((), "")
