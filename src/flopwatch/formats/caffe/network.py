"""A network as a prototxt describes it: inputs, and the layers of one phase with the blobs that they take and give.

Three generations of the format are read as one: `layer { type: "Convolution" }`, `layers { type: CONVOLUTION }`, and the first one,
`layers { layer { type: "conv" } }`, whose settings stand beside the type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from flopwatch.formats.caffe.message import Field, Message, Place, Word

# Names in upper case whose modern form is not just without underscores.
_ENUMERATORS = {
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "LRN": "LRN",
    "MVN": "MVN",
    "PRELU": "PReLU",
    "RELU": "ReLU",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "TANH": "TanH",
}
# The numbers behind those names, which the format allows as well.
_NUMBERED = {
    "1": "ACCURACY",
    "2": "BNLL",
    "3": "CONCAT",
    "4": "CONVOLUTION",
    "5": "DATA",
    "6": "DROPOUT",
    "7": "EUCLIDEAN_LOSS",
    "8": "FLATTEN",
    "14": "INNER_PRODUCT",
    "15": "LRN",
    "17": "POOLING",
    "18": "RELU",
    "19": "SIGMOID",
    "20": "SOFTMAX",
    "21": "SOFTMAX_LOSS",
    "22": "SPLIT",
    "23": "TANH",
    "25": "ELTWISE",
    "26": "POWER",
    "33": "SLICE",
    "39": "DECONVOLUTION",
}
_OLDEST = {
    "bnll": "BNLL",
    "concat": "Concat",
    "conv": "Convolution",
    "data": "Data",
    "dropout": "Dropout",
    "euclidean_loss": "EuclideanLoss",
    "flatten": "Flatten",
    "im2col": "Im2col",
    "images": "ImageData",
    "innerproduct": "InnerProduct",
    "lrn": "LRN",
    "padding": "Padding",
    "pool": "Pooling",
    "relu": "ReLU",
    "sigmoid": "Sigmoid",
    "softmax": "Softmax",
    "softmax_loss": "SoftmaxWithLoss",
    "split": "Split",
    "tanh": "TanH",
}
_RENAMED = {"biasterm": "bias_term", "kernelsize": "kernel_size", "batchsize": "batch_size", "cropsize": "crop_size"}


@dataclass(frozen=True)
class Input:
    """A blob that is fed in from outside; its sizes are empty where the file does not tell them."""

    name: str
    sizes: tuple[int, ...]
    place: Place


@dataclass(frozen=True)
class Layer:
    """One layer; its type in the spelling of today."""

    name: str
    type: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    message: Message

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.message.place

    @property
    def named(self) -> str:
        """How error messages call it."""
        return f"layer {self.name!r} ({self.type})"

    def settings(self, name: str) -> Message:
        """The message of its own settings: convolution_param, …; those of the oldest format stand in the layer itself."""
        inner = self.message.message("layer") if "layer" in self.message else None
        if inner is None:
            return self.message.message(name)
        renamed = tuple(field._replace(name=_RENAMED.get(field.name, field.name)) for field in inner)
        return Message(name, inner.place, renamed)

    @property
    def shared(self) -> tuple[str, ...]:
        """The names under which its weights are shared with other layers, in order; empty for one that is its own."""
        names: list[str] = []
        for field in self.message.all("param"):
            names.append(field.value.word("name") if isinstance(field.value, Message) else str(field.value))
        return tuple(names)


@dataclass(frozen=True)
class Network:
    """Inputs that the file itself declares, the layers of the phase, and the data layers of the other phase."""

    name: str
    inputs: tuple[Input, ...]
    layers: tuple[Layer, ...]
    others: tuple[Layer, ...] = ()


def read(message: Message, phase: str = "TEST") -> Network:
    """The network of a phase; raises UsageError where the file makes no sense as one."""
    found = [_layer(field) for field in message if field.name in ("layer", "layers")]
    if not found:
        todo = ""
        if "net" in message or "train_net" in message or "base_lr" in message:
            todo = f"It describes training; give the file of the network: {message.word('net') or message.word('train_net')}."
        message.place.refuse("there is no layer in this file", todo=todo)
    state = message.message("state")
    kept = [layer for layer in found if _takes_part(layer.message, phase, state)]
    left = tuple(layer for layer in found if layer not in kept)
    if not kept:
        message.place.refuse(f"no layer takes part in phase {phase}")
    return Network(message.word("name"), _inputs(message), _told_apart(kept), left)


def _layer(field: Field) -> Layer:
    message = field.value
    if not isinstance(message, Message):
        field.place.refuse(f"{field.name!r} must be a message in braces")
    told = message.message("layer") if "layer" in message else message
    written = told.one("type")
    if written is None:
        message.place.refuse(f"layer {told.word('name')!r} does not say its type")
    kind = told.word("type")
    if told is not message:
        kind = _OLDEST.get(kind, kind)
    elif isinstance(written.value, Word) or kind.isdigit():
        kind = _NUMBERED.get(kind, kind)
        kind = _ENUMERATORS.get(
            kind, "".join(part.capitalize() for part in kind.split("_")) if kind.isupper() else kind
        )
    tops = message.words("top")
    name = told.word("name") or (tops[0] if tops else f"line {message.place.line}")
    return Layer(name, kind, message.words("bottom"), tops, message)


def _takes_part(message: Message, phase: str, state: Message) -> bool:
    includes, excludes = message.messages("include"), message.messages("exclude")
    if includes:
        return any(_meets(rule, phase, state) for rule in includes)
    return not any(_meets(rule, phase, state) for rule in excludes)


def _meets(rule: Message, phase: str, state: Message) -> bool:
    """Whether a rule on phases, levels and stages holds in the state of the net."""
    if rule.choice("phase", ("TRAIN", "TEST"), phase) != phase:
        return False
    level, stages = state.integer("level", 0, least=-(2**31)), state.words("stage")
    low = rule.integer("min_level", level, least=-(2**31))
    high = rule.integer("max_level", level, least=-(2**31))
    wanted = all(stage in stages for stage in rule.words("stage"))
    return low <= level <= high and wanted and not any(stage in stages for stage in rule.words("not_stage"))


def _inputs(message: Message) -> tuple[Input, ...]:
    fields = message.all("input")
    names = message.words("input")
    shapes = [shape.integers("dim", least=1) for shape in message.messages("input_shape")]
    dims = message.integers("input_dim", least=1)
    if not shapes and dims:
        # Four for each input, or all that there are for a single one.
        each = len(dims) if len(names) == 1 else 4
        shapes = [dims[start : start + each] for start in range(0, len(dims), each)]
    if shapes and len(shapes) != len(names):
        message.all("input_shape" if "input_shape" in message else "input_dim")[0].place.refuse(
            f"there are {len(names)} inputs, but shapes for {len(shapes)}",
            seen=f"Inputs: {', '.join(names) or 'none'}.",
        )
    if dims and "input_shape" not in message and any(len(shape) < 4 and len(names) > 1 for shape in shapes):
        message.all("input_dim")[-1].place.refuse("each input takes four input_dim", seen=f"There are {len(dims)}.")
    return tuple(
        Input(name, shape, field.place)
        for name, shape, field in zip(names, shapes or [()] * len(names), fields, strict=True)
    )


def _told_apart(layers: list[Layer]) -> tuple[Layer, ...]:
    seen: set[str] = set()
    result: list[Layer] = []
    for layer in layers:
        if layer.name in seen:
            layer = replace(layer, name=f"{layer.name} (line {layer.place.line})")
        seen.add(layer.name)
        result.append(layer)
    return tuple(result)
