"""Chainer models followed from function to function: what each function costs, where it belongs, what is left as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numpy as np
import pytest

if find_spec("chainer") is None:
    pytest.skip("needs Chainer", allow_module_level=True)

from flopwatch.errors import UsageError
from flopwatch.estimating import estimate_model, estimate_subject
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import Work, estimate, lookup
from flopwatch.flops.formulas.chainer import UNKNOWN
from flopwatch.flops.operations import Operation
from flopwatch.frameworks import BACKWARD, FORWARD, OPTIMIZER, OUTSIDE, ROOT
from flopwatch.frameworks.chainer import load
from flopwatch.frameworks.chainer.tracing import trace
from flopwatch.record import Record
from flopwatch.subjects.model import ModelSubject, Request

pytestmark = pytest.mark.chainer
chainer = load()
F, L = chainer.functions, chainer.links

ADD, MUL, DIV, FMA = Operation.ADD, Operation.MUL, Operation.DIV, Operation.FMA
SQRT, MINMAX, FUNCTION = Operation.SQRT, Operation.MINMAX, Operation.TRANSCENDENTAL


class Calls(chainer.Chain):
    """A model that is one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *arguments: Any) -> Any:
        return self._function(*arguments)


def subject(model: Any, *arguments: Any) -> ModelSubject:
    return ModelSubject("mine", "chainer", model, arguments, "what the test gives")


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def random(*shape: int) -> Any:
    return np.random.default_rng(0).uniform(0.5, 1.5, shape).astype(np.float32)


def operations(function: Callable[..., Any], *arguments: Any) -> Mapping[Operation, int]:
    """What all functions that a call makes compute, together."""
    found: Counter[Operation] = Counter()

    def see(op: Any) -> None:
        worth = estimate(op)
        assert not isinstance(worth, Unknown), op.name
        if isinstance(worth, Work):
            for key, count in worth.tally.items():
                found[key.operation] += count.instructions

    trace(subject(Calls(function), *arguments), see, train=False)
    return found


N, C, H, W, OUT = 2, 6, 7, 9, 4
SIZE, PLANE = N * C * H * W, H * W
IMAGE, ROWS = (N, C, H, W), (N, C)


