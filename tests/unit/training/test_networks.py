"""Networks by name, weights that fit or not, heads and the labels that they stand for."""

from __future__ import annotations

import mmap
from collections import namedtuple
from pathlib import Path
from urllib.error import URLError

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
torchvision = pytest.importorskip("torchvision", reason="needs torchvision")

from flopwatch.errors import CannotMeasureError, UsageError  # noqa: E402
from flopwatch.training import labels, loading, memory, networks  # noqa: E402

pytestmark = pytest.mark.torch

SMALL = "squeezenet1_1"
Disk = namedtuple("Disk", "total used free")


@pytest.fixture(scope="module")
def ten() -> torch.nn.Module:
    return networks.build(SMALL, 10)


def test_the_head_is_as_wide_as_wanted(ten: torch.nn.Module) -> None:
    assert ten.classifier[1].out_channels == 10


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("resnet81", "Did you mean resnet18"),
        ("torchvision:resnet81", "torchvision:resnet18"),
        ("fasterrcnn_resnet50_fpn", "does not classify"),
        ("fcn_resnet50", "does not classify"),
        ("quantized_resnet18", "cannot be trained"),
    ],
)
def test_what_cannot_be_trained_is_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        networks.check(name)


def test_weights_come_from_a_bare_file_and_from_a_wrapped_one(ten: torch.nn.Module, tmp_path: Path) -> None:
    state = ten.state_dict()
    for name, content in (
        ("bare", state),
        ("wrapped", {"state_dict": {f"module.{key}": value for key, value in state.items()}, "epoch": 3}),
    ):
        torch.save(content, tmp_path / name)
        found = networks.read(tmp_path / name)
        assert found.keys() == state.keys()
        assert networks.load(ten, found, name, exact=True) == ()


def test_a_head_of_another_width_is_left_or_refused(ten: torch.nn.Module) -> None:
    other = networks.build(SMALL, 7).state_dict()
    with pytest.raises(UsageError, match="tell 7 classes apart; the network has 10"):
        networks.load(ten, other, "there", exact=True)
    (note,) = networks.load(ten, other, "there", exact=False)
    assert "head not taken" in note


def test_weights_of_another_network_are_refused(ten: torch.nn.Module) -> None:
    with pytest.raises(UsageError, match="those of another network"):
        networks.load(ten, torch.nn.Linear(3, 3).state_dict(), "there", exact=False)


def test_the_same_network_under_other_names_is_taken_in_order(ten: torch.nn.Module) -> None:
    state = {f"_other.{place}": value + 1 for place, value in enumerate(ten.state_dict().values())}
    (note,) = networks.load(ten, state, "there", exact=True)
    assert "other names" in note
    assert all(torch.equal(*pair) for pair in zip(ten.state_dict().values(), state.values(), strict=True))


def test_pictures_are_prepared_as_the_weights_want_them() -> None:
    assert networks.look_of("resnet18") == networks.Look()
    assert networks.Look().note == ""
    pytest.importorskip("timm", reason="needs timm")
    look = networks.look_of("timm:tf_efficientnet_lite0")
    assert look == networks.Look((0.5,) * 3, (0.5,) * 3, 1 / 0.875, "bicubic")
    assert "mean (0.5, 0.5, 0.5)" in look.note


def test_files_without_weights_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    with pytest.raises(UsageError, match="no file of weights"):
        networks.read(path)
    path.write_text("nothing")
    with pytest.raises(UsageError, match="no weights that can be read"):
        networks.read(path)
    torch.save({"epoch": 3}, path)
    with pytest.raises(UsageError, match="no table of weights"):
        networks.read(path)


def test_weights_that_cannot_be_fetched_are_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*args: object, **options: object) -> None:
        raise URLError("no network")

    monkeypatch.setattr(torchvision.models, "get_model", offline)
    with pytest.raises(CannotMeasureError, match="cannot be fetched"):
        networks.published(SMALL)


def test_the_head_has_a_place_for_each_class() -> None:
    assert labels.head_and_labels(("a", "b"), None) == (2, (0, 1), "")
    head, places, note = labels.head_and_labels(("n02102040", "n03888257"), 1000, (217, 701))
    assert (head, places) == (1000, (217, 701))
    assert "1000 of ImageNet" in note
    assert labels.head_and_labels(("tench", "parachute"), 1000)[1] == (0, 701)
    head, places, note = labels.head_and_labels(("mine", "yours"), 1000)
    assert (head, places) == (1000, (0, 1))
    assert "of which 2 have pictures" in note
    with pytest.raises(UsageError, match="cannot tell the 3 classes"):
        labels.head_and_labels(("a", "b", "c"), 2)


def test_workers_without_shared_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loading.check_workers(0, 256, 224, tmp_path / "none")
    with pytest.raises(CannotMeasureError, match="does not exist"):
        loading.check_workers(2, 256, 224, tmp_path / "none")
    monkeypatch.setattr(loading.shutil, "disk_usage", lambda path: Disk(64 * 2**20, 0, 64 * 2**20))
    loading.check_workers(2, 8, 224, tmp_path)  # 7 batches × 8 × 3 × 224² × 4 bytes = 32 MiB
    with pytest.raises(CannotMeasureError, match="4 workers need 1911 MiB of shared memory"):
        loading.check_workers(4, 256, 224, tmp_path)


@pytest.mark.parametrize(
    ("error", "exhausted"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported"), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (RuntimeError("NVML_SUCCESS == r INTERNAL ASSERT FAILED"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_exhausted_memory_is_known_by_type_and_by_words(error: BaseException, exhausted: bool) -> None:
    assert memory.is_exhausted(error) is exhausted


def test_the_peak_of_memory_is_ours() -> None:
    memory.reset("cpu")
    before = memory.peak("cpu")
    # Pages from the system, not what an allocator has kept from before.
    with mmap.mmap(-1, 64 * 2**20) as held:
        held.write(b"x" * len(held))
        after = memory.peak("cpu")
        assert before is not None and after is not None
        assert after - before >= len(held) // 2
