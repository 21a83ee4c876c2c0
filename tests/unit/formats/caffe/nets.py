"""Prototxt text of well-known networks, written from their published architectures."""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]


class Net:
    """Adds layers one after the other; each is fed by the last blob unless `bottom` says otherwise, and its top has its name."""

    def __init__(self, *sizes: int, name: str = "net") -> None:
        dims = " ".join(f"dim: {size}" for size in sizes)
        self._parts = [
            f'name: "{name}"\nlayer {{ name: "data" type: "Input" top: "data" input_param {{ shape {{ {dims} }} }} }}'
        ]
        self.last = "data"

    def add(
        self, kind: str, name: str, *bottom: str, param: str = "", in_place: bool = False, **settings: object
    ) -> str:
        bottoms = bottom or (self.last,)
        top = bottoms[0] if in_place else name
        lines = [
            f'  name: "{name}"',
            f'  type: "{kind}"',
            *(f'  bottom: "{each}"' for each in bottoms),
            f'  top: "{top}"',
        ]
        if settings:
            lines.append(f"  {param} {{ {' '.join(f'{key}: {_written(value)}' for key, value in settings.items())} }}")
        self._parts.append("layer {\n" + "\n".join(lines) + "\n}")
        self.last = top
        return top

    def conv(self, name: str, outputs: int, kernel: int, *bottom: str, relu: bool = True, **more: object) -> str:
        settings = {"num_output": outputs, "kernel_size": kernel, **more}
        self.add("Convolution", name, *bottom, param="convolution_param", **settings)
        if relu:
            self.add("ReLU", f"relu_{name}", in_place=True)
        return self.last

    def dense(self, name: str, outputs: int, *, relu: bool = True, drop: bool = True) -> str:
        self.add("InnerProduct", name, param="inner_product_param", num_output=outputs)
        if relu:
            self.add("ReLU", f"relu_{name}", in_place=True)
        if drop:
            self.add("Dropout", f"drop_{name}", in_place=True)
        return self.last

    def pool(self, name: str, kernel: int, *bottom: str, method: str = "MAX", **more: object) -> str:
        return self.add("Pooling", name, *bottom, param="pooling_param", pool=method, kernel_size=kernel, **more)

    def norm(self, name: str) -> str:
        return self.add("LRN", name, param="lrn_param", local_size=5, alpha=0.0001, beta=0.75)

    @property
    def text(self) -> str:
        return "\n".join(self._parts) + "\n"


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def alexnet(batch: int = 1, groups: int = 2, *, norm_first: bool = True) -> str:
    """Krizhevsky et al. 2012, section 3.5; with the pooling before the normalisation it is CaffeNet."""
    net = Net(batch, 3, 227, 227)
    net.conv("conv1", 96, 11, stride=4)
    _norm_and_pool(net, "1", norm_first)
    net.conv("conv2", 256, 5, pad=2, group=groups)
    _norm_and_pool(net, "2", norm_first)
    net.conv("conv3", 384, 3, pad=1)
    net.conv("conv4", 384, 3, pad=1, group=groups)
    net.conv("conv5", 256, 3, pad=1, group=groups)
    net.pool("pool5", 3, stride=2)
    net.dense("fc6", 4096)
    net.dense("fc7", 4096)
    net.dense("fc8", 1000, relu=False, drop=False)
    net.add("Softmax", "prob")
    return net.text


def _norm_and_pool(net: Net, number: str, norm_first: bool) -> None:
    if norm_first:
        net.norm(f"norm{number}")
    net.pool(f"pool{number}", 3, stride=2)
    if not norm_first:
        net.norm(f"norm{number}")


def nin(size: int = 224) -> str:
    """Network in network for ImageNet (Lin et al. 2013): three convolutions of one pixel after each window."""
    net = Net(1, 3, size, size)
    for number, (window, outputs, last, more) in enumerate(
        (
            (11, 96, 96, {"stride": 4}),
            (5, 256, 256, {"pad": 2}),
            (3, 384, 384, {"pad": 1}),
            (3, 1024, 1000, {"pad": 1}),
        ),
        1,
    ):
        net.conv(f"conv{number}", outputs, window, **more)
        net.conv(f"cccp{2 * number - 1}", outputs, 1)
        net.conv(f"cccp{2 * number}", last, 1)
        if number < 4:
            net.pool(f"pool{number}", 3, stride=2)
    net.add("Pooling", "pool4", param="pooling_param", pool="AVE", global_pooling=True)
    return net.text


