"""Fourier transforms: by hand, by the algorithm written out, and the calls of PyTorch's own functions."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch.events import Array, Op
from flopwatch.flops.formulas import Work, estimate, fourier
from flopwatch.flops.formulas.work import total
from tests.unit.flops.formulas.counting import Counting, operations
from tests.unit.flops.formulas.numerics import COMPLEX, Complex, flop, worth

BATCH, N, LOG_N = 3, 1024, 10


def transformed(x: list[Complex]) -> list[Complex]:
    """Cooley and Tukey, by the smallest prime factor first; products with 1 are done too."""
    n = len(x)
    if n == 1:
        return x
    p = next(each for each in range(2, n + 1) if n % each == 0)
    parts = [transformed(x[start::p]) for start in range(p)]
    m = n // p
    out: list[Complex] = [x[0]] * n
    for k in range(m):
        terms = [parts[0][k], *(parts[r][k] * cmath.exp(-2j * math.pi * r * k / n) for r in range(1, p))]
        for j, value in enumerate(small(terms)):
            out[k + j * m] = value
    return out


def small(terms: list[Complex]) -> list[Complex]:
    """A transform of a prime number of terms, by pairs of mirrored ones."""
    p = len(terms)
    if p == 2:
        return [terms[0] + terms[1], terms[0] - terms[1]]
    pairs = range(1, (p - 1) // 2 + 1)
    sums = {i: terms[i] + terms[p - i] for i in pairs}
    differences = {i: terms[i] - terms[p - i] for i in pairs}
    out = [terms[0]] * p
    for each in sums.values():
        out[0] = out[0] + each
    for j in pairs:
        even = terms[0]
        for i in pairs:
            even = even + sums[i].scaled(math.cos(2 * math.pi * i * j / p))
        odd = differences[1].scaled(math.sin(2 * math.pi * j / p))
        for i in pairs:
            if i > 1:
                odd = odd + differences[i].scaled(math.sin(2 * math.pi * i * j / p))
        out[j], out[p - j] = even - odd.turned(), even + odd.turned()
    return out


def bluestein(seen: Counting, x: list[Complex], padded: int) -> list[Complex]:
    """A transform of any length as a convolution with a chirp, by transforms of a power of two."""
    n = len(x)
    chirp = [cmath.exp(-1j * math.pi * k * k / n) for k in range(n)]
    other = np.zeros(padded, dtype=complex)
    for k in range(n):
        other[k] = other[-k] = chirp[k].conjugate()
    constant = np.fft.fft(other) / padded
    spectrum = transformed(
        [*(each * factor for each, factor in zip(x, chirp, strict=True)), *[Complex.of(seen, 0)] * (padded - n)]
    )
    product = [each * complex(factor) for each, factor in zip(spectrum, constant, strict=True)]
    # The inverse is the transform with its outputs in reverse.
    back = transformed(product)
    back = [back[0], *reversed(back[1:])]
    return [each * factor for each, factor in zip(back[:n], chirp, strict=True)]


def signal(seen: Counting, length: int) -> list[Complex]:
    return [Complex.of(seen, complex(k % 5 - 1, k % 3)) for k in range(length)]


@given(st.integers(1, 64))
def test_mixed_radix_does_what_the_loops_do(length: int) -> None:
    seen = Counting()
    x = signal(seen, length)
    result = [complex(each) for each in transformed(x)]
    assert np.allclose(result, np.fft.fft([complex(each) for each in x]))
    assert operations(fourier.mixed_radix(length).work(COMPLEX)) == +seen.operations


@pytest.mark.parametrize(("length", "padded"), [(127, 256), (254, 512)])
def test_a_large_prime_is_done_by_a_convolution_with_a_chirp(length: int, padded: int) -> None:
    seen = Counting()
    x = signal(seen, length)
    result = [complex(each) for each in bluestein(seen, x, padded)]
    assert np.allclose(result, np.fft.fft([complex(each) for each in x]))
    assert operations(fourier.transforms(COMPLEX, length, 1)) == +seen.operations
    assert fourier.of_length(length).flop < fourier.mixed_radix(length).flop


def test_a_power_of_two_takes_the_five_n_log_n_that_everybody_quotes() -> None:
    array = Array((BATCH, N), "complex64")
    found = worth("aten::_fft_c2c", array, self=array, dim=[1], normalization=0, forward=True)
    assert (flop(found), found.mac) == (5 * BATCH * N * LOG_N, 0)


def test_real_numbers_take_half_as_many() -> None:
    real, half = Array((BATCH, N)), Array((BATCH, N // 2 + 1), "complex64")
    there = worth("aten::_fft_r2c", half, self=real, dim=[1], normalization=0, onesided=True)
    back = worth("aten::_fft_c2r", real, self=half, dim=[1], normalization=0, last_dim_size=N)
    mirrored = worth(
        "aten::_fft_r2c", Array((BATCH, N), "complex64"), self=real, dim=[1], normalization=0, onesided=False
    )
    assert 2 * flop(there) == 5 * BATCH * N * LOG_N
    assert there == back == mirrored


def test_an_odd_number_of_butterflies_can_be_halved() -> None:
    pair = worth("aten::_fft_r2c", Array((2,), "complex64"), self=Array((2,)), dim=[0], normalization=0, onesided=True)
    assert 2 * flop(pair) == 5 * 2 * 1


def test_several_dimensions_are_transformed_one_after_the_other() -> None:
    rows, columns = 8, 16
    array = Array((rows, columns), "complex64")
    found = worth("aten::_fft_c2c", array, self=array, dim=[0, 1], normalization=0, forward=True)
    assert flop(found) == columns * 5 * rows * 3 + rows * 5 * columns * 4
    real = worth("aten::_fft_r2c", array, self=Array((rows, columns)), dim=[0, 1], normalization=0, onesided=True)
    assert 2 * flop(real) == rows * 5 * columns * 4 + 2 * (columns // 2 + 1) * 5 * rows * 3


def test_scaling_multiplies_both_parts_of_each_number() -> None:
    array = Array((N,), "complex128")
    plain = worth("aten::_fft_c2c", array, self=array, dim=[0], normalization=0, forward=True)
    scaled = worth("aten::_fft_c2c", array, self=array, dim=[0], normalization=2, forward=False)
    assert flop(scaled) == flop(plain) + 2 * N


def test_a_length_of_one_and_no_numbers_at_all_take_nothing() -> None:
    for shape in ((5, 1), (0, 8), (4, 0)):
        array = Array(shape, "complex64")
        assert worth("aten::_fft_c2c", array, self=array, dim=[1], normalization=0, forward=True).tally == {}


FUNCTIONS: dict[str, tuple[bool, dict[str, Any]]] = {
    "fft": (True, {}),
    "ifft": (False, {"norm": "ortho"}),
    "rfft": (False, {"n": 12}),
    "irfft": (True, {}),
    "hfft": (True, {"norm": "forward"}),
    "ihfft": (False, {"norm": "backward", "dim": 0}),
    "fft2": (False, {}),
    "ifft2": (True, {}),
    "rfft2": (False, {"norm": "forward"}),
    "irfft2": (True, {"norm": "ortho"}),
    "hfft2": (True, {}),
    "ihfft2": (False, {"norm": "forward"}),
    "fftn": (False, {"s": [4, 6], "dim": [0, 1]}),
    "ifftn": (True, {}),
    "rfftn": (False, {}),
    "irfftn": (True, {"s": [4, 20]}),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_cost_what_they_end_in(name: str) -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import array, calls

    is_complex, options = FUNCTIONS[name]
    x = torch.ones(4, 16, dtype=torch.complex64 if is_complex else torch.float32)
    function = getattr(torch.fft, name)
    inner = [found for op in calls(function, x, **options) if isinstance(found := estimate(op), Work)]
    op = Op(f"aten::fft_{name}", {"self": array(x), **options}, (array(function(x, **options)),))
    assert flop(total(inner)) > 0
    assert estimate(op) == total(inner)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:A window was not provided")
def test_short_time_transforms_cost_what_they_end_in() -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import array, calls

    window = torch.ones(16)
    for x, options in (
        (torch.ones(2, 100), {"window": window}),
        (torch.ones(2, 100), {"normalized": True}),
        (torch.ones(2, 100), {"window": window, "onesided": False}),
        (torch.ones(100), {"win_length": 10}),
        (torch.ones(2, 100), {"window": window + 0j, "onesided": False}),
        (torch.ones(2, 100) + 0j, {"window": window, "onesided": False}),
        (torch.ones(2, 100) + 0j, {"onesided": False}),
    ):
        given: dict[str, Any] = {"n_fft": 16, "hop_length": 4, "return_complex": True, "center": False, **options}
        inner = [found for op in calls(torch.stft, x, **given) if isinstance(found := estimate(op), Work)]
        arguments = {key: array(value) if isinstance(value, torch.Tensor) else value for key, value in given.items()}
        op = Op("aten::stft", {"self": array(x), **arguments}, (array(torch.stft(x, **given)),))
        assert estimate(op) == total(inner), options
