"""Names, files and inputs of models, and what is said about wrong ones."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("torchvision", reason="needs torchvision")

from flopwatch.errors import UsageError  # noqa: E402
from flopwatch.subjects.model import ModelRaisedError, Request, find  # noqa: E402
from flopwatch.subjects.model.inputs import Shape, locate_image, parse_shape  # noqa: E402

pytestmark = pytest.mark.torch

FILE = """
import torch
from torch import nn
from neighbour import WIDTH

ready = nn.Linear(2, 2)
number = 3

def net():
    return nn.Linear(WIDTH, 5)

def with_arguments():
    return nn.Bilinear(2, 3, 4), torch.ones(1, 2), torch.ones(1, 3)

def inner():
    raise ValueError("no such width")

def raising():
    inner()

def something():
    return 7
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    (tmp_path / "neighbour.py").write_text("WIDTH = 3")
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_a_torchvision_model_with_its_own_input():
    subject = find(Request("squeezenet1_1", batch=2))
    assert subject.framework == "torch" and type(subject.model).__name__ == "SqueezeNet"
    assert [tuple(argument.shape) for argument in subject.arguments] == [(2, 3, 224, 224)]
    assert subject.source == "2x3x224x224, random (seed 0)"


def test_weights_and_inputs_are_seeded_and_the_generators_left_alone():
    torch.manual_seed(5)
    state = torch.get_rng_state(), random.getstate()
    one = find(Request("squeezenet1_1", ("1x3x32x32",)))
    assert torch.equal(torch.get_rng_state(), state[0]) and random.getstate() == state[1]
    other = find(Request("squeezenet1_1", ("1x3x32x32",)))
    assert torch.equal(one.arguments[0], other.arguments[0])
    assert all(map(torch.equal, one.model.parameters(), other.model.parameters()))


@pytest.mark.parametrize(("dtype", "expected"), [("fp64", "float64"), ("bf16", "bfloat16"), ("fp16", "float16")])
def test_datatypes(dtype, expected):
    subject = find(Request("squeezenet1_1", ("1x3x32x32",), dtype=dtype))
    assert {str(p.dtype) for p in subject.model.parameters()} == {f"torch.{expected}"}
    assert str(subject.arguments[0].dtype) == f"torch.{expected}"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("resnet81", "There is no model named 'resnet81'. Did you mean resnet18 or"),
        ("ResNet18", "Did you mean resnet18 or"),
        ("qqqqqqqq", "Nothing has a similar name. A model of your own is named FILE.py:FACTORY."),
        ("torchvision:resnet5", "There is no model named 'torchvision:resnet5'. Did you mean torchvision:resnet50 or"),
        ("chainer:googlnet", "Did you mean chainer:googlenet?"),
        ("keras:x", "'keras:x' is not a model."),
        ("nowhere.py:net", "There is no file 'nowhere.py'"),
    ],
)
def test_names_that_do_not_exist(name, sentence):
    with pytest.raises(UsageError) as caught:
        find(Request(name))
    assert sentence in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_factory_in_a_file_that_imports_its_neighbour(file):
    subject = find(Request(f"{file}:net", ("4x3",)))
    assert subject.model.out_features == 5
    assert subject.source == "4x3, random (seed 0)"


def test_a_factory_that_brings_arguments_and_a_model_that_is_ready(file):
    subject = find(Request(f"{file}:with_arguments"))
    assert [tuple(argument.shape) for argument in subject.arguments] == [(1, 2), (1, 3)]
    assert find(Request(f"{file}:ready", ("1x2",))).model.in_features == 2


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        ("", "Which function of"),
        ("nte", "Did you mean net or inner?"),
        ("number", "is neither a model nor a function. It is a int."),
        ("something", "does not make a model. It returned a int."),
        ("net", "does not say what its input looks like."),
    ],
)
def test_factories_that_do_not_do(file, factory, sentence):
    with pytest.raises(UsageError) as caught:
        find(Request(f"{file}:{factory}" if factory else str(file)))
    assert sentence in str(caught.value)


def test_a_factory_that_raises_is_shown_as_the_users_own(file):
    with pytest.raises(ModelRaisedError) as caught:
        find(Request(f"{file}:raising"))
    text = str(caught.value)
    assert caught.value.exit_code == 1
    assert "ValueError: no such width" in text and text.count("  File ") == 2
    assert "flopwatch" not in text.partition("Traceback")[2].replace(str(file), "")


def test_a_file_that_cannot_be_loaded(file):
    file.write_text("def net(:\n")
    with pytest.raises(ModelRaisedError) as caught:
        find(Request(f"{file}:net"))
    assert "SyntaxError" in str(caught.value) and text_of_ours(str(caught.value)) == 0


def text_of_ours(text: str) -> int:
    return text.count("src/flopwatch/")


def test_shapes():
    assert parse_shape("1x3x224x224") == Shape((1, 3, 224, 224))
    assert parse_shape("2,5:int64") == Shape((2, 5), integer=True)
    assert str(parse_shape("1x128:int64").with_batch(4)) == "4x128:int64"
    for wrong in ("", "ax3", "3x", "1x2:fp8", "-1x3"):
        with pytest.raises(UsageError):
            parse_shape(wrong)


def test_a_photograph():
    pytest.importorskip("skimage", reason="needs scikit-image's pictures")
    subject = find(Request("squeezenet1_1", batch=2, image="skimage:coffee"))
    (pixels,) = subject.arguments
    assert pixels.shape == (2, 3, 224, 224) and torch.equal(pixels[0], pixels[1])
    assert subject.source == "2x3x224x224, photograph coffee.png"
    # as torchvision's own preset sees it, up to its rounding of resized pixels
    from PIL import Image
    from torchvision.transforms._presets import ImageClassification

    with Image.open(locate_image("skimage:coffee")) as picture:
        expected = ImageClassification(crop_size=224, resize_size=256)(picture)
    assert float((pixels[0] - expected).abs().mean()) < 0.02


@pytest.mark.parametrize(
    ("image", "sentence"),
    [("nowhere.png", "There is no picture 'nowhere.png'."), ("skimage:tea", "It has: ")],
)
def test_pictures_that_do_not_exist(image, sentence):
    with pytest.raises(UsageError, match=sentence):
        find(Request("squeezenet1_1", image=image))


def test_a_picture_that_does_not_fit_or_cannot_be_read(tmp_path):
    wrong = tmp_path / "picture.png"
    wrong.write_text("no picture")
    with pytest.raises(UsageError, match="is not a picture that can be read"):
        find(Request("squeezenet1_1", image=str(wrong)))
    with pytest.raises(UsageError, match="does not fit an input of 1x10"):
        find(Request("squeezenet1_1", ("1x10",), image=str(wrong)))
