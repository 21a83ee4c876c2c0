"""Functions of Chainer that make something of many numbers: sums, softmax, norms, losses."""

from __future__ import annotations

from flopwatch.events import Op
from flopwatch.flops.formulas import losses, norms, reductions
from flopwatch.flops.formulas.chainer.reading import first, inputs_of, numbers, result, rows_along, setting
from flopwatch.flops.formulas.convolution import Axis, met
from flopwatch.flops.formulas.registry import formula
from flopwatch.flops.formulas.work import Work, work


@formula("chainer::Sum", "chainer::SumTo")
def _sum(op: Op) -> Work:
    return reductions.summed(numbers(op), first(op).size, result(op).size)


@formula("chainer::Mean")
def _mean(op: Op) -> Work:
    return reductions.mean(numbers(op), first(op).size, result(op).size)


@formula("chainer::Prod")
def _prod(op: Op) -> Work:
    return reductions.multiplied(numbers(op), first(op).size, result(op).size)


@formula("chainer::Max", "chainer::Min", "chainer::ArgMax", "chainer::ArgMin")
def _extreme(op: Op) -> Work:
    return reductions.extreme(numbers(op), first(op).size, result(op).size)


@formula("chainer::LogSumExp")
def _logsumexp(op: Op) -> Work:
    return reductions.logsumexp(numbers(op), first(op).size, result(op).size)


@formula("chainer::Cumsum")
def _cumsum(op: Op) -> Work:
    return work(numbers(op), add=reductions.steps(first(op).size, rows_along(first(op), setting(op, "axis"))))


@formula("chainer::Cumprod")
def _cumprod(op: Op) -> Work:
    return work(numbers(op), mul=reductions.steps(first(op).size, rows_along(first(op), setting(op, "axis"))))


@formula("chainer::BatchL2NormSquared")
def _norm_squared(op: Op) -> Work:
    """Σ x² of each sample."""
    size = first(op).size
    return work(numbers(op), mul=size) + reductions.summed(numbers(op), size, result(op).size)


@formula("chainer::BatchL2NormSquaredGrad")
def _norm_squared_grad(op: Op) -> Work:
    """2 · x · g, the gradient of a sample doubled first."""
    return work(numbers(op), mul=first(op).size + inputs_of(op)[1].size)


@formula("chainer::NormalizeL2")
def _normalize(op: Op) -> Work:
    """x / (√Σ x² + eps)."""
    size = first(op).size
    rows = rows_along(first(op), setting(op, "axis", 1))
    return reductions.summed(numbers(op), size, rows) + work(numbers(op), mul=size, sqrt=rows, add=rows, div=size)


@formula("chainer::Softmax")
def _softmax(op: Op) -> Work:
    return reductions.softmax(numbers(op), first(op).size, rows_along(first(op), setting(op, "axis", 1)))


@formula("chainer::_SoftmaxGrad")
def _softmax_grad(op: Op) -> Work:
    return reductions.softmax_backward(numbers(op), first(op).size, rows_along(first(op), setting(op, "axis", 1)))


@formula("chainer::LogSoftmax")
def _log_softmax(op: Op) -> Work:
    return reductions.log_softmax(numbers(op), first(op).size, rows_along(first(op), setting(op, "axis", 1)))


@formula("chainer::LogSoftmaxGrad")
def _log_softmax_grad(op: Op) -> Work:
    return reductions.log_softmax_backward(numbers(op), first(op).size, rows_along(first(op), setting(op, "axis", 1)))


@formula("chainer::SoftmaxCrossEntropy")
def _softmax_cross_entropy(op: Op) -> Work:
    """The logarithm of the softmax, one number of it for each label, and their mean; classes may have weights, which are data."""
    size = first(op).size
    rows = rows_along(first(op), 1)
    reduced = losses.Reduction.MEAN if setting(op, "reduce", "mean") == "mean" else losses.Reduction.NONE
    return reductions.log_softmax(numbers(op), size, rows) + losses.negative_log_likelihood(numbers(op), rows, reduced)


@formula("chainer::_SoftmaxCrossEntropyGrad_NoDoubleBackprop")
def _softmax_cross_entropy_grad(op: Op) -> Work:
    """(exp(log-softmax) - 1 where the label is) · g, with g divided by the number of samples."""
    size = result(op).size
    return work(numbers(op), transcendental=size, add=rows_along(result(op), 1), mul=size + 1)


