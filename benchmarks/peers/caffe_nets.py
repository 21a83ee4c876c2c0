"""The text of a deploy.prototxt for the networks of the days of Caffe, written from their publications."""

from __future__ import annotations

from collections.abc import Callable


class Net:
    """Layers one after another; each method gives the name of its result."""

    def __init__(self, name: str, side: int) -> None:
        self.lines = [f'name: "{name}"', f'input: "data" input_shape {{ dim: 1 dim: 3 dim: {side} dim: {side} }}']
        self._number = 0

    def add(self, kind: str, bottoms: str | list[str], parameters: str = "") -> str:
        """One layer of any type."""
        self._number += 1
        top = f"{kind.lower()}{self._number}"
        names = [bottoms] if isinstance(bottoms, str) else bottoms
        below = " ".join(f'bottom: "{each}"' for each in names)
        self.lines.append(f'layer {{ name: "{top}" type: "{kind}" {below} top: "{top}" {parameters} }}')
        return top

    def conv(self, bottom: str, outputs: int, kernel: int, stride: int = 1, pad: int = 0, more: str = "") -> str:
        """A convolution."""
        sizes = f"num_output: {outputs} kernel_size: {kernel} stride: {stride} pad: {pad} {more}"
        return self.add("Convolution", bottom, f"convolution_param {{ {sizes} }}")

    def relu(self, bottom: str) -> str:
        """A rectifier."""
        return self.add("ReLU", bottom)

    def pool(self, bottom: str, kernel: int, stride: int, pad: int = 0, kind: str = "MAX") -> str:
        """Pooling of a window."""
        sizes = f"pool: {kind} kernel_size: {kernel} stride: {stride} pad: {pad}"
        return self.add("Pooling", bottom, f"pooling_param {{ {sizes} }}")

    def dense(self, bottom: str, outputs: int) -> str:
        """A dense layer."""
        return self.add("InnerProduct", bottom, f"inner_product_param {{ num_output: {outputs} }}")

    def lrn(self, bottom: str) -> str:
        """Normalisation over five channels."""
        return self.add("LRN", bottom, "lrn_param { local_size: 5 }")

    def text(self) -> str:
        """The file."""
        return "\n".join(self.lines) + "\n"


def alexnet() -> str:
    """Krizhevsky et al. 2012, in two towers."""
    net = Net("AlexNet", 227)
    x = net.pool(net.lrn(net.relu(net.conv("data", 96, 11, 4))), 3, 2)
    x = net.pool(net.lrn(net.relu(net.conv(x, 256, 5, 1, 2, "group: 2"))), 3, 2)
    x = net.relu(net.conv(x, 384, 3, 1, 1))
    x = net.relu(net.conv(x, 384, 3, 1, 1, "group: 2"))
    x = net.pool(net.relu(net.conv(x, 256, 3, 1, 1, "group: 2")), 3, 2)
    x = net.relu(net.dense(net.relu(net.dense(x, 4096)), 4096))
    net.add("Softmax", net.dense(x, 1000))
    return net.text()


def vgg16() -> str:
    """Simonyan and Zisserman 2014, configuration D."""
    net, x = Net("VGG-16", 224), "data"
    for channels, times in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(times):
            x = net.relu(net.conv(x, channels, 3, 1, 1))
        x = net.pool(x, 2, 2)
    x = net.relu(net.dense(net.relu(net.dense(x, 4096)), 4096))
    net.add("Softmax", net.dense(x, 1000))
    return net.text()


def googlenet() -> str:
    """Szegedy et al. 2014, table 1, without the two classifiers on the way."""
    net = Net("GoogLeNet", 224)
    x = net.lrn(net.pool(net.relu(net.conv("data", 64, 7, 2, 3)), 3, 2))
    x = net.relu(net.conv(net.relu(net.conv(x, 64, 1)), 192, 3, 1, 1))
    x = net.pool(net.lrn(x), 3, 2)
    table = (
        (64, 96, 128, 16, 32, 32),
        (128, 128, 192, 32, 96, 64),
        None,
        (192, 96, 208, 16, 48, 64),
        (160, 112, 224, 24, 64, 64),
        (128, 128, 256, 24, 64, 64),
        (112, 144, 288, 32, 64, 64),
        (256, 160, 320, 32, 128, 128),
        None,
        (256, 160, 320, 32, 128, 128),
        (384, 192, 384, 48, 128, 128),
    )
    for row in table:
        if row is None:
            x = net.pool(x, 3, 2)
            continue
        one, three_before, three, five_before, five, pooled = row
        branches = [
            net.relu(net.conv(x, one, 1)),
            net.relu(net.conv(net.relu(net.conv(x, three_before, 1)), three, 3, 1, 1)),
            net.relu(net.conv(net.relu(net.conv(x, five_before, 1)), five, 5, 1, 2)),
            net.relu(net.conv(net.pool(x, 3, 1, 1), pooled, 1)),
        ]
        x = net.add("Concat", branches)
    net.add("Softmax", net.dense(net.pool(x, 7, 1, kind="AVE"), 1000))
    return net.text()


def resnet(depths: tuple[int, ...]) -> str:
    """He et al. 2015 with bottlenecks, as first published: the stride is in the first convolution of a block."""
    net = Net("ResNet", 224)

    def normed(x: str, outputs: int, kernel: int, stride: int, pad: int) -> str:
        x = net.add("BatchNorm", net.conv(x, outputs, kernel, stride, pad, "bias_term: false"))
        return net.add("Scale", x, "scale_param { bias_term: true }")

    x = net.pool(net.relu(normed("data", 64, 7, 2, 3)), 3, 2)
    for stage, depth in enumerate(depths):
        width = 64 << stage
        for block in range(depth):
            stride = 2 if stage and not block else 1
            shortcut = x if block else normed(x, 4 * width, 1, stride, 0)
            y = net.relu(normed(x, width, 1, stride, 0))
            y = normed(net.relu(normed(y, width, 3, 1, 1)), 4 * width, 1, 1, 0)
            x = net.relu(net.add("Eltwise", [shortcut, y]))
    net.add("Softmax", net.dense(net.pool(x, 7, 1, kind="AVE"), 1000))
    return net.text()


NETS: dict[str, Callable[[], str]] = {
    "AlexNet (Caffe)": alexnet,
    "GoogLeNet (Caffe)": googlenet,
    "VGG-16 (Caffe)": vgg16,
    "ResNet-50 v1 (Caffe)": lambda: resnet((3, 4, 6, 3)),
    "ResNet-152 v1 (Caffe)": lambda: resnet((3, 8, 36, 3)),
}
