"""Scans, scatters, segments, bags, histograms; and what sorts and searches, which only compares."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import Work, accumulation, formula, free, work
from flopwatch.flops.formulas.aten.arguments import result_of
from flopwatch.flops.formulas.work import numbers_of

_HOW = {"sum": "sum", "mean": "mean", "prod": "prod", "amax": "max", "amin": "max", "max": "max", "min": "max"}
_MODES = ("sum", "mean", "max")  # of bags

free(
    "compares and moves",
    "aten::sort",
    "aten::argsort",
    "aten::msort",
    "aten::topk",
    "aten::kthvalue",
    "aten::median",
    "aten::nanmedian",
    "aten::mode",
    "aten::unique_dim",
    "aten::unique_consecutive",
    "aten::unique_dim_consecutive",
    "aten::_unique",
    "aten::_unique2",
)


@formula("aten::cumsum")
def cumsum(op: Op) -> Work:
    """Sums along `dim`."""
    return _scan(op, "sum")


@formula("aten::cumprod")
def cumprod(op: Op) -> Work:
    """Products along `dim`."""
    return _scan(op, "prod")


@formula("aten::cummax", "aten::cummin", "aten::_cummax_helper", "aten::_cummin_helper")
def cummax(op: Op) -> Work:
    """Largest or least so far along `dim`, and where it was."""
    return _scan(op, "max")


@formula("aten::logcumsumexp", "aten::_logcumsumexp")
def logcumsumexp(op: Op) -> Work:
    """Logarithms of the sums of exponentials along `dim`."""
    return _scan(op, "logsumexp")


@formula("aten::scatter_add")
def scatter_add(op: Op) -> Work:
    """One number of `src` for each of `index`."""
    return accumulation.scattered(numbers_of(op.arguments["self"]), op.arguments["index"].size, "sum")


@formula("aten::scatter")
def scatter(op: Op) -> Work | Free:
    """Numbers written to places; or, with `reduce` "add" or "multiply", one of `src` for each of `index` joined to what is there."""
    given = op.arguments
    if not given.get("reduce"):
        return Free("moves and selects data")
    how = {"add": "sum", "multiply": "prod"}[given["reduce"]]
    return accumulation.scattered(numbers_of(given["self"]), given["index"].size, how)


@formula("aten::scatter_reduce")
def scatter_reduce(op: Op) -> Work:
    """One number of `src` for each of `index`, joined as `reduce` says."""
    given = op.arguments
    return accumulation.scattered(
        numbers_of(given["self"]), given["index"].size, _HOW[given["reduce"]], given["self"].size
    )


@formula("aten::index_add")
def index_add(op: Op) -> Work:
    """Rows of `source`, times `alpha` unless it is 1."""
    given = op.arguments
    scaled = given.get("alpha", 1) != 1
    return accumulation.scattered(numbers_of(given["self"]), given["source"].size, "sum", scaled=scaled)


@formula("aten::index_reduce")
def index_reduce(op: Op) -> Work:
    """Rows of `source`, joined as `reduce` says."""
    given = op.arguments
    return accumulation.scattered(
        numbers_of(given["self"]), given["source"].size, _HOW[given["reduce"]], given["self"].size
    )


@formula("aten::index_put", "aten::_index_put_impl", "aten::_unsafe_index_put")
def index_put(op: Op) -> Work | Free:
    """`values` written to places, or added to them with `accumulate`."""
    if not op.arguments.get("accumulate"):
        return Free("moves and selects data")
    return accumulation.scattered(numbers_of(op.arguments["self"]), _indexed(op), "sum")


@formula("aten::_unsafe_masked_index_put_accumulate")
def masked_index_put(op: Op) -> Work:
    """`values` added to places; dense: as if nothing were masked."""
    return accumulation.scattered(numbers_of(op.arguments["self"]), op.arguments["values"].size, "sum")


@formula("aten::put")
def put(op: Op) -> Work | Free:
    """`source` written to places of the flattened tensor, or added to them with `accumulate`."""
    if not op.arguments.get("accumulate"):
        return Free("moves and selects data")
    return accumulation.scattered(numbers_of(op.arguments["self"]), op.arguments["index"].size, "sum")


@formula("aten::segment_reduce")
def segment_reduce(op: Op) -> Work:
    """Rows of each segment of `data` joined, along `axis`, the first by default."""
    given, made = op.arguments, result_of(op)
    return accumulation.grouped(
        numbers_of(given["data"]),
        given["data"].size,
        made.size,
        1,
        _HOW[given["reduce"]],
        initial=given.get("initial") is not None,
    )


@formula("aten::_segment_reduce_backward")
def segment_reduce_backward(op: Op) -> Work | Free:
    """Sum: copies. Mean and extreme: a quotient for each segment. Product: the gradient times the product, by each factor."""
    given = op.arguments
    numbers, rows, groups = numbers_of(given["grad"]), given["data"].size, given["grad"].size
    if given["reduce"] == "sum":
        return Free("moves and selects data")
    if given["reduce"] == "prod":
        return work(numbers, mul=rows, div=rows)
    return work(numbers, div=groups)


@formula("aten::_embedding_bag", "aten::_embedding_bag_forward_only", "aten::embedding_bag")
def embedding_bag(op: Op) -> Work:
    """Rows of `weight` joined to one for each bag; dense: every bag has a row, none is padding."""
    given, made = op.arguments, result_of(op)
    bags, inner = made.shape
    weighted = given.get("per_sample_weights") is not None
    mode = _MODES[given.get("mode", 0)]
    return accumulation.grouped(numbers_of(given["weight"]), given["indices"].size, bags, inner, mode, weighted)


@formula("aten::_embedding_bag_backward", "aten::_embedding_bag_dense_backward", "aten::_embedding_bag_sparse_backward")
def embedding_bag_backward(op: Op) -> Work:
    """A row of the gradient is added for each index: sums.

    Mean: by the size of the bag first (a quotient each row of the gradient). Largest: one number for each of the gradient. Weighted
    or scaled by frequency: one product more for each number.
    """
    given = op.arguments
    gradient: Array = given["grad"]
    bags, inner = gradient.shape
    numbers, mode = numbers_of(gradient), _MODES[given.get("mode", 0)]
    if mode == "max":
        return work(numbers, add=gradient.size)
    rows = given["indices"].size * inner
    weighted = (given.get("per_sample_weights") is not None) + bool(given.get("scale_grad_by_freq"))
    return work(numbers, add=rows, mul=weighted * rows, div=bags * inner if mode == "mean" else 0)


@formula("aten::_embedding_bag_per_sample_weights_backward")
def embedding_bag_weights_backward(op: Op) -> Work:
    """The product of a row of the gradient and one of the weight for each index."""
    given = op.arguments
    rows, inner = given["indices"].size, given["grad"].shape[-1]
    return work(given["grad"], mul=rows if inner else 0, fma=rows * max(inner - 1, 0))


@formula("aten::embedding_dense_backward", "aten::embedding_backward")
def embedding_dense_backward(op: Op) -> Work:
    """A row of the gradient is added for each index, by how often that occurs if asked; dense: none is padding."""
    gradient: Array = op.arguments["grad_output"] if "grad_output" in op.arguments else op.arguments["grad"]
    scaled = gradient.size if op.arguments.get("scale_grad_by_freq") else 0
    return work(gradient, add=gradient.size, div=scaled)


@formula("aten::histc")
def histc(op: Op) -> Work:
    """Even bins from `min` to `max`, or over all numbers if these are the same."""
    given = op.arguments
    ranged = given.get("min", 0) != given.get("max", 0)
    return accumulation.histogram(
        numbers_of(given["self"]), given["self"].size, given.get("bins", 100), even=True, ranged=ranged
    )


@formula("aten::histogram")
def histogram(op: Op) -> Work:
    """A number of even bins, or bins with given borders."""
    given, made = op.arguments, result_of(op)
    even = not isinstance(given.get("bins", 100), Array)
    return accumulation.histogram(
        numbers_of(given["self"]),
        given["self"].size,
        made.size,
        even=even,
        ranged=not even or given.get("range") is not None,
        density=bool(given.get("density")),
    )


@formula("aten::_histogramdd_from_bin_cts", "aten::_histogramdd_from_bin_tensors")
def histogram_of_points(op: Op) -> Work | Unknown:
    """Points (n, axes): the place along each axis, and one addition for each point; a density is unknown."""
    given: Array = op.arguments["self"]
    if op.arguments.get("density"):
        return Unknown(op.name)
    points, axes = given.shape
    places = given.size if "cts" in op.name else 0
    return work(given, add=points + places, mul=places, div=axes if places else 0)


@formula("aten::_histogramdd_bin_edges")
def histogram_borders(op: Op) -> Work | Free:
    """The least and largest along each axis, unless a range is given."""
    given: Array = op.arguments["self"]
    if op.arguments.get("range") is not None:
        return Free("makes constants from its arguments")
    points, axes = given.shape
    return work(given, minmax=2 * max(points - 1, 0) * axes)


@formula("aten::_coalesce")
def coalesce(op: Op) -> Work | Unknown:
    """Values at the same place are added up; unknown where nobody told how many values there were and are."""
    given, made = op.arguments["self"], result_of(op)
    if given.stored is None or made.stored is None:
        return Unknown(op.name)
    return work(given, add=given.stored - made.stored)


@formula("aten::_sparse_csr_sum", "aten::_sparse_csr_prod", "aten::_sparse_sum")
def sparse_reduction(op: Op) -> Work | Unknown:
    """Values along some dimensions joined to one; unknown where nobody told how many values there are."""
    given, made = op.arguments["self"], result_of(op)
    if given.stored is None:
        return Unknown(op.name)
    rows = made.size if made.stored is None else made.stored
    how = "sum" if op.name.endswith("sum") else "prod"
    return accumulation.grouped(numbers_of(made), given.stored, min(rows, given.stored), 1, how)


free("spreads what it was given", "aten::_sparse_sum_backward", "aten::_nested_sum_backward")


@formula("aten::bincount")
def bincount(op: Op) -> Work | Free:
    """Weights added up by index; without weights, integers are counted."""
    weights: Array | None = op.arguments.get("weights")
    return Free("works on integers") if weights is None else work(weights, add=weights.size)


def _scan(op: Op, how: str) -> Work:
    given: Array = op.arguments["self"]
    made = next((each for each in op.outputs if each is not None), given)
    length = given.shape[op.arguments["dim"]] if given.shape else 1
    return accumulation.scan(numbers_of(made), given.size // length if length else 0, length, how)


def _indexed(op: Op) -> int:
    """Places that a list of indices names: what they broadcast to, times the dimensions that none of them indexes."""
    given: Array = op.arguments["self"]
    indices: Sequence[Array | None] = op.arguments["indices"]
    shapes = [each.shape for each in indices if each is not None]
    depth = max(map(len, shapes), default=0)
    padded = [(1,) * (depth - len(shape)) + shape for shape in shapes]
    places: int = prod(next((size for size in sizes if size != 1), 1) for sizes in zip(*padded, strict=True))
    if any(each is not None and each.dtype in ("bool", "uint8") for each in indices):
        # As many as are true, which only the values tell: all of them, at most.
        values: Array = op.arguments["values"]
        return prod(values.shape)
    left = [
        size for size, each in zip(given.shape, [*indices, *[None] * len(given.shape)], strict=False) if each is None
    ]
    return places * prod(left)
