"""The cases as functions of JAX: a function, and the shapes of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Native = tuple[Any, tuple[tuple[int, ...], ...]]


def _convolution(
    window: tuple[int, ...], inputs: tuple[int, ...], weights: tuple[int, ...], groups: int = 1, dilation: int = 1
) -> Callable[[], Native]:
    """`inputs` and `weights` have the channels first."""

    def build() -> Native:
        from jax import lax

        def convolve(x: Any, w: Any) -> Any:
            return lax.conv_general_dilated(
                x, w, window, "SAME", rhs_dilation=(dilation,) * len(window), feature_group_count=groups
            )

        return convolve, (inputs, weights)

    return build


def _numpy(make: Callable[[Any], Any], *shapes: tuple[int, ...]) -> Callable[[], Native]:
    def build() -> Native:
        import jax.numpy

        return make(jax.numpy), shapes

    return build


def _attention() -> Native:
    import jax

    def attend(x: Any, q: Any, k: Any, v: Any, o: Any) -> Any:
        weights = jax.nn.softmax((x @ q) @ (x @ k).T / 10.0)
        return weights @ (x @ v) @ o

    return attend, ((50, 100), *[(100, 100)] * 4)


def _dot_product_attention() -> Native:
    import jax

    return jax.nn.dot_product_attention, ((1, 64, 12, 64),) * 3


def _lstm() -> Native:
    import jax
    from jax import lax

    def run(x: Any, inner: Any, outer: Any) -> Any:
        def step(state: Any, each: Any) -> Any:
            hidden, cell = state
            i, f, g, o = jax.numpy.split(each @ inner + hidden @ outer, 4)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jax.numpy.tanh(g)
            return (jax.nn.sigmoid(o) * jax.numpy.tanh(cell), cell), None

        zero = jax.numpy.zeros(64)
        return lax.scan(step, (zero, zero), x)[0][0]

    return run, ((100, 64), (64, 4 * 64), (64, 4 * 64))


NATIVE: dict[str, Callable[[], Native]] = {
    "conv2d": _convolution((1, 1), (1, 3, 8, 8), (8, 3, 3, 3)),
    "conv1d": _convolution((1,), (1, 3, 8), (8, 3, 3)),
    "conv2d, groups": _convolution((1, 1), (1, 8, 8, 8), (8, 2, 3, 3), groups=4),
    "conv2d, depthwise": _convolution((1, 1), (1, 8, 8, 8), (8, 1, 3, 3), groups=8),
    "linear": _numpy(lambda np: np.matmul, (50, 3), (3, 8)),
    "torch.matmul": _numpy(lambda np: np.matmul, (2, 3, 4), (2, 4, 5)),
    "torch.mm": _numpy(lambda np: np.matmul, (3, 4), (4, 5)),
    "matmul, broadcast": _numpy(lambda np: np.matmul, (2, 1, 3, 4), (5, 4, 6)),
    "matrix by vector": _numpy(lambda np: np.matmul, (5, 8), (8,)),
    "torch.dot": _numpy(lambda np: np.dot, (8,), (8,)),
    "einsum": _numpy(lambda np: lambda q, k: np.einsum("bhid,bhjd->bhij", q, k), (3, 7, 129, 33), (3, 7, 129, 33)),
    "SDPA": _dot_product_attention,
    "MultiheadAttention": _attention,
    "LSTM": _lstm,
}
