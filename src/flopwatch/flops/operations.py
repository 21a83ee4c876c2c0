"""What an instruction or an operator does, and on which numbers: the two axes that every tally is kept on."""

from __future__ import annotations

from enum import StrEnum


class Operation(StrEnum):
    """A kind of arithmetic. What one of them is worth is not said here but by a `Convention`.

    A tally counts instructions, each of them with so many lanes. One lane is one result element, except for `DOT`, `DPP` and
    `TILE_DOT`, where it is one product, and for the complex operations, where it is one complex number.
    """

    ADD = "add"
    """Addition or subtraction, horizontal and alternating forms too."""
    MUL = "mul"
    FMA = "fma"
    """Multiply and add in one instruction, whatever the signs."""
    DIV = "div"
    SQRT = "sqrt"
    MINMAX = "minmax"
    RCP = "rcp"
    """Approximate reciprocal or reciprocal square root, and the steps that refine one."""
    DOT = "dot"
    """Products of neighbours, summed into an accumulator: one lane is one product and the addition that takes it up."""
    DPP = "dpp"
    """Products summed within each 128 bits of a register, without accumulator: n products and n - 1 additions."""
    TILE_DOT = "tile_dot"
    """Matrix product of two tiles, added to a third: one lane is one product and its addition."""
    COMPLEX_MUL = "complex_mul"
    """Product of complex numbers: 4 multiplications, 2 additions."""
    COMPLEX_FMA = "complex_fma"
    """Product of complex numbers, added to a third: 4 multiplications, 4 additions."""
    TRANSCENDENTAL = "transcendental"
    """Sine, exponential, logarithm and the like, as one instruction or, in estimates, as one function value."""
    INT_MAD = "int_mad"
    """Integer multiply and add with accumulator, lane by lane."""
    PAIR_DOT = "pair_dot"
    """Two integer products and their sum, without accumulator: one lane is one sum."""
    ANY = "any"
    """Arithmetic that hardware counted without telling which: already weighed, so that one lane is one FLOP."""

    @property
    def fused(self) -> bool:
        """Whether each product is added to something in the same instruction."""
        return self in _FUSED

    @property
    def parts(self) -> int:
        """Numbers of the datatype that stand side by side in one lane: 2 for complex numbers and pairs, else 1."""
        return 2 if self in _TWO_PARTS else 1


_FUSED = frozenset((Operation.FMA, Operation.DOT, Operation.TILE_DOT, Operation.COMPLEX_FMA, Operation.INT_MAD))
_TWO_PARTS = frozenset((Operation.COMPLEX_MUL, Operation.COMPLEX_FMA, Operation.PAIR_DOT))


class DType(StrEnum):
    """The datatype of the numbers that go in: a bf16 dot product that is summed in fp32 is bf16."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    X87 = "x87"
    """The 80-bit registers, whatever the format in memory."""
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    """64-bit lanes; the 52-bit multiply-adds too."""
    ANY = "any"
    """Floating-point numbers that hardware counted without telling their precision."""

    @property
    def bits(self) -> int:
        """Bits that a number takes in a register; ValueError for ANY, of which that is not known."""
        if self is DType.ANY:
            raise ValueError("the bits of a datatype that was not told apart are not known")
        return _BITS[self]

    @property
    def floating(self) -> bool:
        """Whether work on it is FLOP; on the others it is OP."""
        return self not in _INTEGER


_INTEGER = frozenset((DType.INT8, DType.INT16, DType.INT32, DType.INT64))
_BITS = {
    DType.FP64: 64,
    DType.FP32: 32,
    DType.TF32: 32,
    DType.BF16: 16,
    DType.FP16: 16,
    DType.FP8: 8,
    DType.X87: 80,
    DType.INT8: 8,
    DType.INT16: 16,
    DType.INT32: 32,
    DType.INT64: 64,
}
