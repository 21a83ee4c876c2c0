"""Three generations of files, phases, data layers, shared weights; and files that make no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from flopwatch.errors import UsageError
from flopwatch.estimating import estimate_model
from flopwatch.events import Op, Traced
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas import Work, estimate
from flopwatch.formats.caffe import trace
from flopwatch.subjects.model import Request


def traced(folder: Path, text: str, **options: object) -> tuple[Traced, list[Op]]:
    path = folder / "net.prototxt"
    path.write_text(text)
    ops: list[Op] = []
    return trace(path, ops.append, keep_batch=True, **options), ops  # type: ignore[arg-type]  # options of the caller's


def mac(ops: list[Op]) -> int:
    works = [estimate(op) for op in ops]
    return sum(work.mac for work in works if isinstance(work, Work))


CONV = 5 * 5 * 4 * 3 * 3 * 3  # 3 x 3 without padding on a 7 x 7 image of 3 colours, 4 outputs
FC = 4 * 5 * 5 * 10

MODERN = """
name: "small" input: "data" input_dim: 1 input_dim: 3 input_dim: 7 input_dim: 7
layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
layer { name: "f" type: "InnerProduct" bottom: "c" top: "f" inner_product_param { num_output: 10 } }
layer { name: "s" type: "Softmax" bottom: "f" top: "s" }
"""
OLD = """
name: "small" input: "data" input_dim: [1, 3, 7, 7]
layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" blobs_lr: 1 convolution_param { num_output: 4 kernel_size: 3 } }
layers { name: "r" type: RELU bottom: "c" top: "c" }
layers { name: "f" type: 14 bottom: "c" top: "f" inner_product_param { num_output: 10 } }
layers { name: "s" type: SOFTMAX bottom: "f" top: "s" }
"""
OLDEST = """
name: "small" input: "data" input_dim: 1 input_dim: 3 input_dim: 7 input_dim: 7
layers { layer { name: "c" type: "conv" num_output: 4 kernelsize: 3 biasterm: true } bottom: "data" top: "c" }
layers { layer { name: "r" type: "relu" } bottom: "c" top: "c" }
layers { layer { name: "f" type: "innerproduct" num_output: 10 } bottom: "c" top: "f" }
layers { layer { name: "s" type: "softmax" } bottom: "f" top: "s" }
"""
VIEWED = MODERN.replace('"Convolution"', '"convolution"').replace('"InnerProduct"', '"inner_product"')


@pytest.mark.parametrize("text", [MODERN, OLD, OLDEST, VIEWED], ids=["modern", "old", "oldest", "for viewers"])
def test_all_generations_are_read_as_one(tmp_path: Path, text: str) -> None:
    told, ops = traced(tmp_path, text)
    assert [op.name for op in ops] == [
        "caffe::Convolution",
        "caffe::ReLU",
        "caffe::InnerProduct",
        "caffe::Softmax",
    ]
    assert [(part.name, part.params) for part in told.parts] == [
        ("c", 4 * 3 * 9 + 4),
        ("r", 0),
        ("f", 4 * 5 * 5 * 10 + 10),
        ("s", 0),
    ]
    assert mac(ops) == CONV + FC


def test_inputs_of_any_number_of_sizes(tmp_path: Path) -> None:
    text = (
        'input: "a" input_shape { dim: 2 dim: 8 } input: "b" input_shape { dim: 2 dim: 3 dim: 4 }'
        'layer { type: "Silence" bottom: "a" bottom: "b" }'
    )
    _, ops = traced(tmp_path, text)
    assert [array.shape for array in ops[0].arrays] == [(2, 8), (2, 3, 4)]
    _, ops = traced(tmp_path, 'input: "a" input_dim: 2 input_dim: 8 layer { type: "Silence" bottom: "a" }')
    assert [array.shape for array in ops[0].arrays] == [(2, 8)]


TRAINING = """
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { crop_size: 7 } data_param { batch_size: 64 } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { crop_size: 7 mean_value: 1 mean_value: 2 mean_value: 3 } data_param { batch_size: 5 } }
layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "only training" type: "Convolution" bottom: "c" top: "t" include { phase: TRAIN }
  convolution_param { num_output: 4 kernel_size: 3 } }
