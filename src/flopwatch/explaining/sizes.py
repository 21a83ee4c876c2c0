"""The sizes of products, by name, and what rounding some of them up to whole blocks makes of the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from flopwatch.record import Shapes

COLUMNS, ROWS, INNER = "columns", "rows", "inner size"
OUT, IN, CHANNELS, POSITIONS, WIDTH = "output channels", "input channels", "channels", "positions", "width"

EDGES = 0
"""Not a multiple: what is left over whole vectors of eight is done in pieces of four, two and one, each in a vector of four."""

BLOCKS = (4, 8, 16, 32, 64, EDGES)
"""What sizes are rounded up to, the likeliest first: lanes of vectors, and tiles of kernels."""


@dataclass(frozen=True, slots=True)
class Product:
    """One operator of products, all calls of it together: multiply-accumulates, those on padding, results, and sizes by name.

    `packed` are the elements of its two matrices, which libraries copy and may scale, `summed` the names of sizes that are summed
    over: rounding these up makes no more results.
    """

    mac: int
    padding: int
    results: int
    inner: int
    sizes: Mapping[str, int]
    packed: tuple[int, int]
    kernel: int = 1
    summed: tuple[str, ...] = (INNER, IN)


@dataclass(frozen=True, slots=True)
class Rounded:
    """Products and results after rounding up; `blocks` says what to."""

    products: int
    results: int
    blocks: Mapping[str, int]


def products_of(shapes: Shapes) -> list[Product]:
    """The products that an operator of the estimate consists of; empty if it has none."""
    if not shapes.mac or not shapes.outputs:
        return []
    if _attention(shapes):
        return _of_attention(shapes)
    if "convolution_backward" in shapes.op and len(shapes.inputs) >= 3:
        return _of_gradients(shapes)
    return [_of_convolution(shapes) if _convolution(shapes) else _of_matrices(shapes)]


def rounded(each: Product, blocks: Mapping[str, int], *, padding: bool) -> Rounded | None:
    """One product with its sizes rounded up; None if the blocks change nothing, or do not divide evenly."""
    over, under, more, less = 1, 1, 1, 1
    for name, block in blocks.items():
        size = each.sizes.get(name)
        if size is None:
            continue
        up = _up(size, block)
        over, under = over * up, under * size
        if name not in each.summed:
            more, less = more * up, less * size
    base = each.mac if padding else each.mac - each.padding
    if base * over % under or each.results * more % less:
        return None
    return Rounded(base * over // under, each.results * more // less, blocks)


def roundings(names: tuple[str, ...]) -> Iterator[dict[str, int]]:
    """Nothing rounded, then one size, then two; the likeliest blocks first."""
    yield {}
    for count in (1, 2):
        found = [
            dict(zip(chosen, blocks, strict=True))
            for chosen in combinations(names, count)
            if not {POSITIONS, WIDTH} <= set(chosen)
            for blocks in product(BLOCKS, repeat=count)
        ]
        yield from sorted(found, key=lambda each: sum(BLOCKS.index(block) for block in each.values()))


def sized(products: Sequence[Product], padding: Sequence[bool]) -> Iterator[tuple[dict[str, int], list[Rounded]]]:
    """All ways of rounding sizes up, the likeliest first: of all products, or of one among several.

    `padding` says for each product whether those with padding are made.
    """
    names = tuple(dict.fromkeys(name for each in products for name in each.sizes))
    for blocks in roundings(names):
        if any(_even(products, name, block) for name, block in blocks.items()):
            continue  # nothing to round up: the same as without
        made = [rounded(each, blocks, padding=with_it) for each, with_it in zip(products, padding, strict=True)]
        if all(each is not None for each in made):
            yield blocks, [each for each in made if each is not None]
        if blocks and len(products) > 1:
            # One kernel rounds up its columns, the other one has whole ones already, or other columns altogether.
            for only in range(len(products)):
                alone = [
                    rounded(each, blocks if i == only else {}, padding=padding[i]) for i, each in enumerate(products)
                ]
                if all(each is not None for each in alone):
                    yield blocks, [each for each in alone if each is not None]


def said(blocks: Mapping[str, int]) -> str:
    """What was rounded up, in words."""
    words = [
        f"{name} to a multiple of {block}" if block != EDGES else f"{name} by edges in vectors of four"
        for name, block in blocks.items()
    ]
    return ", ".join(words)


def _up(size: int, block: int) -> int:
    if block == EDGES:
        return size // 8 * 8 + 4 * (size % 8).bit_count()
    return -(-size // block) * block


def _even(products: Sequence[Product], name: str, block: int) -> bool:
    sizes = [each.sizes[name] for each in products if name in each.sizes]
    return all(_up(size, block) == size for size in sizes)


def _convolution(shapes: Shapes) -> bool:
    weight = shapes.inputs[1] if len(shapes.inputs) > 1 else ()
    return "conv" in shapes.op and len(weight) == len(shapes.outputs[0]) >= 3 and shapes.outputs[0][1] == weight[0]


def _of_convolution(shapes: Shapes) -> Product:
    data, weight, out = shapes.inputs[0], shapes.inputs[1], shapes.outputs[0]
    outputs, of_group, positions = weight[0], weight[1], prod(out[2:])
    groups = max(1, data[1] // of_group)
    kernel = prod(weight[2:])
    sizes = {OUT: outputs // groups, IN: of_group, POSITIONS: positions, WIDTH: out[-1]}
    if of_group == 1 and groups > 1:
        sizes = {CHANNELS: outputs, POSITIONS: positions, WIDTH: out[-1]}
    columns = shapes.calls * out[0] * positions * groups * of_group * kernel
    return Product(
        shapes.mac * shapes.calls,
        shapes.padding * shapes.calls,
        prod(out) * shapes.calls,
        of_group * kernel,
        sizes,
        (prod(weight) * shapes.calls, columns),
        kernel,
    )


def _of_gradients(shapes: Shapes) -> list[Product]:
    """The gradients of what went in and of the weights: each has as many products as the convolution itself."""
    out, data, weight = shapes.inputs[:3]
    of_data = [shape for shape in shapes.outputs if shape == data]
    of_weight = [shape for shape in shapes.outputs if shape == weight]
    wanted = len(of_data[:1]) + len(of_weight[:1])
    if not wanted or len(weight) < 3 or shapes.mac % wanted or shapes.padding % wanted:
        return [_of_matrices(shapes)]
    groups, kernel = max(1, data[1] // weight[1]), prod(weight[2:])
    outputs, positions = weight[0] // groups, prod(out[2:])
    unfolded = shapes.calls * out[0] * positions * groups * weight[1] * kernel
    given = shapes.calls * prod(out)
    found = []
    for gradient, inner, summed, packed in (
        (of_data, outputs * kernel, OUT, (prod(weight) * shapes.calls, given)),
        (of_weight, out[0] * positions, POSITIONS, (given, unfolded)),
    ):
        if gradient:
            sizes = {OUT: outputs, IN: weight[1], POSITIONS: positions, WIDTH: out[-1]}
            if weight[1] == 1 and groups > 1:
                # Kernels for dense convolutions take blocks of channels for the one that a group has.
                sizes = {CHANNELS: weight[0], POSITIONS: positions, WIDTH: out[-1], IN: weight[1]}
            mac, padding = shapes.mac // wanted * shapes.calls, shapes.padding // wanted * shapes.calls
            results = prod(gradient[0]) * shapes.calls
            found.append(Product(mac, padding, results, inner, sizes, packed, kernel, (summed,)))
    return found


def _of_matrices(shapes: Shapes) -> Product:
    out = shapes.outputs[0]
    results = prod(out)
    inner = shapes.mac // results if results else 0
    columns, rows = (out[-1] if out else 1), (out[-2] if len(out) > 1 else 1)
    calls = shapes.calls * (results // (columns * rows) if results else 0)
    return Product(
        shapes.mac * shapes.calls,
        shapes.padding * shapes.calls,
        results * shapes.calls,
        inner,
        {COLUMNS: columns, ROWS: rows, INNER: inner},
        (calls * rows * inner, calls * columns * inner),
    )


def _attention(shapes: Shapes) -> bool:
    return "attention" in shapes.op and len(shapes.inputs) >= 3 and len(shapes.inputs[0]) >= 3


def _of_attention(shapes: Shapes) -> list[Product]:
    query, key, value = shapes.inputs[:3]
    length, inner = query[-2:]
    keys, wide = key[-2], value[-1]
    heads = prod(query[:-2]) * shapes.calls
    if heads * length * keys * (inner + wide) != shapes.mac * shapes.calls:
        return [_of_matrices(shapes)]
    scores, results = heads * length * keys, heads * length * wide
    return [
        Product(
            scores * inner,
            0,
            scores,
            inner,
            {COLUMNS: keys, ROWS: length, INNER: inner},
            (heads * length * inner, heads * keys * inner),
        ),
        Product(
            results * keys,
            0,
            results,
            keys,
            {COLUMNS: wide, ROWS: length, INNER: keys},
            (scores, heads * keys * wide),
        ),
    ]


def derivatives_of(shapes: Shapes) -> tuple[list[Product], Product]:
    """The products of the derivative of attention (gradient, query, key, value go in), and the one of the scores among them."""
    query, key, value = shapes.inputs[1:4]
    heads, length, inner = prod(query[:-2]) * shapes.calls, query[-2], query[-1]
    keys, wide = key[-2], value[-1]
    rows_columns_inner = (
        (length, keys, inner),  # the scores again
        (keys, wide, length),  # of values
        (length, keys, wide),  # of the softmax
        (length, inner, keys),  # of queries
        (keys, inner, length),  # of keys
    )
    found = [
        Product(
            heads * rows * columns * summed,
            0,
            heads * rows * columns,
            summed,
            {COLUMNS: columns, ROWS: rows, INNER: summed},
            (heads * rows * summed, heads * columns * summed),
        )
        for rows, columns, summed in rows_columns_inner
    ]
    return found, found[0]
