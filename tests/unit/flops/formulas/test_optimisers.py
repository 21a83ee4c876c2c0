"""Steps of optimizers: fused, over lists and one by one, they cost the same; and the step written out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flopwatch.events import Array, Op
from flopwatch.flops.classify import Free, Unknown
from flopwatch.flops.formulas import Work, estimate, optimisers
from flopwatch.flops.formulas.work import total
from tests.unit.flops.formulas.counting import Counting, larger, operations, sqrt
from tests.unit.flops.formulas.numerics import SINGLE, worth

SHAPES = ((4, 3), (5,), (2, 2, 2), (5,))
ELEMENTS = 12 + 5 + 8 + 5

switch = st.booleans()


@given(switch, switch, switch, switch)
def test_adam(decay: bool, decoupled: bool, amsgrad: bool, scaled: bool) -> None:
    seen = Counting()
    theta, g, m, v, highest = seen.numbers(5)
    if scaled:
        g = g / 1024
    if decay and decoupled:
        theta = theta * 0.99
    if decay and not decoupled:
        g = g + theta * 0.1
    m = m + (g - m) * 0.1
    v = v * 0.999 + g * g * 0.001
    if amsgrad:
        v = larger(highest, v)
    theta + m * -0.1 / (sqrt(v) / 0.9 + 1e-8)
    found = optimisers.adam(SINGLE, 1, decay=decay, decoupled=decoupled, amsgrad=amsgrad, scaled=scaled)
    assert operations(found) == +seen.operations


@given(switch, switch, switch, switch, switch, switch)
def test_sgd(decay: bool, momentum: bool, dampening: bool, nesterov: bool, first: bool, scaled: bool) -> None:
    seen = Counting()
    theta, g, b = seen.numbers(3)
    if scaled:
        g = g / 1024
    if decay:
        g = g + theta * 0.1
    if momentum:
        if first:
            b = g
        else:
            b = b * 0.9 + (g * 0.5 if dampening else g)
        g = g + b * 0.9 if nesterov else b
    theta - g * 0.1
    found = optimisers.sgd(
        SINGLE,
        1,
        rate=0.1,
        decay=0.1 * decay,
        momentum=0.9 * momentum,
        dampening=0.5 * dampening,
        nesterov=nesterov,
        first=first,
        scaled=scaled,
    )
    assert operations(found) == +seen.operations


@given(switch, switch)
def test_adagrad(decay: bool, scaled: bool) -> None:
    seen = Counting()
    theta, g, s = seen.numbers(3)
    if scaled:
        g = g / 1024
    if decay:
        g = g + theta * 0.1
    s = s + g * g
    theta + g * -0.1 / (sqrt(s) + 1e-8)
    assert operations(optimisers.adagrad(SINGLE, 1, decay=decay, scaled=scaled)) == +seen.operations


STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "Adam": ("Adam", {}),
    "Adam, amsgrad and decay": ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    "Adam, upwards": ("Adam", {"maximize": True}),
    "AdamW": ("AdamW", {"weight_decay": 0.1}),
    "SGD": ("SGD", {"lr": 0.1}),
    "SGD, by the whole gradient": ("SGD", {"lr": 1.0}),
    "SGD, momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    "SGD, Nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "SGD, dampened": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    "Adagrad": ("Adagrad", {"weight_decay": 0.1}),
}


def stepped(case: str, **how: bool) -> Work:
    """What the second step of an optimizer does."""
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    name, options = STEPS[case]
    parameters = [torch.nn.Parameter(torch.ones(shape)) for shape in SHAPES]
    optimizer = getattr(torch.optim, name)(parameters, **options, **how)
    for _ in range(2):
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)
        ops = calls(optimizer.step)
    found = [estimate(op) for op in ops if op.name.startswith("aten::")]
    assert not any(isinstance(each, Unknown) for each in found), found
    return total(each for each in found if isinstance(each, Work))


@pytest.mark.torch
@pytest.mark.parametrize("case", STEPS)
def test_fused_and_foreach_steps_cost_what_single_ones_do(case: str) -> None:
    single = stepped(case, foreach=False)
    fused = stepped(case, fused=True)
    assert fused == single == stepped(case, foreach=True)


def test_gradients_are_unscaled_by_one_product_each() -> None:
    gradients = [Array(shape) for shape in SHAPES]
    found = worth("aten::_amp_foreach_non_finite_check_and_unscale_", self=gradients, found_inf=None, inv_scale=None)
    assert found == worth("aten::mul", Array((ELEMENTS,)), self=Array((ELEMENTS,)), other=2.0)


LISTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        """
        abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt
        sigmoid sign sin sinh sqrt tan tanh trunc
        """.split(),  # noqa: SIM905
        (),
    ),
    **dict.fromkeys(("add", "sub", "mul", "div", "maximum", "minimum", "clamp_max", "clamp_min"), ("list",)),
    "pow": ("list",),
    "lerp": ("list", 0.5),
    "addcmul": ("list", "list"),
    "addcdiv": ("list", "list"),
    "max": (),
    "norm": (),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", LISTS)
def test_a_list_costs_what_its_tensors_do(name: str) -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    tensors = [torch.ones(shape) for shape in SHAPES]
    others = LISTS[name]
    together = calls(getattr(torch, f"_foreach_{name}"), tensors, *(tensors if o == "list" else o for o in others))
    single = {"norm": torch.linalg.vector_norm}.get(name) or getattr(torch, name)
    apart = [op for each in tensors for op in calls(single, each, *(each if o == "list" else o for o in others))]
    assert [op.name for op in together] == [f"aten::_foreach_{name}"]
    found = estimate(together[0])
    expected = [estimate(op) for op in apart]
    if isinstance(found, Free):
        assert all(each == found for each in expected)
    else:
        assert found == total(each for each in expected if isinstance(each, Work))


@pytest.mark.torch
def test_scalars_of_lists_are_those_of_single_calls() -> None:
    torch = pytest.importorskip("torch")
    from tests.unit.flops.formulas.calls import calls

    tensors = [torch.ones(shape) for shape in SHAPES]
    for function, arguments, each, alone in (
        (torch._foreach_add, (tensors, 2.0), torch.add, (2.0,)),
        (torch._foreach_mul, (tensors, [2.0] * 4), torch.mul, (2.0,)),
        (torch._foreach_add_, (tensors, tensors), torch.add, (torch.ones(()),)),
        (torch._foreach_pow, (tensors, 2), torch.pow, (2,)),
        (torch._foreach_pow, (tensors, [2] * 4), torch.pow, (2,)),
        (torch._foreach_div, (tensors, torch.ones(())), torch.div, (torch.ones(()),)),
        (torch._foreach_clamp_min, (tensors, 0.5), torch.clamp_min, (0.5,)),
    ):
        expected = [estimate(op) for tensor in tensors for op in calls(each, tensor, *alone)]
        (op,) = calls(function, *arguments)
        assert estimate(op) == total(one for one in expected if isinstance(one, Work)), op.name
    (scaled,) = calls(torch._foreach_add, tensors, tensors, alpha=0.5)
    assert operations(worth(scaled.name, *scaled.outputs, **scaled.arguments)).total() == 2 * ELEMENTS


def test_a_list_of_an_operator_that_nobody_knows_is_unknown() -> None:
    from flopwatch.flops.formulas.registry import _formulas

    known = _formulas.pop("aten::erf")
    try:
        op = Op("aten::_foreach_erf", {"self": [Array((2,))]}, (Array((2,)),))
        assert estimate(op) == Unknown("aten::_foreach_erf")
    finally:
        _formulas["aten::erf"] = known
