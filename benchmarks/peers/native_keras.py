"""The cases as Keras layers and TensorFlow functions: a function, and the shapes of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Native = tuple[Any, tuple[tuple[int, ...], ...]]


def _layer(make: Callable[[Any], Any], shape: tuple[int, ...]) -> Callable[[], Native]:
    def build() -> Native:
        import keras

        return make(keras.layers), (shape,)

    return build


def _function(make: Callable[[Any], Any], *shapes: tuple[int, ...]) -> Callable[[], Native]:
    def build() -> Native:
        import tensorflow

        return make(tensorflow), shapes

    return build


def _application(name: str) -> Callable[[], Native]:
    def build() -> Native:
        import keras

        return getattr(keras.applications, name)(weights=None), ((1, 224, 224, 3),)

    return build


def _attention() -> Native:
    import keras

    layer = keras.layers.MultiHeadAttention(1, 100)
    return lambda x: layer(x, x), ((1, 50, 100),)


NATIVE: dict[str, Callable[[], Native]] = {
    "VGG-16 (Caffe)": _application("VGG16"),
    "ResNet-50 v1 (Caffe)": _application("ResNet50"),
    "ResNet-152 v1 (Caffe)": _application("ResNet152"),
    "conv2d": _layer(lambda layers: layers.Conv2D(8, 3, padding="same"), (1, 8, 8, 3)),
    "conv1d": _layer(lambda layers: layers.Conv1D(8, 3, padding="same"), (1, 8, 3)),
    "conv3d": _layer(lambda layers: layers.Conv3D(8, 3, padding="same"), (1, 8, 8, 8, 3)),
    "conv2d, groups": _layer(lambda layers: layers.Conv2D(8, 3, padding="same", groups=4), (1, 8, 8, 8)),
    "conv2d, depthwise": _layer(lambda layers: layers.DepthwiseConv2D(3, padding="same"), (1, 8, 8, 8)),
    "conv2d, dilation": _layer(lambda layers: layers.Conv2D(8, 3, padding="same", dilation_rate=2), (1, 8, 8, 3)),
    "conv2d, padding='same', even kernel": _layer(lambda layers: layers.Conv2D(8, 4, padding="same"), (1, 8, 8, 3)),
    "conv_transpose2d": _layer(lambda layers: layers.Conv2DTranspose(1, 2, strides=2), (1, 2, 2, 3)),
    "linear": _layer(lambda layers: layers.Dense(8), (5, 10, 3)),
    "torch.matmul": _function(lambda tf: tf.matmul, (2, 3, 4), (2, 4, 5)),
    "torch.mm": _function(lambda tf: tf.matmul, (3, 4), (4, 5)),
    "matmul, broadcast": _function(lambda tf: tf.matmul, (2, 1, 3, 4), (5, 4, 6)),
    "matrix by vector": _function(lambda tf: tf.linalg.matvec, (5, 8), (8,)),
    "einsum": _function(lambda tf: lambda q, k: tf.einsum("bhid,bhjd->bhij", q, k), (3, 7, 129, 33), (3, 7, 129, 33)),
    "MultiheadAttention": _attention,
    "LSTM": _layer(lambda layers: layers.LSTM(64), (1, 100, 64)),
    "GRU": _layer(lambda layers: layers.GRU(64), (1, 100, 64)),
    "RNN": _layer(lambda layers: layers.SimpleRNN(64), (1, 100, 64)),
}
