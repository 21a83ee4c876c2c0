"""What one operation is worth: the named rules that turn a tally into FLOP.

                                pmu   arithmetic      per lane
    add mul div sqrt              1            1
    fma dot tile_dot              2            2
    min max                       1            0
    rcp (approximations)          1            0
    dpp                           2   2, less 1 for each 128 bits   (dpps xmm: 8 and 7; dppd xmm: 4 and 3)
    complex_mul complex_fma    6, 8         6, 8      per complex number
    transcendental                1            1
    int_mad pair_dot           2, 3         2, 3      OP, not FLOP
    any                           1            1      weighed by the hardware that counted it, by its own rule
    switched-off lanes      counted  not counted

`pmu` agrees with the FP_ARITH events of Intel processors where these count at all: they see no tile products, no x87 and, but
for one model, no bf16. Compare, convert, round, move and logic are worth nothing under either rule and are no operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from flopwatch.flops.operations import DType, Operation

Lanes = Literal["full", "active"]


@dataclass(frozen=True, slots=True, eq=False)
class Convention:
    """A named rule for FLOP: the worth of each operation, and whether lanes that a mask switched off are counted.

    `spare_sum` tells whether a dot product within 128 bits is charged one addition more than its sum needs.
    """

    name: str
    weights: Mapping[Operation, int]
    lanes: Lanes
    spare_sum: bool

    def worth(self, operation: Operation, dtype: DType, instructions: int, lanes: int, counted: int) -> int:
        """FLOP or OP of `instructions` with `lanes` lanes each, of which `counted` lanes in all are to be counted."""
        total = self.weights[operation] * counted
        if operation is Operation.DPP and not self.spare_sum:
            total -= instructions * (lanes * dtype.bits // 128)
        return total


_ARITHMETIC_WEIGHTS = {
    Operation.ADD: 1,
    Operation.MUL: 1,
    Operation.FMA: 2,
    Operation.DIV: 1,
    Operation.SQRT: 1,
    Operation.MINMAX: 0,
    Operation.RCP: 0,
    Operation.DOT: 2,
    Operation.DPP: 2,
    Operation.TILE_DOT: 2,
    Operation.COMPLEX_MUL: 6,
    Operation.COMPLEX_FMA: 8,
    Operation.TRANSCENDENTAL: 1,
    Operation.INT_MAD: 2,
    Operation.PAIR_DOT: 3,
    Operation.ANY: 1,
}

ARITHMETIC = Convention("arithmetic", MappingProxyType(_ARITHMETIC_WEIGHTS), "active", spare_sum=False)
PMU = Convention(
    "pmu", MappingProxyType(_ARITHMETIC_WEIGHTS | {Operation.MINMAX: 1, Operation.RCP: 1}), "full", spare_sum=True
)
CONVENTIONS: Mapping[str, Convention] = MappingProxyType({each.name: each for each in (PMU, ARITHMETIC)})