@pytest.mark.parametrize(
    ("function", "shapes", "expected"),
    [
        (lambda x, w: F.convolution_2d(x, w, pad=1), (IMAGE, (OUT, C, 3, 3)), {FMA: N * OUT * PLANE * C * 9}),
        (
            lambda x, w, b: F.convolution_2d(x, w, b, pad=1),
            (IMAGE, (OUT, C, 3, 3), (OUT,)),
            {FMA: N * OUT * PLANE * C * 9, ADD: N * OUT * PLANE},
        ),
        (lambda x, w: F.convolution_2d(x, w, stride=2, pad=1, groups=2), (IMAGE, (OUT, C // 2, 3, 3)), {FMA: N * OUT * 4 * 5 * C // 2 * 9}),
        (lambda x, w: F.convolution_2d(x, w, dilate=2), (IMAGE, (OUT, C, 3, 3)), {FMA: N * OUT * (H - 4) * (W - 4) * C * 9}),
        (lambda x, w: F.depthwise_convolution_2d(x, w, pad=1), (IMAGE, (1, C, 3, 3)), {FMA: SIZE * 9}),
        (lambda x, w: F.convolution_nd(x, w, pad=1), ((N, C, H), (OUT, C, 3)), {FMA: N * OUT * H * C * 3}),
        (lambda x, w: F.deconvolution_2d(x, w, stride=2), (IMAGE, (C, OUT, 2, 2)), {FMA: SIZE * OUT * 4}),
        (lambda x, w: F.deconvolution_nd(x, w, stride=2), ((N, C, H), (C, OUT, 2)), {FMA: N * C * H * OUT * 2}),
        (lambda x, w: F.local_convolution_2d(x, w), (IMAGE, (OUT, H - 2, W - 2, C, 3, 3)), {FMA: N * OUT * (H - 2) * (W - 2) * C * 9}),
        (lambda x, w, b: F.linear(x, w, b), (ROWS, (OUT, C), (OUT,)), {FMA: N * C * OUT, ADD: N * OUT}),
        (lambda x, w: F.linear(x, w, n_batch_axes=2), ((N, 5, C), (OUT, C)), {FMA: N * 5 * C * OUT}),
        (F.matmul, ((3, 4, 5), (3, 5, 2)), {FMA: 3 * 4 * 5 * 2}),
        (lambda a, b: F.matmul(a, b, transa=True), ((5, 4), (5, 2)), {FMA: 4 * 5 * 2}),
        (F.matmul, ((4, 5), (5,)), {FMA: 4 * 5}),
        (F.batch_matmul, ((3, 4, 5), (3, 5, 2)), {FMA: 3 * 4 * 5 * 2}),
        (lambda a, b: F.einsum("bhid,bhjd->bhij", a, b), ((2, 3, 4, 5), (2, 3, 6, 5)), {FMA: 2 * 3 * 4 * 6 * 5}),
        (lambda a, b: F.tensordot(a, b, axes=([2], [0])), ((2, 3, 4), (4, 5)), {FMA: 2 * 3 * 4 * 5}),
        (lambda ids, w: F.embed_id(ids.astype(np.int32), w), ((N, 5), (10, C)), {}),
        (F.relu, (IMAGE,), {MINMAX: SIZE}),
        (F.leaky_relu, (IMAGE,), {MUL: SIZE}),
        (F.elu, (IMAGE,), {FUNCTION: SIZE, MUL: SIZE}),
        (F.sigmoid, (IMAGE,), {FUNCTION: SIZE, ADD: SIZE, DIV: SIZE}),
        (F.tanh, (IMAGE,), {FUNCTION: SIZE}),
        (F.clipped_relu, (IMAGE,), {MINMAX: 2 * SIZE}),
        (F.softmax, (ROWS,), {MINMAX: N * C - N, ADD: 2 * N * C - N, FUNCTION: N * C, DIV: N * C}),
        (lambda x: F.max_pooling_2d(x, 3, 2), ((N, C, 8, 8),), {MINMAX: N * C * (3 + 3 + 3 + 2) ** 2 - N * C * 16}),
        (lambda x: F.max_pooling_2d(x, 3, 2, cover_all=False), ((N, C, 8, 8),), {MINMAX: N * C * 9 * (9 - 1)}),
        (lambda x: F.average_pooling_2d(x, 2), ((N, C, 8, 8),), {ADD: N * C * 64, DIV: N * C * 16}),
        (lambda x: F.average_pooling_2d(x, (H, W)), (IMAGE,), {ADD: SIZE - N * C, DIV: N * C}),
        (lambda x: F.average_pooling_nd(x, 3, 3), ((N, C, 9),), {ADD: N * C * 9, DIV: N * C * 3}),
        (
            F.local_response_normalization,
            (IMAGE,),
            {MUL: SIZE, ADD: N * PLANE * (3 + 4 + 5 + 5 + 4 + 3) - SIZE, FMA: SIZE, FUNCTION: SIZE, DIV: SIZE},
        ),
        # a = weight / √(v + eps) and b = bias - mean · a for each channel, then x · a + b.
        (F.fixed_batch_normalization, (IMAGE, *((C,),) * 4), {FMA: SIZE + C, MUL: C, ADD: C, SQRT: C, DIV: C}),
        (F.layer_normalization, (ROWS, (C,), (C,)), {ADD: 2 * (N * C - N) + N * C + N, MUL: 2 * N * C, DIV: 3 * N, SQRT: N, FMA: N * C}),
        (lambda x, y: F.identity(x) + y, (ROWS, ROWS), {ADD: N * C}),
        (lambda x, y, z: F.add(x, y, z), (ROWS,) * 3, {ADD: 2 * N * C}),
        (lambda x: x * 2 + 1, (ROWS,), {}),  # NumPy, not Chainer
        (lambda x: F.identity(x) * 2 + 1, (ROWS,), {MUL: N * C, ADD: N * C}),
        (lambda x: F.identity(x) ** 2, (ROWS,), {MUL: N * C}),
        (F.sqrt, (ROWS,), {SQRT: N * C}),
        (F.exp, (ROWS,), {FUNCTION: N * C}),
        (F.sum, (IMAGE,), {ADD: SIZE - 1}),
        (lambda x: F.sum(x, axis=(0, 2, 3)), (IMAGE,), {ADD: SIZE - C}),
        (lambda x: F.max(x, axis=1), (IMAGE,), {MINMAX: SIZE - N * PLANE}),
        (lambda x: F.reshape(F.transpose(x), (-1,)), (IMAGE,), {}),
        (lambda x, y: F.concat((x, y)), (IMAGE, IMAGE), {}),
        (F.lstm, ((N, OUT), (N, 4 * OUT)), {ADD: (3 + 1) * N * OUT, MUL: 3 * N * OUT, DIV: 3 * N * OUT, FUNCTION: (3 + 2) * N * OUT}),
        (F.mean_squared_error, (ROWS, ROWS), {ADD: N * C + N * C - 1, MUL: N * C, DIV: 1}),
        (lambda x: F.dropout(x), (ROWS,), {}),
    ],
)  # fmt: skip
def test_functions(function: Callable[..., Any], shapes: tuple[Any, ...], expected: Mapping[Operation, int]) -> None:
    assert operations(function, *(random(*shape) for shape in shapes)) == expected


def with_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, followed by the gradients of all its arguments."""

    def run(*arguments: Any) -> Any:
        with chainer.using_config("enable_backprop", True):
            variables = [chainer.Variable(argument) for argument in arguments]
            made = function(*variables)
            chainer.grad([made], variables, [chainer.Variable(np.ones_like(made.array))])

    return run


@pytest.mark.parametrize(
    ("function", "shapes", "expected"),
    [
        (lambda x, w: F.convolution_2d(x, w, pad=1), (IMAGE, (OUT, C, 3, 3)), {FMA: 2 * N * OUT * PLANE * C * 9}),
        (lambda x, w: F.convolution_2d(x, w, pad=1, groups=2), (IMAGE, (OUT, C // 2, 3, 3)), {FMA: 2 * N * OUT * PLANE * C // 2 * 9}),
        (lambda x, w: F.deconvolution_2d(x, w, stride=2), (IMAGE, (C, OUT, 2, 2)), {FMA: 2 * SIZE * OUT * 4}),
        (lambda x, w: F.convolution_nd(x, w), ((N, C, H), (OUT, C, 3)), {FMA: 2 * N * OUT * (H - 2) * C * 3}),
        # The gradients of input and weight, and of the bias a sum over the batch.
        (F.linear, (ROWS, (OUT, C), (OUT,)), {FMA: 2 * N * C * OUT, ADD: N * OUT - OUT}),
        (F.matmul, ((3, 4, 5), (3, 5, 2)), {FMA: 2 * 3 * 4 * 5 * 2}),
        (lambda a, b: F.einsum("ij,jk->ik", a, b), ((4, 5), (5, 2)), {FMA: 2 * 4 * 5 * 2}),
        (F.relu, (IMAGE,), {}),
        (F.sigmoid, (IMAGE,), {MUL: 2 * SIZE, ADD: SIZE}),
        (F.tanh, (IMAGE,), {MUL: 2 * SIZE, ADD: SIZE}),
        (F.softmax, (ROWS,), {MUL: 2 * N * C, ADD: N * C - N + N * C}),
        (lambda x: F.max_pooling_2d(x, 2), ((N, C, 8, 8),), {ADD: N * C * 16}),
        (lambda x: F.average_pooling_2d(x, 2), ((N, C, 8, 8),), {ADD: N * C * 64, DIV: N * C * 16}),
        (lambda x: F.unpooling_2d(x, 2, cover_all=False), (IMAGE,), {ADD: 4 * SIZE - SIZE}),
        # Upwards from 7 x 9 to 14 x 18: every gradient weighed twice, for four points each.
        (lambda x: F.resize_images(x, (2 * H, 2 * W)), (IMAGE,), {MUL: 2 * 4 * SIZE, FMA: 4 * 4 * SIZE}),
        (lambda x: x**2, (ROWS,), {MUL: 2 * N * C}),
        (lambda x: x**0.25, (ROWS,), {MUL: 2 * N * C, FUNCTION: N * C}),
        (lambda x: F.sum(x, axis=1), (IMAGE,), {}),
        (lambda x: F.reshape(x, (-1,)), (IMAGE,), {}),
        (lambda x, y: x + y, (ROWS, ROWS), {}),
        # One of two uses adds its gradient to the other's.
        (lambda x: x * x, (ROWS,), {MUL: 2 * N * C, ADD: N * C}),
        # σ once more, g · (b · y + s · (1 - b · y)), and a sum of g · y · (x - y) for each slope; a sum for each addend.
        (
            lambda x, w, b: F.swish(x, w) + F.broadcast_to(b, x.shape),
            (ROWS, (C,), (C,)),
            {FUNCTION: N * C, DIV: N * C, MUL: 6 * N * C, FMA: N * C, ADD: (1 + 2) * N * C + N * C - C + N * C - C},
        ),
        # t = h · o · (1 - tanh² c) + g, four gates and f · t: 3 + 4 · 3 + 1 products; three sigmoids and two tanh again.
        (
            lambda c, x: sum(F.lstm(c, x)),
            ((N, OUT), (N, 4 * OUT)),
            {MUL: 16 * N * OUT, ADD: (3 + 1 + 4 + 1) * N * OUT, DIV: 3 * N * OUT, FUNCTION: 5 * N * OUT},
        ),
        (F.local_response_normalization, (IMAGE,), {MUL: 3 * SIZE, DIV: SIZE, FMA: SIZE, ADD: N * PLANE * (3 + 4 + 5 + 5 + 4 + 3) - SIZE}),
    ],
)  # fmt: skip
def test_gradients(function: Callable[..., Any], shapes: tuple[Any, ...], expected: Mapping[Operation, int]) -> None:
    arguments = [random(*shape) for shape in shapes]
    # The function alone works on variables here, too.
    forward = Counter(operations(lambda *given: function(*map(chainer.Variable, given)), *arguments))
    both = Counter(operations(with_gradients(function), *arguments))
    both.subtract(forward)
    assert +both == expected


class Small(chainer.Chain):
    """Two convolutions of eight channels each by itself, one of them where a gradient of the input is wanted; and a product."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.one = L.Convolution2D(8, 8, 3, pad=1, groups=8, nobias=True)
            self.two = L.Convolution2D(8, 8, 3, pad=1, groups=8, nobias=True)
            self.fc = L.Linear(8 * 8 * 8, 10)

    def forward(self, x: Any) -> Any:
        return self.fc(self.two(F.relu(self.one(x))))


CONV, DENSE = 8 * 8 * 8 * 9, 8 * 8 * 8 * 10


def by_place(record: Record) -> dict[tuple[str, str, str], int]:
    return {(cell.layer, cell.op, cell.function): cell.mac for cell in record.cells if cell.mac}


def test_forward_by_link() -> None:
    record = estimate_subject(subject(Small(), zeros(1, 8, 8, 8)))
    assert by_place(record) == {
        ("one", "Convolution2DFunction", FORWARD): CONV,
        ("two", "Convolution2DFunction", FORWARD): CONV,
        ("fc", "LinearFunction", FORWARD): DENSE,
    }
    assert [(layer.name, layer.kind, layer.params) for layer in record.layers] == [
        (ROOT, "Small", 0),
        ("fc", "Linear", 8 * 8 * 8 * 10 + 10),
        ("one", "Convolution2D", 8 * 9),
        ("two", "Convolution2D", 8 * 9),
    ]
    assert not record.unknown
    assert any("by a real run" in note for note in record.notes)


def test_a_training_step_with_its_real_gradients() -> None:
    record = estimate_subject(subject(Small(), zeros(1, 8, 8, 8)), train=True)
    assert by_place(record) == {
        ("one", "Convolution2DFunction", FORWARD): CONV,
        ("two", "Convolution2DFunction", FORWARD): CONV,
        ("fc", "LinearFunction", FORWARD): DENSE,
        # The input of the model needs no gradient.
        ("one", "Convolution2DFunction", BACKWARD): CONV,
        ("two", "Convolution2DFunction", BACKWARD): 2 * CONV,
        ("fc", "LinearFunction", BACKWARD): 2 * DENSE,
    }
    assert not record.unknown
    updates = [cell for cell in record.cells if cell.function == OPTIMIZER]
    assert [(cell.layer, cell.op) for cell in updates] == [(OUTSIDE, "SGDRule")]
    parameters = 2 * 8 * 9 + DENSE + 10
    assert [(ops.operation, ops.count) for ops in updates[0].operations] == [("fma", parameters)]


def test_activations_at_their_peak() -> None:
    class Steps(chainer.Chain):
        def forward(self, x: Any) -> Any:
            y = F.sigmoid(F.identity(x))
            y = F.reshape(y, (-1,))  # a view: the same memory
            z = F.tanh(y)
            del y
            return F.exp(F.exp(z))

    told = trace(subject(Steps(), zeros(3, 4)), lambda op: None, train=False)
    # z, its exponential, and that one's while it is made; the input, of which identity is a view, is not among them.
    assert told.activations == 3 * 3 * 4 * 4
    small = Small()
    told = trace(subject(small, zeros(1, 8, 8, 8)), lambda op: None, train=False)
    assert told.parameters == 4 * small.count_params()
    assert told.activations == 4 * 2 * 8 * 8 * 8


class Untouched(chainer.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.fc = L.Linear(4, 4)
            self.bn = L.BatchNormalization(4)
            self.lstm = L.LSTM(4, 4)

    def forward(self, x: Any) -> Any:
        if x is None:
            raise ValueError("no")
        return F.dropout(self.lstm(self.bn(self.fc(x))))


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_everything_is_left_as_it_was(train: bool, fails: bool) -> None:
    model = Untouched()
    weights = {name: parameter.array.copy() for name, parameter in model.namedparams()}
    mean = model.bn.avg_mean.copy()
    apply, forward = chainer.FunctionNode.apply, vars(chainer.Link)["__call__"]
    state = np.random.get_state()[1].tolist()  # type: ignore[union-attr]  # the tuple of an old generator
    given = None if fails else random(3, 4)
    if fails:
        with pytest.raises(ValueError, match="no"):
            trace(subject(model, given), lambda op: None, train=train)
    else:
        trace(subject(model, given), lambda op: None, train=train)
    assert all((parameter.array == weights[name]).all() for name, parameter in model.namedparams())
    assert (model.bn.avg_mean == mean).all()
    assert model.lstm.h is None
    assert all(parameter.grad is None or np.isnan(parameter.grad).all() for parameter in model.params())
    assert chainer.FunctionNode.apply is apply
    assert vars(chainer.Link)["__call__"] is forward
    assert not chainer.get_function_hooks()
    assert np.random.get_state()[1].tolist() == state  # type: ignore[union-attr]  # as above


class Doubled(chainer.FunctionNode):
    """Somebody's own, and inside of it one of Chainer's."""

    def forward(self, inputs: Any) -> Any:
        return (F.relu(inputs[0]).array * 2,)

    def backward(self, indexes: Any, gradients: Any) -> Any:
        return gradients


class OldStyle(chainer.Function):
    def forward(self, inputs: Any) -> Any:
        return (inputs[0] * 2,)

    def backward(self, inputs: Any, gradients: Any) -> Any:
        return (gradients[0] * 2,)


def test_functions_of_others_are_unknown_and_so_are_their_gradients() -> None:
    class Mine(chainer.Chain):
        def __init__(self) -> None:
            super().__init__()
            with self.init_scope():
                self.fc = L.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return OldStyle()(Doubled().apply((self.fc(x),))[0])

    record = estimate_subject(subject(Mine(), random(3, 4)), train=True)
    names = {unknown.name.rpartition("::")[2]: (unknown.count, unknown.layers) for unknown in record.unknown}
    assert names == {"Doubled": (1, (ROOT,)), "OldStyle": (1, (ROOT,)), "OldStyleBackward": (1, (ROOT,))}
    assert not any(unknown.name.startswith("chainer::") for unknown in record.unknown)
    # What runs inside of a function is part of it.
    assert not any(cell.op == "ReLU" for cell in record.cells)


def test_a_model_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import chainer, numpy\n"
        "def make():\n"
        "    return chainer.Sequential(chainer.links.Linear(8, 5), chainer.functions.relu), numpy.zeros((3, 8), 'float32')\n"
    )
    assert estimate_model(Request(f"{path}:make")).mac == 3 * 8 * 5


def test_an_input_that_the_model_rejects(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot run on 1x5x8x8"):
        estimate_model(Request("chainer:googlenet", shapes=("1x5x8x8",)))


class AlexNet(chainer.Chain):
    def __init__(self, groups: int) -> None:
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, 96, 11, 4)
            self.conv2 = L.Convolution2D(96, 256, 5, pad=2, groups=groups)
            self.conv3 = L.Convolution2D(256, 384, 3, pad=1)
            self.conv4 = L.Convolution2D(384, 384, 3, pad=1, groups=groups)
            self.conv5 = L.Convolution2D(384, 256, 3, pad=1, groups=groups)
            self.fc6 = L.Linear(256 * 6 * 6, 4096)
            self.fc7 = L.Linear(4096, 4096)
            self.fc8 = L.Linear(4096, 1000)

    def forward(self, x: Any) -> Any:
        for conv in (self.conv1, self.conv2):
            x = F.max_pooling_2d(F.local_response_normalization(F.relu(conv(x))), 3, 2)
        for conv in (self.conv3, self.conv4, self.conv5):
            x = F.relu(conv(x))
        x = F.max_pooling_2d(x, 3, 2)
        return self.fc8(F.dropout(F.relu(self.fc7(F.dropout(F.relu(self.fc6(x)))))))


def nin() -> Any:
    layers: list[Any] = []
    for window, channels, outputs, last, more in (
        (11, 3, 96, 96, {"stride": 4}),
        (5, 96, 256, 256, {"pad": 2}),
        (3, 256, 384, 384, {"pad": 1}),
        (3, 384, 1024, 1000, {"pad": 1}),
    ):
        for conv in (
            L.Convolution2D(channels, outputs, window, **more),
            L.Convolution2D(outputs, outputs, 1),
            L.Convolution2D(outputs, last, 1),
        ):
            layers += [conv, F.relu]
        if last != 1000:
            layers.append(lambda x: F.max_pooling_2d(x, 3, 2))
    return chainer.Sequential(*layers, lambda x: F.average_pooling_2d(x, x.shape[2:]))


@pytest.mark.parametrize(
    ("make", "shape", "mac", "params"),
    [
        pytest.param(lambda: AlexNet(2), (1, 3, 227, 227), 724_406_816, 60_965_224, id="AlexNet"),
        pytest.param(lambda: AlexNet(1), (1, 3, 227, 227), 1_135_256_096, 62_378_344, id="AlexNet in one group"),
        pytest.param(nin, (1, 3, 224, 224), 1_100_188_800, 7_595_176, id="NIN"),
        pytest.param(nin, (1, 3, 227, 227), 1_105_996_320, 7_595_176, id="NIN at 227"),
    ],
)
def test_networks_of_its_time(make: Callable[[], Any], shape: tuple[int, ...], mac: int, params: int) -> None:
    record = estimate_subject(subject(make(), zeros(*shape)))
    assert record.mac == mac
    assert sum(layer.params for layer in record.layers) == params
    assert not record.unknown


@pytest.mark.parametrize(
    ("name", "mac", "params"),
    [
        ("googlenet", 1_582_671_872, 13_378_280),
        ("resnet50", 3_857_973_248, 25_557_096),
        pytest.param("resnet101", 7_570_194_432, 44_549_224, marks=pytest.mark.slow),
        pytest.param("resnet152", 11_282_415_616, 60_192_872, marks=pytest.mark.slow),
        pytest.param("vgg16", 15_470_264_320, 138_357_544, marks=pytest.mark.slow),
    ],
)
def test_chainers_own_networks(name: str, mac: int, params: int) -> None:
    record = estimate_model(Request(f"chainer:{name}"))
    assert record.mac == mac
    assert sum(layer.params for layer in record.layers) == params
    assert not record.unknown


def test_a_batch() -> None:
    assert estimate_model(Request("chainer:googlenet", batch=2)).mac == 2 * 1_582_671_872


def test_every_function_is_counted_free_or_named_as_unknown() -> None:
    for found in walk_packages(chainer.functions.__path__, "chainer.functions."):
        import_module(found.name)

    def below(base: Any) -> set[Any]:
        return {each for child in base.__subclasses__() for each in (child, *below(child))}

    every = below(chainer.FunctionNode) | below(chainer.Function)
    names = {kind.__name__ for kind in every if kind.__module__.partition(".")[0] == "chainer"}
    unexplained = {name for name in names if lookup(f"chainer::{name}") is None}
    assert unexplained == UNKNOWN & names
    assert not UNKNOWN - names


def test_free_functions_have_a_reason() -> None:
    found = lookup("chainer::Reshape")
    assert isinstance(found, Free)
    assert found.reason
