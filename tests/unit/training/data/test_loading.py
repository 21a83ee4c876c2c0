"""Pictures as tensors: the numbers of the ImageNet example, and dice that workers and resuming cannot change."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("torchvision", reason="needs torchvision")

from PIL import Image  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402
from torchvision import transforms  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402

from flopwatch.training.data import BadPicture, Item, find, images, normalised  # noqa: E402
from flopwatch.training.data.pictures import random_crop  # noqa: E402
from tests.unit.training.data.trees import photograph, small  # noqa: E402

pytestmark = pytest.mark.torch
SIZE = 24
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


@pytest.fixture
def items(tmp_path: Path) -> tuple[Item, ...]:
    return find(str(small(tmp_path))).train


def same(one: list[tuple[torch.Tensor, int]], two: list[tuple[torch.Tensor, int]]) -> bool:
    return all(torch.equal(a, b) and label == other for (a, label), (b, other) in zip(one, two, strict=True))


def example(picture: Image.Image) -> torch.Tensor:
    """The end of the example's preparation, by torchvision."""
    return F.normalize(F.to_tensor(picture), MEAN, STD)


@pytest.mark.parametrize("size", [(60, 40), (40, 61), (50, 50), (25, 24)])
def test_asked_pictures_are_those_of_the_example_to_the_bit(tmp_path: Path, size: tuple[int, int]) -> None:
    path = photograph(tmp_path / "a.png", size=size)
    ours = images([Item(str(path), 7)], size=SIZE, resize=28, training=False)[0]
    chain = transforms.Compose([transforms.Resize(28), transforms.CenterCrop(SIZE)])
    assert torch.equal(ours[0], example(chain(Image.open(path).convert("RGB"))))
    assert ours[1] == 7


def test_learnt_pictures_are_those_of_the_example_to_the_bit(items: tuple[Item, ...]) -> None:
    for index, (tensor, _) in enumerate(images(items, size=SIZE, training=True, seed=3)):
        picture = Image.open(items[index].path)
        dice = random.Random(f"3/0/{index}")
        left, top, right, bottom = random_crop(picture.size, (0.08, 1.0), (3 / 4, 4 / 3), dice)
        wanted = F.resized_crop(picture, top, left, bottom - top, right - left, [SIZE, SIZE])
        assert torch.equal(tensor, example(F.hflip(wanted) if dice.random() < 0.5 else wanted))


def test_validation_is_resized_in_the_examples_proportion(items: tuple[Item, ...]) -> None:
    assert images(items, size=224, training=False).preparation.resize == 256
    assert images(items, size=64, training=False).preparation.resize == 73
    assert images(items, size=64, training=False, resize=64)[0][0].shape == (3, 64, 64)


def test_crops_are_parts_of_the_picture_within_the_limits() -> None:
    dice = random.Random(0)
    for _ in range(200):
        left, top, right, bottom = random_crop((400, 300), (0.08, 1.0), (3 / 4, 4 / 3), dice)
        assert 0 <= left < right <= 400
        assert 0 <= top < bottom <= 300
        wide, high = right - left, bottom - top
        assert (wide - 0.5) / (high + 0.5) <= 4 / 3
        assert (wide + 0.5) / (high - 0.5) >= 3 / 4
        assert (wide + 0.5) * (high + 0.5) >= 0.08 * 400 * 300


@pytest.mark.parametrize(
    ("size", "box"), [((100, 10), (43, 0, 56, 10)), ((10, 100), (0, 43, 10, 56)), ((12, 10), (0, 0, 12, 10))]
)
def test_crop_that_never_fits_is_the_largest_in_the_middle(size: tuple[int, int], box: tuple[int, ...]) -> None:
    class Low(random.Random):
        """Throws the lowest area, more than a picture has, and the lowest proportion."""

        def uniform(self, a: float, b: float) -> float:
            return a

    assert random_crop(size, (9.0, 9.0), (3 / 4, 4 / 3), Low(0)) == box


