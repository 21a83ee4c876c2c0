"""The made Imagenette: Imagenette's layout and counts, the same bytes each time, and something to learn but not by colour."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

np = pytest.importorskip("numpy", reason="needs NumPy")
pytest.importorskip("PIL", reason="needs Pillow")

from PIL import Image  # noqa: E402

from flopwatch.errors import CannotMeasureError, UsageError  # noqa: E402
from flopwatch.training.data import DataSet, check, contamination, find, imagenette  # noqa: E402
from flopwatch.training.data.building import build  # noqa: E402
from flopwatch.training.data.drawing import frame, numbers  # noqa: E402
from flopwatch.training.data.made import amounts, made  # noqa: E402

pytestmark = pytest.mark.torch
SCALE = 0.02


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def dataset(cache: Path) -> DataSet:
    return find("made:imagenette-160", scale=SCALE, cache=cache)


def digests(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in root.rglob("*.JPEG")}


def test_counts_are_that_share_of_imagenettes(dataset: DataSet) -> None:
    assert dataset.counts(dataset.train) == (19, 19, 20, 17, 19, 19, 19, 19, 19, 19)
    assert dataset.counts(dataset.val) == (8, 8, 7, 8, 8, 8, 8, 8, 8, 8)
    assert amounts(1) == tuple((each.train, each.val) for each in imagenette.classes())
    assert amounts(0.0001) == ((1, 1),) * 10
    assert amounts(2)[0] == (2 * 963, 2 * 387)


def test_layout_is_imagenettes_but_it_says_what_it_is(dataset: DataSet) -> None:
    assert dataset.classes == tuple(each.wnid for each in imagenette.classes())
    assert (dataset.name, dataset.version) == ("made:imagenette", "made v2 160px scale 0.02 seed 0")
    assert dataset.notes == ("Made pictures, not photographs: accuracy on them says nothing about Imagenette.",)
    assert (dataset.indices, contamination(dataset)) == ((), "")
    assert dataset.chance == 8 / 79


def test_class_removed_later_shifts_no_label(dataset: DataSet, tmp_path: Path) -> None:
    for name in ("val", "flopwatch.json"):
        (tmp_path / name).symlink_to(dataset.root / name)
    (tmp_path / "train").mkdir()
    for wnid in dataset.classes[1:]:
        (tmp_path / "train" / wnid).symlink_to(dataset.root / "train" / wnid)
    assert {label for _, label in find(str(tmp_path)).train} == set(range(1, 10))


def test_pictures_are_good_jpegs_of_that_size(dataset: DataSet) -> None:
    report = check(dataset.root, thorough=True)
    assert report.healthy
    assert {str(kind) for kind in report.counts} <= {"grey"}
    sizes = set()
    for item in (*dataset.train, *dataset.val):
        with Image.open(item.path) as picture:
            assert picture.format == "JPEG"
            assert min(picture.size) == 160
            sizes.add(picture.size)
    assert {(213, 160), (160, 213), (240, 160), (160, 160)} < sizes


def test_most_pictures_lie_as_four_to_three() -> None:
    frames = [frame(numbers(0, 0, 0, number), 320) for number in range(400)]
    shapes = [wide / high for wide, high in frames]
    assert 400 * 0.5 < frames.count((427, 320)) < 400 * 0.6
    assert 0.49 < min(shapes) < 0.75
    assert 1.5 < max(shapes) < 2.21


def test_same_seed_same_bytes_for_any_number_of_threads(dataset: DataSet, tmp_path: Path) -> None:
    one = made(scale=0.002, size=160, cache=tmp_path / "one", threads=1)
    four = made(scale=0.002, size=160, cache=tmp_path / "four", threads=4)
    other = made(scale=0.002, size=160, cache=tmp_path / "one", seed=1)
    assert digests(one) == digests(four)
    assert digests(one).keys() == digests(other).keys()
    assert not set(digests(one).values()) & set(digests(other).values())


def test_smaller_share_is_the_beginning_of_a_larger(dataset: DataSet, tmp_path: Path) -> None:
    smaller = made(scale=0.002, size=160, cache=tmp_path)
    assert digests(smaller).items() < digests(dataset.root).items()


def test_no_picture_is_there_twice(dataset: DataSet) -> None:
    found = digests(dataset.root)
    assert len(set(found.values())) == len(found) == 189 + 79


def test_drawn_once(dataset: DataSet, cache: Path) -> None:
    def refuse(done: int, total: int) -> None:
        raise AssertionError("drawn again")

    assert find("made:imagenette", size=160, scale=SCALE, cache=cache, progress=refuse) == dataset


def test_progress_hears_of_every_picture(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    made(scale=0.0001, size=160, cache=tmp_path, progress=lambda done, total: heard.append((done, total)))
    assert heard == [(done, 20) for done in range(1, 21)]


@pytest.mark.parametrize("text", ["made:imagenette-160", "made:imagenette"])
def test_sizes_that_there_are_not(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Give 160 or 320"):
        find(text, size=200, cache=tmp_path)
    with pytest.raises(UsageError, match="Give 160 or 320"):
        find("made:imagenette-full", cache=tmp_path)


def test_many_at_a_time_make_it_once(tmp_path: Path) -> None:
    calls = []

    def fill(folder: Path) -> None:
        calls.append(folder)
        (folder / "whole").touch()

    threads = [threading.Thread(target=build, args=(tmp_path / "set", fill)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1
    assert (tmp_path / "set" / "whole").exists()


def test_unfinished_is_never_seen_and_removed_by_the_next(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise KeyboardInterrupt

    (tmp_path / ".set.12345").mkdir()  # left by a process that was killed
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "set", fail)
    assert [path.name for path in tmp_path.iterdir()] == [".set.lock"]
    build(tmp_path / "set", lambda folder: (folder / "whole").touch())
    assert [path.name for path in (tmp_path / "set").iterdir()] == ["whole"]


def test_full_disk_is_a_sentence(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        with open("/dev/full", "w") as file:
            file.write("x")

    with pytest.raises(CannotMeasureError, match="No space left on device"):
        build(tmp_path / "set", fill)
    assert not (tmp_path / "set").exists()


def test_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotMeasureError, match="cannot be written: Not a directory"):
        build(tmp_path / "file" / "set" / "set", lambda folder: None)


def colours(path: str) -> list[float]:
    """Mean and spread of each channel."""
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB"), float)
    return [*pixels.mean((0, 1)), *pixels.std((0, 1))]


def patterns(path: str) -> list[float]:
    """How strong which waves are in the middle: 8 x 8 sums over the spectrum of 64 x 64 grey values."""
    with Image.open(path) as picture:
        left, top = picture.width // 2 - 64, picture.height // 2 - 64
        grey = np.asarray(picture.convert("L").crop((left, top, left + 128, top + 128)).resize((64, 64)), float)
    waves = np.abs(np.fft.rfft2((grey - grey.mean()) / (grey.std() + 1) * np.outer(np.hanning(64), np.hanning(64))))
    return list(np.fft.fftshift(np.log1p(waves), 0)[16:48, :16].reshape(8, 4, 8, 2).mean((1, 3)).ravel())


def right(dataset: DataSet, features: object) -> float:
    """Share of validation pictures whose nearest class centre is that of their own class."""
    train, val = (np.array([features(path) for path, _ in items]) for items in (dataset.train, dataset.val))  # type: ignore[operator]
    middle, spread = train.mean(0), train.std(0)
    labels = np.array([label for _, label in dataset.train])
    centres = np.array([train[labels == label].mean(0) for label in range(10)])
    away = ((((val - middle) / spread)[:, None] - (centres - middle) / spread) ** 2).sum(-1)
    return float((away.argmin(1) == [label for _, label in dataset.val]).mean())


def test_learnable_by_pattern_and_not_by_colour(dataset: DataSet) -> None:
    """The simplest of classifiers, on 19 pictures of a class: colour stays near chance, 0.1; the pattern does not."""
    assert right(dataset, colours) < 0.3
    assert right(dataset, patterns) > 0.5
