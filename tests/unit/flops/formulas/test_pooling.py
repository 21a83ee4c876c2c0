"""Pooling, against loops over the windows."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from flopwatch.flops.formulas import pooling, work
from flopwatch.flops.formulas.work import Numbers
from flopwatch.flops.operations import DType
from tests.unit.flops.formulas.counting import Counting, accumulated, added, largest, operations

FP32 = Numbers(DType.FP32)


def window(position: int, size: int, kernel: int, stride: int, padding: int, dilation: int) -> list[int]:
    """The places of a window that lie in the input."""
    places = (position * stride - padding + tap * dilation for tap in range(kernel))
    return [place for place in places if 0 <= place < size]


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2), st.booleans())
def test_windows_of_a_line(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> None:
    reach = dilation * (kernel - 1) + 1
    assume(padding <= kernel // 2 and size + 2 * padding >= reach)
    made = (size + 2 * padding - reach + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (made - 1) * stride >= size + padding:
        made -= 1  # a window must begin in the input or in the padding before it
    seen, highest = Counting(), Counting()
    line, other = seen.numbers(size), highest.numbers(size)
    held = 0
    for position in range(made):
        places = window(position, size, kernel, stride, padding, dilation)
        assume(places)
        held += len(places)
        _ = accumulated(line[place] for place in places) / kernel
        largest(other[place] for place in places)
    taken = pooling.windows((size,), (made,), (kernel,), (stride,), (padding,), (dilation,))
    assert taken == held
    assert operations(pooling.average(FP32, taken, made)) == +seen.operations
    assert operations(pooling.largest(FP32, taken, made)) == +highest.operations


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_adaptive_windows_of_a_plane(rows: int, columns: int, height: int, width: int) -> None:
    held = 0
    for i in range(height):
        for j in range(width):
            top, bottom = i * rows // height, -(-(i + 1) * rows // height)
            left, right = j * columns // width, -(-(j + 1) * columns // width)
            held += (bottom - top) * (right - left)
    assert pooling.adaptive_windows((rows, columns), (height, width)) == held


def test_the_average_of_a_whole_plane_is_a_mean() -> None:
    planes, size = 2, 49
    seen = Counting()
    for plane in seen.numbers(planes, size):
        _ = added(plane) / size
    assert operations(pooling.adaptive_average(FP32, planes * size, planes, planes=planes)) == +seen.operations


def test_a_window_that_the_input_cuts_off_is_smaller() -> None:
    """Three wide, two apart, on four: windows of three and of two."""
    taken = pooling.windows((4,), (2,), (3,), (2,))
    assert taken == 3 + 2
    assert sum(pooling.average(FP32, taken, 2).tally.flop().values()) == (3 + 1) + (2 + 1)


def test_gradients() -> None:
    taken, made = 5, 2
    assert pooling.average_backward(FP32, taken, made) == work(FP32, div=made, add=taken)
    assert pooling.largest_backward(FP32, made) == work(FP32, add=made)
