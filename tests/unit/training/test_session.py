"""Devices, optimizers and memory of devices that are not here."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from flopwatch.errors import CannotMeasureError, UsageError  # noqa: E402
from flopwatch.training import memory, recipes  # noqa: E402
from flopwatch.training.session import make_optimizer, pick_device  # noqa: E402

pytestmark = pytest.mark.torch


def devices(monkeypatch: pytest.MonkeyPatch, *, cuda: int = 0, mps: bool = False) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


def test_the_best_device_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    devices(monkeypatch)
    assert pick_device(None) == "cpu"
    devices(monkeypatch, mps=True)
    assert pick_device(None) == "mps"
    devices(monkeypatch, cuda=2, mps=True)
    assert pick_device(None) == "cuda"
    assert pick_device("cuda:1") == "cuda:1"
    assert pick_device("cpu") == "cpu"


@pytest.mark.parametrize("asked", ["cuda:2", "cuda:x", "mps", "abacus", ""])
def test_a_device_that_is_not_here_is_refused(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    devices(monkeypatch, cuda=2)
    with pytest.raises(UsageError, match="There is no device"):
        pick_device(asked)


def test_an_old_torch_without_mps_has_no_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    devices(monkeypatch)
    monkeypatch.delattr(torch.backends, "mps")
    assert pick_device(None) == "cpu"


def test_optimizers_are_the_recipes() -> None:
    weights = [torch.nn.Parameter(torch.zeros(2))]
    sgd = make_optimizer(recipes.find("imagenet-example"))(weights)
    (group,) = sgd.param_groups
    assert isinstance(sgd, torch.optim.SGD)
    assert (group["lr"], group["momentum"], group["weight_decay"], group["nesterov"]) == (0.1, 0.9, 1e-4, False)
    adamw = make_optimizer(recipes.find("few"))(weights)
    assert isinstance(adamw, torch.optim.AdamW)
    assert adamw.param_groups[0]["weight_decay"] == recipes.find("few").weight_decay


def test_the_memory_of_a_gpu_is_its_allocator_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 123)
    assert memory.peak("cuda:0") == 123
    assert memory.peak("mps") is None


def test_exhausted_memory_is_a_sentence_with_the_words_of_the_backend() -> None:
    with (
        pytest.raises(CannotMeasureError, match=r"Out of memory: x\. CUDA out of memory\. Tried") as caught,
        memory.explained("x"),
    ):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.\nmore")
    assert "--batch" in str(caught.value)


def test_mistakes_of_ours_are_not_explained_away() -> None:
    with pytest.raises(RuntimeError, match="shape"), memory.explained("x"):
        raise RuntimeError("shape '[2]' is invalid")
    with pytest.raises(UsageError, match="It cannot be computed: x"), memory.explained("x", trial=True):
        raise RuntimeError("shape '[2]' is invalid")


def test_a_worker_that_was_killed_is_a_sentence() -> None:
    with pytest.raises(CannotMeasureError, match="has ended"), memory.explained("x"):
        raise RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. ")