# 1x1, 3x3 reduced, 3x3, 5x5 reduced, 5x5, pooled and projected (Szegedy et al. 2014, table 1).
INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def googlenet(batch: int = 1, size: int = 224, *, auxiliary: bool = False) -> str:
    """Szegedy et al. 2014, with or without the two classifiers at 4a and 4d."""
    net = Net(batch, 3, size, size)
    net.conv("conv1", 64, 7, pad=3, stride=2)
    net.pool("pool1", 3, stride=2)
    net.norm("norm1")
    net.conv("conv2_reduce", 64, 1)
    net.conv("conv2", 192, 3, pad=1)
    net.norm("norm2")
    net.pool("pool2", 3, stride=2)
    for name, (one, three_reduced, three, five_reduced, five, projected) in INCEPTIONS.items():
        source = net.last
        parts = [net.conv(f"{name}_1x1", one, 1, source)]
        net.conv(f"{name}_3x3_reduce", three_reduced, 1, source)
        parts.append(net.conv(f"{name}_3x3", three, 3, pad=1))
        net.conv(f"{name}_5x5_reduce", five_reduced, 1, source)
        parts.append(net.conv(f"{name}_5x5", five, 5, pad=2))
        net.pool(f"{name}_pool", 3, source, stride=1, pad=1)
        parts.append(net.conv(f"{name}_pool_proj", projected, 1))
        joined = net.add("Concat", name, *parts)
        if auxiliary and name in ("4a", "4d"):
            net.pool(f"{name}_loss_pool", 5, method="AVE", stride=3)
            net.conv(f"{name}_loss_conv", 128, 1)
            net.dense(f"{name}_loss_fc", 1024)
            net.dense(f"{name}_loss_classifier", 1000, relu=False, drop=False)
            net.last = joined
        if name in ("3b", "4e"):
            net.pool(f"pool{name[0]}", 3, stride=2)
    net.add("Pooling", "pool5", param="pooling_param", pool="AVE", global_pooling=True)
    net.add("Dropout", "drop", in_place=True)
    net.dense("classifier", 1000, relu=False, drop=False)
    net.add("Softmax", "prob")
    return net.text


def vgg16(batch: int = 1) -> str:
    """Simonyan and Zisserman 2014, configuration D."""
    net = Net(batch, 3, 224, 224)
    for block, (count, outputs) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), 1):
        for number in range(1, count + 1):
            net.conv(f"conv{block}_{number}", outputs, 3, pad=1)
        net.pool(f"pool{block}", 2, stride=2)
    net.dense("fc6", 4096)
    net.dense("fc7", 4096)
    net.dense("fc8", 1000, relu=False, drop=False)
    net.add("Softmax", "prob")
    return net.text


def resnet(*blocks: int, first_bias: bool = False) -> str:
    """He et al. 2015, version 1 (the first convolution of a block strides), batch norm and scale apart; 50 layers are 3, 4, 6, 3."""
    net = Net(1, 3, 224, 224)
    _normalised(net, "conv1", 64, 7, bias_term=first_bias, stride=2, pad=3)
    net.add("ReLU", "relu_conv1", in_place=True)
    net.pool("pool1", 3, stride=2)
    for stage, count in enumerate(blocks):
        width = 64 * 2**stage
        for number in range(count):
            source, name = net.last, f"res{stage + 2}_{number + 1}"
            stride = 2 if stage and not number else 1
            beside = source if number else _normalised(net, f"{name}_0", 4 * width, 1, source, stride=stride)
            _normalised(net, f"{name}_1", width, 1, source, stride=stride)
            net.add("ReLU", f"{name}_1_relu", in_place=True)
            _normalised(net, f"{name}_2", width, 3, pad=1)
            net.add("ReLU", f"{name}_2_relu", in_place=True)
            _normalised(net, f"{name}_3", 4 * width, 1)
            net.add("Eltwise", name, beside, net.last)
            net.add("ReLU", f"{name}_relu", in_place=True)
    net.pool("pool5", 7, method="AVE", stride=1)
    net.dense("fc1000", 1000, relu=False, drop=False)
    net.add("Softmax", "prob")
    return net.text


def _normalised(
    net: Net, name: str, outputs: int, kernel: int, *bottom: str, bias_term: bool = False, **more: int
) -> str:
    net.conv(name, outputs, kernel, *bottom, relu=False, bias_term=bias_term, **more)
    net.add("BatchNorm", f"bn_{name}", in_place=True, param="batch_norm_param", use_global_stats=True)
    return net.add("Scale", f"scale_{name}", in_place=True, param="scale_param", bias_term=True)


def squeezenet(*, later: bool = False) -> str:
    """Iandola et al. 2016, version 1.0, or 1.1 (`later`), which begins smaller and pools earlier."""
    net = Net(1, 3, 227, 227)
    net.conv("conv1", *((64, 3) if later else (96, 7)), stride=2)
    net.pool("pool1", 3, stride=2)
    pools = (3, 5) if later else (4, 8)
    for number, (squeezed, expanded) in enumerate(
        ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)), 2
    ):
        source = net.conv(f"fire{number}_squeeze", squeezed, 1)
        parts = [
            net.conv(f"fire{number}_1x1", expanded, 1, source),
            net.conv(f"fire{number}_3x3", expanded, 3, source, pad=1),
        ]
        net.add("Concat", f"fire{number}", *parts)
        if number in pools:
            net.pool(f"pool{number}", 3, stride=2)
    net.add("Dropout", "drop9", in_place=True)
    net.conv("conv10", 1000, 1, **({} if later else {"pad": 1}))
    net.add("Pooling", "pool10", param="pooling_param", pool="AVE", global_pooling=True)
    net.add("Softmax", "prob")
    return net.text