@formula("chainer::BatchNormalization")
def _batch_norm(op: Op) -> Work:
    """With the statistics of the batch; running ones are updated."""
    return norms.batch_norm(numbers(op), first(op).size, inputs_of(op)[1].size, training=True)


@formula("chainer::FixedBatchNormalization")
def _fixed_batch_norm(op: Op) -> Work:
    return norms.batch_norm(numbers(op), first(op).size, inputs_of(op)[1].size, training=False)


@formula("chainer::BatchNormalizationGrad")
def _batch_norm_grad(op: Op) -> Work:
    return norms.batch_norm_backward(numbers(op), first(op).size, inputs_of(op)[1].size, training=True)


@formula("chainer::FixedBatchNormalizationGrad")
def _fixed_batch_norm_grad(op: Op) -> Work:
    """The gradients of input, factor and addend; those of mean and variance come from these, a product or three a channel."""
    channels = inputs_of(op)[1].size
    made = norms.batch_norm_backward(numbers(op), first(op).size, channels, training=False)
    return made + work(numbers(op), mul=4 * channels)


@formula("chainer::LayerNormalization")
def _layer_norm(op: Op) -> Work:
    return norms.layer_norm(numbers(op), first(op).size, first(op).shape[0])


@formula("chainer::GroupNormalization")
def _group_norm(op: Op) -> Work:
    return norms.layer_norm(numbers(op), first(op).size, first(op).shape[0] * setting(op, "groups"))


@formula("chainer::_XHat")
def _normalised(op: Op) -> Work:
    """(x - mean) · 1/σ once more, both kept from forward."""
    return work(numbers(op), add=result(op).size, mul=result(op).size)


@formula("chainer::_ScaleShiftGrad")
def _scale_shift_grad(op: Op) -> Work:
    """g · weight for the normalised numbers; Σ g · y and Σ g for weight and bias of each channel."""
    size, channels = first(op).size, inputs_of(op)[1].size
    return work(numbers(op), mul=2 * size) + 2 * reductions.summed(numbers(op), size, channels)


@formula("chainer::_XHatGrad")
def _normalised_grad(op: Op) -> Work:
    """(g - mean g - y · mean(g · y)) · 1/σ in each row."""
    size, rows = result(op).size, result(op).shape[0]
    return 2 * reductions.mean(numbers(op), size, rows) + work(numbers(op), mul=2 * size, add=size, fma=size)


@formula("chainer::_MulInvStd")
def _scaled(op: Op) -> Work:
    return work(numbers(op), mul=result(op).size)


@formula("chainer::LocalResponseNormalization")
def _response_norm(op: Op) -> Work:
    """x / (k + alpha · Σ x²)^beta over n channels, cut off at the first and last."""
    size, channels, length = first(op).size, first(op).shape[1], setting(op, "n")
    windows = size // channels * met(Axis(channels, channels, length, 1, length // 2)) if channels else 0
    return norms.local_response_norm(numbers(op), size, windows)


@formula("chainer::LocalResponseNormalizationGrad")
def _response_norm_grad(op: Op) -> Work:
    """g · s^-beta - 2 · alpha · beta · x · Σ g · y / s, with s = k + alpha · Σ x² and s^-beta kept from forward."""
    size, channels, length = first(op).size, first(op).shape[1], setting(op, "n")
    windows = size // channels * met(Axis(channels, channels, length, 1, length // 2)) if channels else 0
    sums = reductions.summed(numbers(op), windows, size)
    return sums + work(numbers(op), mul=3 * size, div=size, fma=size)


@formula("chainer::EmbedIDGrad")
def _embed_grad(op: Op) -> Work:
    """Each gradient added to its row of the table."""
    return work(numbers(op), add=max(array.size for array in inputs_of(op)))


@formula("chainer::ScatterAdd")
def _scatter(op: Op) -> Work:
    """Each number of the second array added to its place in the first."""
    return work(numbers(op), add=inputs_of(op)[1].size)


@formula("chainer::RepeatGrad", "chainer::AsStridedGrad", "chainer::Im2ColGrad")
def _repeat_grad(op: Op) -> Work:
    """Gradients of all copies of a number added up."""
    return work(numbers(op), add=reductions.steps(first(op).size, result(op).size))
