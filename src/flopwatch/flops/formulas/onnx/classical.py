"""ai.onnx.ml: linear models, scalers and support vectors; and the optimisers of ai.onnx.preview.training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Unknown
from flopwatch.flops.formulas.onnx.arguments import given, lines, result
from flopwatch.flops.formulas.reductions import softmax, steps
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Numbers, Work, numbers_of, work


def _numbers(array: Array) -> Numbers:
    """What is computed on: integers are made float32 first."""
    numbers = numbers_of(array)
    return numbers if numbers.dtype.floating else numbers_of(Array((), "float32"))


def _length(values: Any) -> int:
    return len(values) if isinstance(values, Sequence) and not isinstance(values, str) else 0


def _transformed(op: Op, numbers: Numbers, rows: int, scores: int) -> Work | Unknown:
    """What is made of the scores: nothing, or a function of each or of each row."""
    kind = op.arguments.get("post_transform") or "NONE"
    if kind == "NONE":
        return Work()
    if kind == "LOGISTIC":
        return work(numbers, transcendental=scores, add=scores, div=scores)
    if kind == "SOFTMAX":
        return softmax(numbers, scores, rows)
    return Unknown(f"{op.name} with {kind}")


@formula("ai.onnx.ml::LinearRegressor", "ai.onnx.ml::LinearClassifier")
def linear_model(op: Op) -> Work | Unknown:
    """X·Wᵀ + b for each target or class; the class with the highest score is chosen by comparisons."""
    array = given(op, "X")
    numbers = _numbers(array)
    features = array.shape[-1]
    rows = array.size // features if features else 0
    targets = _length(op.arguments.get("coefficients")) // features if features else 0
    scores = rows * targets
    after = _transformed(op, numbers, rows, scores)
    if isinstance(after, Unknown):
        return after
    bias = _length(op.arguments.get("intercepts"))
    return work(numbers, mac=scores * features, add=scores if bias else 0) + after


@formula("ai.onnx.ml::Scaler")
def scaler(op: Op) -> Work:
    """(x - offset)·scale."""
    array = given(op, "X")
    shifted = array.size if _length(op.arguments.get("offset")) else 0
    scaled = array.size if _length(op.arguments.get("scale")) else 0
    return work(_numbers(array), add=shifted, mul=scaled)


@formula("ai.onnx.ml::Normalizer")
def normalizer(op: Op) -> Work:
    """Each row by its largest, its sum of amounts, or its length."""
    array = given(op, "X")
    numbers = _numbers(array)
    rows = lines(array, -1)
    inner = steps(array.size, rows)
    kind = op.arguments.get("norm") or "MAX"
    divided = work(numbers, div=array.size)
    if kind == "MAX":
        return divided + work(numbers, minmax=inner)
    if kind == "L1":
        return divided + work(numbers, add=inner)
    return divided + work(numbers, mul=array.size, add=inner, sqrt=rows)


@formula("ai.onnx.ml::SVMRegressor", "ai.onnx.ml::SVMClassifier")
def support_vectors(op: Op) -> Work | Unknown:
    """Σ c_i·K(x, v_i) + rho of one target over all support vectors v_i, for linear, polynomial, RBF and sigmoid kernels K.

    Classifiers make a score for each pair of classes, and probabilities of them by iteration: unknown.
    """
    array = given(op, "X")
    if op.name.endswith("Classifier"):
        return Unknown(op.name)
    numbers = _numbers(array)
    features = array.shape[-1]
    rows = array.size // features if features else 0
    vectors = op.arguments.get("n_supports") or 0
    kernel = op.arguments.get("kernel_type") or "LINEAR"
    if not vectors:
        after = _transformed(op, numbers, rows, rows)
        return after if isinstance(after, Unknown) else after + work(numbers, mac=rows * features, add=rows)
    pairs = rows * vectors
    each = pairs * features
    if kernel == "LINEAR":
        made = work(numbers, mac=each)
    elif kernel == "RBF":
        made = work(numbers, add=each, fma=each, mul=pairs, transcendental=pairs)
    elif kernel in ("POLY", "SIGMOID"):
        made = work(numbers, mac=each, fma=pairs, transcendental=pairs)
    else:
        return Unknown(f"{op.name} with the kernel {kernel}")
    after = _transformed(op, numbers, rows, rows)
    return after if isinstance(after, Unknown) else made + work(numbers, mac=pairs, add=rows) + after


@formula("ai.onnx.preview.training::Momentum")
def momentum(op: Op) -> Work:
    """v = alpha·v + beta·(g + norm·x), x = x - r·v; Nesterov's adds another step of the gradient. Factors are made once."""
    size = sum(array.size for array in op.outputs[: len(op.outputs) // 2] if array is not None)
    regular = size if op.arguments.get("norm_coefficient") else 0
    nesterov = size if op.arguments.get("mode") == "nesterov" else 0
    return work(result(op), fma=2 * size + regular + nesterov, mul=size)


@formula("ai.onnx.preview.training::Adagrad")
def adagrad(op: Op) -> Work:
    """h = h + g², x = x - r·g/(√h + epsilon)."""
    size = sum(array.size for array in op.outputs[: len(op.outputs) // 2] if array is not None)
    regular = size if op.arguments.get("norm_coefficient") else 0
    return work(result(op), fma=size + regular, sqrt=size, add=2 * size, mul=size, div=size)


@formula("ai.onnx.preview.training::Adam")
def adam(op: Op) -> Work:
    """v = alpha·v + (1 - alpha)·g, h = beta·h + (1 - beta)·g², x = x - r·v/(√h + epsilon)."""
    size = sum(array.size for array in op.outputs[: len(op.outputs) // 3] if array is not None)
    regular = size if op.arguments.get("norm_coefficient") else 0
    after = size if op.arguments.get("norm_coefficient_post") else 0
    return work(result(op), fma=2 * size + regular, mul=4 * size + after, sqrt=size, add=2 * size, div=size)
