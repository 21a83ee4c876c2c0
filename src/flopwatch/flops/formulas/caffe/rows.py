"""Layers of Caffe that make something of many numbers: norms, softmax, losses, reductions."""

from __future__ import annotations

from math import prod

from flopwatch.events import Op
from flopwatch.flops.classify import Free
from flopwatch.flops.formulas import losses, norms, pooling, reductions
from flopwatch.flops.formulas.caffe.reading import bottom_of, made, numbers, rows, setting
from flopwatch.flops.formulas.convolution import Axis, met
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, work


@formula("caffe::LRN")
def _response_norm(op: Op) -> Work:
    """x / (k + alpha / size · Σ x²)^beta over `local_size` channels, cut off at the first and last (Krizhevsky et al. 2012, 3.3).

    For each number a square, the sum of its window, a multiply-add, a power, a quotient. Within a channel Caffe takes the
    average of the squares in a window of rows and columns: k additions and a quotient for a window of k; the rest is the same.
    """
    bottom, length = bottom_of(op), setting(op, "local_size")
    size, pad = bottom.size, (length - 1) // 2
    channels, spatial = bottom.shape[1], bottom.shape[2:]
    if setting(op, "region") == "ACROSS_CHANNELS":
        windows = size // channels * met(Axis(channels, channels, length, 1, pad)) if channels else 0
        return norms.local_response_norm(numbers(op), size, windows)
    taken = prod(bottom.shape[:2]) * pooling.windows(spatial, spatial, (length,), (1,), (pad,))
    squares = pooling.average(numbers(op), taken, size)
    return squares + work(numbers(op), mul=size, fma=size, transcendental=size, div=size)


@formula("caffe::BatchNorm")
def _batch_norm(op: Op) -> Work:
    """(x - mean) / √(variance + eps) as one multiply-add, with a little for each channel; scale and shift are layers of their own.

    The kept sums of mean and variance are divided by their common factor first (one reciprocal, two products a channel).
    """
    bottom = bottom_of(op)
    channels, kept = setting(op, "mean").size, setting(op, "kept")
    result = norms.batch_norm(numbers(op), bottom.size, channels, training=not kept, weight=False, bias=False)
    return result + work(numbers(op), div=1, mul=2 * channels) if kept else result


@formula("caffe::MVN")
def _mean_variance(op: Op) -> Work:
    """(x - mean) / √variance of each row; without the variance the differences alone."""
    size, groups = bottom_of(op).size, setting(op, "rows")
    if setting(op, "variance"):
        return norms.layer_norm(numbers(op), size, groups, weight=False, bias=False)
    return reductions.mean(numbers(op), size, groups) + work(numbers(op), add=size)


@formula("caffe::Normalize")
def _normalize(op: Op) -> Work:
    """x / √(Σ x² + eps) · weight (arXiv:1506.04579)."""
    size, groups = bottom_of(op).size, setting(op, "rows")
    return reductions.summed(numbers(op), size, groups) + work(
        numbers(op), mul=2 * size, add=groups, sqrt=groups, div=size
    )


@formula("caffe::Softmax")
def _softmax(op: Op) -> Work:
    bottom = bottom_of(op)
    return reductions.softmax(numbers(op), bottom.size, rows(op))


@formula("caffe::SoftmaxWithLoss")
def _softmax_loss(op: Op) -> Work:
    """The softmax, the logarithm of the probability of each label, their mean."""
    labels = rows(op)
    logarithms = work(numbers(op), transcendental=labels)
    return (
        reductions.softmax(numbers(op), bottom_of(op).size, labels)
        + logarithms
        + reductions.mean(numbers(op), labels, 1)
    )


@formula("caffe::EuclideanLoss")
def _euclidean(op: Op) -> Work:
    """Σ (a - b)² / 2n."""
    return losses.pointwise("mse", numbers(op), bottom_of(op).size, losses.Reduction.MEAN)


@formula("caffe::SigmoidCrossEntropyLoss")
def _cross_entropy(op: Op) -> Work:
    return losses.binary_cross_entropy_with_logits(numbers(op), bottom_of(op).size, losses.Reduction.MEAN)


@formula("caffe::MultinomialLogisticLoss")
def _multinomial(op: Op) -> Work:
    """-log max(p, 1e-20) of each label's probability, their mean."""
    labels = bottom_of(op).shape[0]
    return work(numbers(op), minmax=labels, transcendental=labels) + reductions.mean(numbers(op), labels, 1)


@formula("caffe::Reduction")
def _reduction(op: Op) -> Work:
    """n - 1 additions for n numbers, of their squares n products more; a mean divides; times a factor that is not 1."""
    taken, results, operation = bottom_of(op).size, made(op), setting(op, "operation")
    factor = work(numbers(op), mul=0 if setting(op, "coeff") == 1 else results)
    if operation == "MEAN":
        return reductions.mean(numbers(op), taken, results) + factor
    squares = work(numbers(op), mul=taken if operation == "SUMSQ" else 0)
    return squares + reductions.summed(numbers(op), taken, results) + factor


@formula("caffe::ArgMax")
def _argmax(op: Op) -> Work | Free:
    """n - 1 minmax for the largest of n; more than one of them are found by sorting, which only compares."""
    if setting(op, "top_k") > 1:
        return Free("sorts")
    return reductions.extreme(numbers(op), bottom_of(op).size, setting(op, "rows"))
