"""Operators that are made of others cost what their parts do: in inference mode they come whole, otherwise in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flopwatch.flops.classify import Free
from flopwatch.flops.formulas import Work, estimate, lookup
from flopwatch.flops.formulas.work import total

torch = pytest.importorskip("torch", reason="needs PyTorch")
from tests.unit.flops.formulas.calls import calls  # noqa: E402

pytestmark = pytest.mark.torch

Make = Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]


def well() -> Any:
    a = torch.randn(2, 5, 5)
    return a @ a.mT + 5 * torch.eye(5)


def reflections() -> tuple[Any, Any]:
    found: tuple[Any, Any] = torch.geqrf(torch.randn(6, 4))
    return found


linalg, ops = torch.linalg, torch.ops.aten
CASES: dict[str, Make] = {
    "linalg_cholesky": lambda: (linalg.cholesky, (well(),)),
    "linalg_lu_factor": lambda: (linalg.lu_factor, (well(),)),
    "_lu_with_info": lambda: (ops._lu_with_info, (well(),)),
    "lu_solve": lambda: (torch.lu_solve, (torch.randn(2, 5, 3), *linalg.lu_factor(well()))),
    "linalg_solve": lambda: (linalg.solve, (well(), torch.randn(2, 5))),
    "linalg_solve_ex": lambda: (linalg.solve_ex, (well(), torch.randn(2, 5, 3))),
    "linalg_inv": lambda: (linalg.inv, (well(),)),
    "inverse": lambda: (torch.inverse, (well(),)),
    "linalg_det": lambda: (linalg.det, (well(),)),
    "det": lambda: (torch.det, (well(),)),
    "linalg_slogdet": lambda: (linalg.slogdet, (well(),)),
    "slogdet": lambda: (torch.slogdet, (well(),)),
    "linalg_ldl_factor": lambda: (linalg.ldl_factor, (well(),)),
    "orgqr": lambda: (torch.orgqr, reflections()),
    "linalg_pinv": lambda: (ops.linalg_pinv.atol_rtol_float, (torch.randn(2, 6, 4),)),
    "pinverse": lambda: (torch.pinverse, (torch.randn(2, 6, 4),)),
    "linalg_eigh": lambda: (linalg.eigh, (well(),)),
    "linalg_svd": lambda: (linalg.svd, (torch.randn(2, 6, 4),)),
    "linalg_eigvals": lambda: (linalg.eigvals, (well(),)),
    "cross": lambda: (torch.cross, (torch.randn(2, 3), torch.randn(2, 3))),
    "frobenius_norm": lambda: (ops.frobenius_norm.dim, (torch.randn(2, 3), [1])),
    "grid_sampler": lambda: (torch.grid_sampler, (torch.randn(1, 2, 4, 4), torch.rand(1, 3, 3, 2), 0, 0, True)),
    "upsample_bilinear2d": lambda: (ops.upsample_bilinear2d.vec, (torch.randn(1, 2, 4, 4), None, False, [2.0, 2.0])),
    "_upsample_bilinear2d_aa": lambda: (
        ops._upsample_bilinear2d_aa.vec,
        (torch.randn(1, 2, 8, 8), None, False, [0.5, 0.5]),
    ),
    "fake_quantize_per_tensor_affine": lambda: (
        torch.fake_quantize_per_tensor_affine,
        (torch.randn(3, 4), 0.1, 0, 0, 255),
    ),
    "fake_quantize_per_channel_affine": lambda: (
        torch.fake_quantize_per_channel_affine,
        (torch.randn(3, 4), torch.ones(3), torch.zeros(3, dtype=torch.int32), 0, 0, 255),
    ),
    "embedding_bag": lambda: (
        ops.embedding_bag.padding_idx,
        (torch.randn(9, 4), torch.arange(6), torch.tensor([0, 3]), False, 1, False, None, False, None),
    ),
    "embedding_backward": lambda: (
        ops.embedding_backward,
        (torch.randn(3, 4), torch.arange(3), 9, -1, False, False),
    ),
}


def whole(found: list[Any]) -> Work:
    assert all(isinstance(each, Work | Free) for each in found), found
    return total(each for each in found if isinstance(each, Work))


@pytest.mark.parametrize("name", CASES)
def test_a_whole_is_the_sum_of_its_parts(name: str) -> None:
    function, given = CASES[name]()
    with torch.inference_mode():
        entire = calls(function, *given)
    with torch.no_grad():
        parts = calls(function, *given)
    assert [op.name for op in entire] == [f"aten::{name}"]
    assert whole([estimate(op) for op in entire]) == whole([estimate(op) for op in parts])


@pytest.mark.parametrize("name", ["linalg_svdvals", "linalg_eigvalsh", "svd"])
def test_parts_that_depend_on_who_looks_are_not_guessed(name: str) -> None:
    assert lookup(f"aten::{name}") is None