def test_same_seed_same_pictures_other_epoch_other_pictures(items: tuple[Item, ...]) -> None:
    first, second = (images(items, size=SIZE, training=True, seed=1) for _ in range(2))
    assert same(list(first), list(second))
    before = list(first)
    first.set_epoch(1)
    assert not same(before, list(first))
    first.set_epoch(0)
    assert same(before, list(first))
    assert not same(before, list(images(items, size=SIZE, training=True, seed=2)))


def test_asking_throws_no_dice(items: tuple[Item, ...]) -> None:
    dataset = images(items, size=SIZE, training=False, seed=1)
    before = list(dataset)
    dataset.set_epoch(5)
    assert same(before, list(dataset))


def test_half_of_the_pictures_are_mirrored_only_if_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.linear_gradient("L").rotate(90).convert("RGB").save(path)  # darker on one side
    repeated = [Item(str(path), 0)] * 100
    sides = Counter(bool(x[0, 0, 0] < x[0, 0, -1]) for x, _ in images(repeated, size=SIZE, training=True))
    assert min(sides.values()) > 30
    assert len(Counter(bool(x[0, 0, 0] < x[0, 0, -1]) for x, _ in images(repeated, size=8, training=True, flip=0))) == 1


@pytest.mark.parametrize("context", ["spawn", "fork"])
def test_workers_see_what_one_process_sees(items: tuple[Item, ...], context: str) -> None:
    """Workers that live on hear of the next epoch as well."""
    dataset = images(items, size=SIZE, training=True, seed=1)
    workers = {"spawn": 1, "fork": 2}[context]  # spawned ones begin by importing PyTorch
    loader = DataLoader(dataset, 1, num_workers=workers, multiprocessing_context=context, persistent_workers=True)
    for epoch in (0, 1):
        dataset.set_epoch(epoch)
        assert same([(x[0], int(y)) for x, y in loader], list(dataset))


def test_pickled_data_set_is_the_same(items: tuple[Item, ...]) -> None:
    dataset = images(items, size=SIZE, training=True, seed=1)
    dataset.set_epoch(3)
    again = pickle.loads(pickle.dumps(dataset))
    assert again.epoch == 3
    assert same(list(again), list(dataset))


def test_bytes_normalised_later_are_the_same_numbers(items: tuple[Item, ...]) -> None:
    raw = torch.stack([x for x, _ in images(items, size=SIZE, training=True, normalise=False)])
    floats = torch.stack([x for x, _ in images(items, size=SIZE, training=True)])
    assert raw.dtype == torch.uint8
    assert torch.equal(normalised(raw), floats)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16"])
def test_every_mode_becomes_three_channels(tmp_path: Path, mode: str) -> None:
    path = photograph(tmp_path / ("a.tif" if mode == "CMYK" else "a.png"), mode)
    tensor, _ = images([Item(str(path), 0)], size=SIZE, training=False, normalise=False)[0]
    assert tensor.shape == (3, SIZE, SIZE)


def test_sixteen_bits_are_not_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("I;16", (40, 40), 0x4000).save(path)
    tensor, _ = images([Item(str(path), 0)], size=SIZE, training=False, normalise=False)[0]
    assert (int(tensor.min()), int(tensor.max())) == (0x40, 0x40)


def test_draft_reads_less_of_a_large_jpeg(tmp_path: Path) -> None:
    path = photograph(tmp_path / "a.jpg", size=(800, 600))
    exact, fast = (
        images([Item(str(path), 0)] * 8, size=SIZE, training=training, draft=True, normalise=False)
        for training in (True, False)
    )
    for dataset in (exact, fast):
        for tensor, _ in dataset:
            assert tensor.shape == (3, SIZE, SIZE)


@pytest.mark.parametrize("workers", [0, 1])
def test_picture_that_cannot_be_read_is_named_without_a_traceback(items: tuple[Item, ...], workers: int) -> None:
    path = Path(items[2].path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(BadPicture) as refused:
        list(DataLoader(images(items, size=SIZE, training=True), 1, num_workers=workers))
    assert str(refused.value).startswith(f"The picture {path} cannot be read.")
    assert "Traceback" not in str(refused.value)
    assert refused.value.exit_code == 2