layer { name: "not testing" type: "Power" bottom: "c" top: "p" exclude { phase: TEST } }
layer { name: "f" type: "InnerProduct" bottom: "c" top: "f" inner_product_param { num_output: 10 } }
layer { name: "accuracy" type: "Accuracy" bottom: "f" bottom: "label" top: "a" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "f" bottom: "label" top: "loss" }
"""


def test_the_test_phase_of_a_file_for_training(tmp_path: Path) -> None:
    told, ops = traced(tmp_path, TRAINING)
    assert [part.name for part in told.parts] == ["data", "c", "f", "accuracy", "loss"]
    assert mac(ops) == 5 * (CONV + FC)
    assert "fed with data 5x3x7x7, label 5" in told.notes
    assert mac(traced(tmp_path, TRAINING, batch=1)[1]) == CONV + FC


def test_stages_and_levels(tmp_path: Path) -> None:
    text = (
        'input: "data" input_shape { dim: [1, 8] } state { level: 1 stage: "deep" }'
        'layer { name: "a" type: "TanH" bottom: "data" top: "a" include { stage: "deep" } }'
        'layer { name: "b" type: "TanH" bottom: "data" top: "b" include { not_stage: "deep" } }'
        'layer { name: "c" type: "TanH" bottom: "data" top: "c" include { min_level: 2 } }'
        'layer { name: "d" type: "TanH" bottom: "data" top: "d" include { min_level: 1 max_level: 1 } }'
        'layer { name: "e" type: "TanH" bottom: "data" top: "e" exclude { stage: "other" } }'
    )
    assert [part.name for part in traced(tmp_path, text)[0].parts] == ["a", "d", "e"]


USE = 'layer { name: "f" type: "InnerProduct" bottom: "data" top: "f" inner_product_param { num_output: 10 } }'


@pytest.mark.parametrize(
    ("data", "sizes", "notes"),
    [
        ('type: "Data" transform_param { crop_size: 7 } data_param { batch_size: 4 }', 4 * 3 * 7 * 7, ["no number of channels"]),
        ('type: "Data" transform_param { crop_size: 7 }', 3 * 7 * 7, ["gives no batch", "no number of channels"]),
        ('type: "Data" transform_param { crop_size: 7 force_gray: true } data_param { batch_size: 4 }', 4 * 7 * 7, []),
        ('type: "Data" data_param { batch_size: 4 crop_size: 7 }', 4 * 3 * 7 * 7, ["no number of channels"]),
        ('type: "ImageData" image_data_param { batch_size: 4 new_height: 7 new_width: 9 is_color: false }', 4 * 7 * 9, []),
        ('type: "MemoryData" memory_data_param { batch_size: 4 channels: 2 height: 7 width: 9 }', 4 * 2 * 7 * 9, []),
        ('type: "DummyData" dummy_data_param { shape { dim: [4, 6] } }', 4 * 6, []),
        ('type: "DummyData" dummy_data_param { num: 4 channels: 6 height: 1 width: 2 }', 4 * 12, []),
        ('type: "Input" input_param { shape { dim: [4, 6] } }', 4 * 6, []),
        ('type: "Data" input_param { shape { dim: [4, 6] } }', 4 * 6, []),
    ],
)  # fmt: skip
def test_layers_that_feed(tmp_path: Path, data: str, sizes: int, notes: list[str]) -> None:
    told, ops = traced(tmp_path, f'layer {{ name: "data" top: "data" {data} }} {USE}')
    assert mac(ops) == sizes * 10
    for words in notes:
        assert any(words in note for note in told.notes)
    assert len([note for note in told.notes if note.startswith("data: ")]) == len(notes)


def test_a_data_layer_for_training_alone_feeds_if_nothing_else_does(tmp_path: Path) -> None:
    data = 'type: "Data" include { phase: TRAIN } transform_param { crop_size: 7 } data_param { batch_size: 2 }'
    told, ops = traced(tmp_path, f'layer {{ name: "data" top: "data" {data} }} {USE}')
    assert mac(ops) == 2 * 3 * 7 * 7 * 10
    assert any("of the training phase" in note for note in told.notes)


def test_sizes_that_the_file_does_not_tell_can_be_given(tmp_path: Path) -> None:
    text = f'layer {{ name: "data" top: "data" type: "HDF5Data" hdf5_data_param {{ batch_size: 8 }} }} {USE}'
    with pytest.raises(UsageError, match="does not say how large 'data' is"):
        traced(tmp_path, text)
    assert mac(traced(tmp_path, text, shapes=((2, 16),))[1]) == 2 * 16 * 10
    assert mac(traced(tmp_path, f'input: "data" {USE}', shapes=((2, 16),))[1]) == 2 * 16 * 10


def test_the_batch_goes_to_all_inputs_that_have_it(tmp_path: Path) -> None:
    text = (
        'input: "a" input_shape { dim: [10, 8] } input: "info" input_shape { dim: [1, 3] } input: "b" input_shape { dim: [10, 4] }'
        'layer { name: "c" type: "Concat" bottom: "a" bottom: "b" top: "c" }'
        'layer { name: "i" type: "Silence" bottom: "info" }'
    )
    _, ops = traced(tmp_path, text, batch=2)
    assert ops[0].outputs[0] is not None
    assert ops[0].outputs[0].shape == (2, 12)
    assert [array.shape for array in ops[1].arrays] == [(1, 3)]


def test_a_loss_whose_top_has_no_name(tmp_path: Path) -> None:
    text = 'input: "x" input_shape { dim: [2, 8] } input: "y" input_shape { dim: [2, 8] }'
    _, ops = traced(tmp_path, text + 'layer { name: "loss" type: "EuclideanLoss" bottom: "x" bottom: "y" }')
    assert [output.shape for output in ops[0].outputs if output is not None] == [()]


def test_shared_weights_are_held_once(tmp_path: Path) -> None:
    def dense(name: str, bottom: str) -> str:
        return (
            f'layer {{ name: "{name}" type: "InnerProduct" bottom: "{bottom}" top: "{name}" param {{ name: "w" }} param {{ name: "b" }}'
            " inner_product_param { num_output: 10 } }"
        )

    inputs = 'input: "x" input_shape { dim: [1, 8] } input: "y" input_shape { dim: [1, 8] }'
    told, ops = traced(tmp_path, inputs + dense("one", "x") + dense("two", "y"))
    assert [part.params for part in told.parts] == [8 * 10 + 10, 0]
    assert mac(ops) == 2 * 8 * 10


def test_layers_of_one_name_are_told_apart(tmp_path: Path) -> None:
    text = 'input: "data" input_shape { dim: [1, 8] }\n' + 2 * f"{USE}\n".replace('top: "f"', 'top: "data"').replace(
        "10", "8"
    )
    told, ops = traced(tmp_path, text)
    assert [part.name for part in told.parts] == ["f", "f (line 3)"]
    assert [op.scope.layer for op in ops] == ["f", "f (line 3)"]


INPUT = 'input: "data" input_dim: 1 input_dim: 3 input_dim: 7 input_dim: 7\n'


def test_a_type_that_nobody_knows_is_unknown_with_its_place(tmp_path: Path) -> None:
    told, ops = traced(tmp_path, INPUT + 'layer { name: "odd" type: "Wavelet" bottom: "data" top: "odd" }')
    assert estimate(ops[0]) == Unknown("caffe::Wavelet")
    assert ops[0].scope.layer == "odd"
    assert ops[0].outputs == (None,)
    assert [(part.name, part.kind) for part in told.parts] == [("odd", "Wavelet")]
    record = estimate_model(Request(str(tmp_path / "net.prototxt")))
    assert [(unknown.name, unknown.count, unknown.layers) for unknown in record.unknown] == [
        ("caffe::Wavelet", 1, ("odd",))
    ]


def named(kind: str, settings: str = "", bottom: str = "data", top: str = "out") -> str:
    return f'layer {{ name: "it" type: "{kind}" bottom: "{bottom}" top: "{top}" {settings} }}\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: there is no layer in this file"),
        ('net: "train_val.prototxt" base_lr: 0.1', "give the file of the network: train_val.prototxt"),
        ("layer: 3", "line 1: 'layer' must be a message"),
        ('layer { name: "x" }', "layer 'x' does not say its type"),
        (INPUT + named("Wavelet") + named("ReLU", bottom="out", top="r"), "line 2: layer 'it' (Wavelet) is of a type that is not known"),
        (INPUT + named("Convolutoin") + named("ReLU", bottom="out", top="r"), "Did you mean Convolution?"),
        (INPUT + named("ReLU", bottom="missing"), "line 2: layer 'it' (ReLU) takes 'missing', which no layer makes"),
        (INPUT + named("TanH", bottom="later") + named("TanH", top="later"), "made only by layer 'it (line 3)' (TanH) of line 3, after it"),
        (INPUT + named("TanH", bottom="out"), "takes 'out', which it makes itself"),
        (INPUT + named("TanH") + named("Sigmoid"), "(Sigmoid) makes 'out', which layer 'it' (TanH) has made already"),
        ('input: "data"\n' + named("ReLU"), "line 1: the file does not say how large 'data' is"),
        ('input: "data" input_dim: 1 input_dim: 0\n' + named("ReLU"), "'input_dim' must be at least 1"),
        ('input: "data" input_dim: 1 input_dim: -3\n' + named("ReLU"), "'input_dim' must be at least 1"),
        ('input: "a" input: "b" input_dim: 1 input_dim: 3\n' + named("ReLU"), "there are 2 inputs, but shapes for 1"),
        ('input: "a" input: "b" input_dim: [1, 3, 7, 7, 1, 3]\n' + named("ReLU"), "each input takes four input_dim"),
        (INPUT + named("Convolution"), "'convolution_param' does not say its num_output"),
        (INPUT + named("Convolution", "convolution_param { num_output: 4 }"), "does not say its kernel_size"),
        (INPUT + named("Convolution", "convolution_param { num_output: 4 kernel_size: 3 stride: 0 }"), "'stride' must be at least 1"),
        (INPUT + named("Convolution", "convolution_param { num_output: 4 kernel_size: 9 }"), "leaves nothing of its bottom"),
        (INPUT + named("Convolution", "convolution_param { num_output: 4 kernel_size: 3 group: 2 }"), "cannot part 3 channels"),
        (INPUT + named("Convolution", 'convolution_param { num_output: "4" }'), "'num_output' must be a whole number"),
        (INPUT + named("Convolution", "convolution_param { num_output: 4 kernel_h: 3 }"), "does not say its kernel_w"),
        (INPUT + named("Convolution", 'bottom: "data" convolution_param { num_output: 4 kernel_size: 3 }'), "makes a blob of each bottom"),
        (INPUT + named("SPP", "spp_param { pyramid_height: 1000000000 }"), "has a level of 8 x 8 bins"),
        (INPUT + named("Deconvolution", "convolution_param { num_output: 4 kernel_size: 1 pad: 9 }"), "leaves nothing"),
        (INPUT + named("Pooling", "pooling_param { kernel_size: 9 }"), "leaves nothing of its bottom"),
        (INPUT + named("Pooling", "pooling_param { kernel_size: 2 pad: 2 }"), "no less than its kernel"),
        (INPUT + named("Pooling", "pooling_param { pool: MEDIAN kernel_size: 2 }"), "'pool' cannot be MEDIAN"),
        (INPUT + named("LRN", "lrn_param { local_size: 4 }"), "needs an odd local_size"),
        (INPUT + named("Softmax", "softmax_param { axis: 4 }"), "speaks of axis 4"),
        (INPUT + named("Reshape", "reshape_param { shape { dim: 5 dim: -1 } }"), "cannot make 5x-1 of its bottom"),
        (INPUT + named("Reshape", "reshape_param { shape { dim: -1 dim: -1 } }"), "leaves two sizes open"),
        (INPUT + named("Slice", "slice_param { slice_point: 5 }"), "cannot be cut at (5,) into 1 tops"),
        (INPUT + named("Crop"), "takes 2 bottoms, not 1"),
        (INPUT + named("Eltwise", 'bottom: "data" eltwise_param { coeff: 1 }'), "has 1 factors for 2 bottoms"),
        (INPUT + named("ReLU", 'top: "second"'), "makes 1 blobs, not 2"),
        (INPUT + named("Split", 'top: "out"'), "makes a blob twice"),
        (INPUT + "layer { name: 'it'\n type: 'ReLU'\n", "line 4: the text ends inside 'layer' of line 2"),
        (f'layer {{ name: "data" top: "data" type: "Data" data_param {{ batch_size: 0 }} }} {USE}', "has a batch of 0"),
        (f'layer {{ name: "data" top: "data" type: "Data" data_param {{ batch_size: 4 }} }} {USE}', "does not say how large 'data' is"),
        (f'layer {{ name: "data" top: "data" type: "Input" }} {USE}', "does not say how large 'data' is"),
    ],
)  # fmt: skip
def test_files_that_make_no_sense(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        traced(tmp_path, text)
    assert words in str(refused.value)
    assert "net.prototxt, line " in str(refused.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "A batch cannot have 0 images"),
        ({"dims": {"N": 3}}, "no sizes with names"),
        ({"shapes": ((1, 3, 7, 7), (1, 3))}, "2 shapes were given for 1 inputs"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        traced(tmp_path, MODERN, **options)


def test_a_batch_for_a_recurrent_network_is_refused(tmp_path: Path) -> None:
    text = (
        'input: "x" input_shape { dim: [5, 2, 8] } input: "cont" input_shape { dim: [5, 2] }'
        'layer { name: "l" type: "LSTM" bottom: "x" bottom: "cont" top: "l" recurrent_param { num_output: 3 } }'
    )
    with pytest.raises(UsageError, match="time comes first"):
        traced(tmp_path, text, batch=1)
    assert mac(traced(tmp_path, text)[1]) == 5 * 2 * 4 * 3 * (8 + 3)


def test_files_that_cannot_be_estimated(tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    with pytest.raises(UsageError, match="There is no file"):
        estimate_model(Request(str(path)))
    path.write_text(MODERN)
    with pytest.raises(UsageError, match="not its training"):
        estimate_model(Request(str(path)), train=True)
    with pytest.raises(UsageError, match="says itself what it computes on"):
        estimate_model(Request(str(path), dtype="fp16"))
    path.write_bytes(bytes(range(256)))
    with pytest.raises(UsageError, match="this is not prototxt"):
        estimate_model(Request(str(path)))


def test_weights_alone_are_not_a_network(tmp_path: Path) -> None:
    path = tmp_path / "net.caffemodel"
    path.write_bytes(b"\n\x03net")
    with pytest.raises(UsageError, match=r"Give the \.prototxt"):
        estimate_model(Request(str(path)))


def activations(folder: Path, text: str) -> tuple[int, str]:
    told, _ = traced(folder, text)
    return told.activations // 4, told.at


def test_activations_at_their_peak(tmp_path: Path) -> None:
    conv = 4 * 5 * 5
    # The input is not among them, in place is no new blob, and the convolution is needed until the product is made.
    assert activations(tmp_path, MODERN) == (conv + 10, "f")
    flat = MODERN.replace(
        'layer { name: "f"', 'layer { name: "flat" type: "Flatten" bottom: "c" top: "flat" }\nlayer { name: "f"'
    ).replace('type: "InnerProduct" bottom: "c"', 'type: "InnerProduct" bottom: "flat"')
    assert activations(tmp_path, flat) == (conv + 10, "f")
    # A shortcut keeps the convolution; a result that nobody takes stays.
    text = (
        INPUT + 'layer { name: "a" type: "TanH" bottom: "data" top: "a" }'
        'layer { name: "b" type: "TanH" bottom: "a" top: "b" }'
        'layer { name: "c" type: "Eltwise" bottom: "a" bottom: "b" top: "c" }'
        'layer { name: "d" type: "TanH" bottom: "data" top: "d" }'
        'layer { name: "e" type: "TanH" bottom: "d" top: "e" }'
        'layer { name: "f" type: "Eltwise" bottom: "d" bottom: "e" top: "f" }'
    )
    size = 3 * 7 * 7
    assert activations(tmp_path, text) == (4 * size, "f")


def test_huge_sizes_do_not_overflow(tmp_path: Path) -> None:
    text = f'input: "data" input_shape {{ dim: [1, {2**40}] }} {USE.replace("10", str(2**40))}'
    assert mac(traced(tmp_path, text)[1]) == 2**80
    side = 2**40
    pooled = f'input: "data" input_shape {{ dim: [1, 3, {side}, {side}] }}' + named(
        "Pooling", "pooling_param { global_pooling: true }"
    )
    worth = estimate(traced(tmp_path, pooled)[1][0])
    assert isinstance(worth, Work)
    assert [count.instructions for count in worth.tally.values()] == [3 * (side**2 - 1)]
