"""Networks of the time of Caffe, whose multiply-accumulates and parameters are known from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from flopwatch.estimating import estimate_model
from flopwatch.record import Record
from flopwatch.subjects.model import Request
from tests.unit.formats.caffe import nets


def estimated(folder: Path, text: str, batch: int | None = None) -> Record:
    path = folder / "deploy.prototxt"
    path.write_text(text)
    return estimate_model(Request(str(path), batch=batch))


def mac(record: Record) -> int:
    return sum(cell.mac for cell in record.cells)


def params(record: Record) -> int:
    return sum(layer.params for layer in record.layers)


@pytest.mark.parametrize(
    ("text", "macs", "parameters"),
    [
        pytest.param(nets.alexnet(), 724_406_816, 60_965_224, id="AlexNet"),
        pytest.param(nets.alexnet(groups=1), 1_135_256_096, 62_378_344, id="AlexNet in one group"),
        pytest.param(nets.alexnet(norm_first=False), 724_406_816, 60_965_224, id="CaffeNet"),
        pytest.param(nets.nin(), 1_100_188_800, 7_595_176, id="NIN"),
        pytest.param(nets.nin(227), 1_105_996_320, 7_595_176, id="NIN at 227"),
        pytest.param(nets.googlenet(), 1_582_671_872, 6_998_552, id="GoogLeNet"),
        pytest.param(nets.googlenet(size=227), 1_599_884_032, 6_998_552, id="GoogLeNet at 227"),
        pytest.param(nets.vgg16(), 15_470_264_320, 138_357_544, id="VGG-16"),
        pytest.param(nets.resnet(3, 4, 6, 3), 3_857_973_248, 25_557_032, id="ResNet-50"),
        pytest.param(
            nets.resnet(3, 4, 6, 3, first_bias=True), 3_857_973_248, 25_557_096, id="ResNet-50 with a first bias"
        ),
        pytest.param(nets.resnet(3, 4, 23, 3), 7_570_194_432, 44_549_160, id="ResNet-101"),
        pytest.param(nets.resnet(3, 8, 36, 3), 11_282_415_616, 60_192_808, id="ResNet-152"),
        pytest.param(nets.squeezenet(), 861_339_936, 1_248_424, id="SqueezeNet 1.0"),
        pytest.param(nets.squeezenet(later=True), 387_747_520, 1_235_496, id="SqueezeNet 1.1"),
    ],
)
def test_published_networks(tmp_path: Path, text: str, macs: int, parameters: int) -> None:
    record = estimated(tmp_path, text)
    assert mac(record) == macs
    assert params(record) == parameters
    assert not record.unknown


def test_auxiliary_classifiers_add_their_parameters(tmp_path: Path) -> None:
    assert params(estimated(tmp_path, nets.googlenet(auxiliary=True))) == 13_378_280


def test_alexnet_by_layer(tmp_path: Path) -> None:
    record = estimated(tmp_path, nets.alexnet())
    macs = {cell.layer: cell.mac for cell in record.cells if cell.mac}
    assert macs == {
        "conv1": 55**2 * 96 * 3 * 11**2,
        "conv2": 27**2 * 256 * 48 * 5**2,
        "conv3": 13**2 * 384 * 256 * 3**2,
        "conv4": 13**2 * 384 * 192 * 3**2,
        "conv5": 13**2 * 256 * 192 * 3**2,
        "fc6": 6**2 * 256 * 4096,
        "fc7": 4096 * 4096,
        "fc8": 4096 * 1000,
    }
    kinds = {layer.name: (layer.kind, layer.params) for layer in record.layers}
    assert kinds["conv2"] == ("Convolution", 256 * 48 * 5**2 + 256)
    assert kinds["norm1"] == ("LRN", 0)


def test_one_image_is_estimated_unless_a_batch_is_asked_for(tmp_path: Path) -> None:
    one = estimated(tmp_path, nets.googlenet(batch=10))
    assert mac(one) == 1_582_671_872
    assert any("--batch 10 takes the file's own batch" in note for note in one.notes)
    ten = estimated(tmp_path, nets.googlenet(batch=10), batch=10)
    assert mac(ten) == 10 * 1_582_671_872
    assert not any("own batch" in note for note in ten.notes)
    assert mac(estimated(tmp_path, nets.googlenet(), batch=16)) == 16 * 1_582_671_872


def test_another_size_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "deploy.prototxt"
    path.write_text(nets.nin())
    record = estimate_model(Request(str(path), shapes=("2x3x227x227",)))
    assert mac(record) == 2 * 1_105_996_320


def test_weights_and_activations_in_bytes(tmp_path: Path) -> None:
    memory = estimated(tmp_path, nets.vgg16()).memory
    assert memory is not None
    assert memory.parameters == 4 * 138_357_544
    # The first two convolutions: what goes in and what comes out.
    assert memory.activations == 4 * 2 * 64 * 224**2
    assert memory.at == "conv1_2"
