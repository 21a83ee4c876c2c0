"""A device that can't do a precision refuses it; one that emulates it says so."""

from __future__ import annotations

import pytest

from flopwatch.errors import CannotMeasureError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from flopwatch.training.precision import PRESETS, Abilities, abilities, check, find  # noqa: E402

CC_7_5 = Abilities("cuda", "a chip of capability 7.5", fp16=True, bf16=False, tf32=False, capability=(7, 5))
CC_8_0 = Abilities("cuda", "a chip of capability 8.0", fp16=True, bf16=True, tf32=True, capability=(8, 0))
CC_6_0 = Abilities("cuda", "a chip of capability 6.0", fp16=True, bf16=False, tf32=False, capability=(6, 0))
CC_3_7 = Abilities("cuda", "a chip of capability 3.7", fp16=False, bf16=False, tf32=False, capability=(3, 7))
OLD_CPU = Abilities("cpu", "The CPU", fp16=False, bf16=False, tf32=False)
NEW_CPU = Abilities("cpu", "The CPU", fp16=True, bf16=True, tf32=False)

REFUSED = [
    (CC_7_5, "tf32", "has no TF32"),
    (CC_7_5, "amp-bf16", "only emulates bf16"),
    (CC_7_5, "bf16-master", "only emulates bf16"),
    (CC_7_5, "bf16-pure", "only emulates bf16"),
    (CC_6_0, "tf32", "has no TF32"),
    (NEW_CPU, "tf32", "has no TF32"),
]


@pytest.mark.parametrize(("able", "name", "reason"), REFUSED)
def test_what_a_device_lacks_is_refused(able: Abilities, name: str, reason: str) -> None:
    with pytest.raises(CannotMeasureError, match=reason):
        check(find(name), able.kind, able, cudnn=True)


@pytest.mark.parametrize("name", PRESETS)
def test_everything_else_runs(name: str) -> None:
    assert check(find(name), "cuda", CC_8_0, cudnn=True) == ()
    for able in (CC_7_5, NEW_CPU):
        if (able, name) not in [(each, other) for each, other, _ in REFUSED]:
            assert check(find(name), able.kind, able, cudnn=True) == ()


def test_a_cpu_that_emulates_says_so() -> None:
    (fp16,) = check(find("O2"), "cpu", OLD_CPU)
    assert fp16.startswith("This CPU has no fp16 arithmetic")
    (bf16,) = check(find("amp-bf16"), "cpu", OLD_CPU)
    assert bf16.startswith("This CPU has no bf16 arithmetic")
    assert check(find("O0"), "cpu", OLD_CPU) == ()


def test_chips_without_tensor_cores_say_so() -> None:
    assert check(find("O2"), "cuda", CC_3_7, cudnn=True) == (
        "a chip of capability 3.7 has no tensor cores: fp16 is only a way to store numbers there.",
    )
    assert check(find("O1"), "cuda", CC_6_0, cudnn=True) == (
        "a chip of capability 6.0 has no tensor cores: fp16 brings no tensor cores there.",
    )


def test_cudnn_switched_off_is_refused_as_in_apex() -> None:
    with pytest.raises(CannotMeasureError, match="cuDNN is switched off"):
        check(find("O2"), "cuda", CC_8_0, cudnn=False)


def test_pytorch_is_not_asked_whether_it_can_emulate(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        def __init__(self, device: object) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *raised: object) -> None: ...

    monkeypatch.setattr(torch.cuda, "device", Nothing)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a chip")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    monkeypatch.setattr(torch.cuda, "is_tf32_supported", lambda: False, raising=False)
    assert abilities("cuda") == Abilities("cuda", "a chip", True, False, False, (7, 5))


def test_without_its_function_tf32_is_told_by_the_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        def __init__(self, device: object) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *raised: object) -> None: ...

    monkeypatch.setattr(torch.cuda, "device", Nothing)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 6))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a chip")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True)
    monkeypatch.delattr(torch.cuda, "is_tf32_supported", raising=False)
    assert abilities("cuda").tf32
