"""Estimates of programs that are put together in unusual ways: each kind that counters of others get wrong, or that ours once did."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.nn.utils import parametrizations, prune  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from flopwatch import estimate  # noqa: E402
from flopwatch.errors import UsageError  # noqa: E402
from flopwatch.record import Record  # noqa: E402
from tests.following import WAYS, followed, function, mac  # noqa: E402

pytestmark = pytest.mark.torch

BATCH, IN, OUT = 2, 6, 8
DENSE = BATCH * IN * OUT
Make = Callable[[], Any]


def numbers(*sizes: int) -> torch.Tensor:
    return torch.rand(sizes)


def dense(inputs: int = IN, outputs: int = OUT) -> nn.Linear:
    return nn.Linear(inputs, outputs)


class Body(nn.Module):
    """A dense layer, and a function of it and the arguments for a forward."""

    def __init__(self, body: Callable[..., Any], inputs: int = IN, outputs: int = OUT) -> None:
        super().__init__()
        self.dense = dense(inputs, outputs)
        self.body = body

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.body(self.dense, *args, **kwargs)


# --- one module, used in many ways


def shared() -> nn.Module:
    one = dense(IN, IN)
    return nn.Sequential(one, one, nn.Sequential(one))


def hooked() -> nn.Module:
    model = dense()
    model.register_forward_pre_hook(lambda module, args: (args[0] @ torch.ones(IN, IN),))
    model.register_forward_hook(lambda module, args, output: output @ torch.ones(OUT, OUT))
    return model


def pruned() -> nn.Module:
    model = dense()
    prune.l1_unstructured(model, "weight", 0.5)
    return model


def scripted_within() -> nn.Module:
    return nn.Sequential(dense(), torch.jit.script(dense(OUT, IN)))


USES: dict[str, tuple[Make, int]] = {
    "shared by three": (shared, 3 * BATCH * IN * IN),
    "forward called by name": (lambda: Body(lambda layer, x: layer.forward(x) + layer(x)), 2 * DENSE),
    "wrapped for several devices": (lambda: nn.DataParallel(dense()), DENSE),
    "wrapped within": (lambda: nn.Sequential(nn.DataParallel(dense()), dense(OUT, IN)), 2 * DENSE),
    "hooks that multiply": (hooked, DENSE + BATCH * IN * IN + BATCH * OUT * OUT),
    "weights with a norm": (lambda: parametrizations.weight_norm(dense()), DENSE),
    "pruned": (pruned, DENSE),
    "scripted within": (scripted_within, 2 * DENSE),
    "traced": (lambda: torch.jit.trace(dense(), numbers(BATCH, IN)), DENSE),
    "compiled": (lambda: torch.compile(dense(), backend="eager"), DENSE),
    "compiled within": (lambda: nn.Sequential(torch.compile(dense(), backend="eager"), dense(OUT, IN)), 2 * DENSE),
    "exported": (lambda: torch.export.export(dense().eval(), (numbers(BATCH, IN),)), DENSE),
    "a graph": (lambda: torch.fx.symbolic_trace(nn.Sequential(dense(), nn.ReLU())), DENSE),
}


@pytest.mark.parametrize("case", USES)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_a_module_counts_as_often_as_it_works(case: str) -> None:
    make, expected = USES[case]
    assert mac(make(), numbers(BATCH, IN)) == expected


# --- what goes in and comes out


@dataclass
class Given:
    x: torch.Tensor
    name: str = ""


X = numbers(BATCH, IN)
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "a dictionary": (lambda layer, x: {"y": layer(x["x"])}, ({"x": X},), {}),
    "a list": (lambda layer, x: [layer(x[0])], ([X],), {}),
    "a dataclass": (lambda layer, x: Given(layer(x.x)), (Given(X),), {}),
    "by name alone": (lambda layer, *, x, times: layer(x) * times, (), {"x": X, "times": 3}),
    "nested": (lambda layer, x: {"a": [{"b": layer(x["a"][0]["b"])}]}, ({"a": [{"b": X}]},), {}),
    "None among them": (lambda layer, mask, x: layer(x), (None, X), {}),
    "a meta tensor": (lambda layer, x: layer(x), (X.to("meta"),), {}),
    "nothing at all": (lambda layer: layer(torch.ones(BATCH, IN)), (), {}),
    "constants made within": (lambda layer, x: layer(x + torch.arange(IN) * torch.rand(IN)), (X,), {}),
    "a look at a mask": (lambda layer, x: layer(x[torch.tensor([True, True])]), (X,), {}),
    "a look at the data": (lambda layer, x: layer(x[x[:, 0] >= 0]), (X,), {}),
    "a number from the data": (lambda layer, x: layer(x * x.sum().item()), (X,), {}),
    "written in place": (lambda layer, x: layer(x.add_(1)), (X,), {}),
    "written in place, and looked at": (lambda layer, x: layer(x.add_(1)) if float(x.sum()) else x, (X,), {}),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls_of_all_kinds(case: str) -> None:
    body, args, kwargs = CALLS[case]
    before = X.clone()
    assert mac(Body(body), *args, **kwargs) == DENSE
    assert torch.equal(X, before)


def test_nothing_goes_through_an_empty_batch() -> None:
    assert mac(dense(), numbers(0, IN)) == 0
    assert mac(nn.Bilinear(3, 4, 5), numbers(0, 3), numbers(0, 4)) == 0


# --- derivatives of other kinds


class Forces(nn.Module):
    """The gradient of an energy by its input, as models of molecules give it; with `switch` gradients are switched on for it."""

    def __init__(self, switch: bool) -> None:
        super().__init__()
        self.inner, self.outer, self.switch = dense(), dense(OUT, 1), switch

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.set_grad_enabled(self.switch or torch.is_grad_enabled()):
            x = x.requires_grad_()
            energy = self.outer(self.inner(x).tanh()).sum()
            force: torch.Tensor = torch.autograd.grad(energy, x, create_graph=self.training)[0]
        return force


@pytest.mark.parametrize("switch", [False, True])
def test_an_inference_may_need_gradients(switch: bool) -> None:
    energy = BATCH * IN * OUT + BATCH * OUT
    assert mac(Forces(switch), X) == 2 * energy


WEIGHT = numbers(IN, OUT)
TRANSFORMS: dict[str, tuple[Callable[..., Any], int]] = {
    "gradient": (lambda x, w: torch.func.grad(lambda w: (x @ w).square().sum())(w), 2 * DENSE),
    "backward": (lambda x, w: torch.func.vjp(lambda w: x @ w, w)[1](x.new_ones(BATCH, OUT))[0], 2 * DENSE),
    "row by row": (lambda x, w: torch.vmap(lambda row, w: row @ w, (0, None))(x, w), DENSE),
    "gradient of each sample": (
        lambda x, w: torch.vmap(torch.func.grad(lambda w, x: (x @ w).square().sum()), (None, 0))(w, x),
        2 * DENSE,
    ),
}


@pytest.mark.parametrize("case", TRANSFORMS)
def test_transformed_functions(case: str) -> None:
    body, expected = TRANSFORMS[case]
    for way in WAYS:
        assert followed(way, function(body), X, WEIGHT)[0] == expected


def test_a_model_called_with_other_parameters() -> None:
    layer = dense()
    doubled = {name: 2 * value for name, value in layer.named_parameters()}
    assert mac(lambda x: torch.func.functional_call(layer, doubled, (x,)), X) == DENSE


# --- loops and conditions that PyTorch knows as operators


def test_loops_and_conditions() -> None:
    from torch._higher_order_ops import map as each
    from torch._higher_order_ops import scan, while_loop

    square, rows = numbers(IN, IN), numbers(5, BATCH, IN)
    once = BATCH * IN * IN

    def loop(x: torch.Tensor, w: torch.Tensor) -> Any:
        return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x @ w), (torch.zeros((), dtype=torch.long), x))

    def carried(rows: torch.Tensor, w: torch.Tensor) -> Any:
        return scan(lambda carry, x: (carry @ w + x, carry.clone()), torch.zeros(BATCH, IN), rows)

    assert mac(function(loop), X, square) == 3 * once
    assert mac(function(lambda rows, w: each(lambda row, w: row @ w, rows, w)), rows, square) == 5 * once
    assert mac(function(carried), rows, square) == 5 * once
    either = function(lambda x, w: torch.cond(x.sum() > 0, lambda x, w: x @ w, lambda x, w: (x @ w) @ w, (x, w)))
    assert mac(either, X, square) == 2 * once


# --- training


def test_only_what_is_trained_is_differentiated() -> None:
    layers = [dense(IN, OUT), dense(OUT, OUT), dense(OUT, IN)]
    first, second, third = BATCH * IN * OUT, BATCH * OUT * OUT, BATCH * OUT * IN
    forward = first + second + third

    def trained() -> int:
        return estimate(nn.Sequential(*layers), X, train=True).mac

    assert trained() == forward + first + 2 * second + 2 * third  # nobody wants the gradient of the input
    layers[0].requires_grad_(False)
    layers[1].requires_grad_(False)
    assert trained() == forward + third
    layers[1].requires_grad_(True)
    assert trained() == forward + second + 2 * third


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_are_computed_twice(reentrant: bool) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.inner = dense(IN, IN), nn.Sequential(dense(), nn.ReLU(), dense(OUT, IN))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = checkpoint(self.inner, self.before(x), use_reentrant=reentrant)
            return result

    before, inner = BATCH * IN * IN, DENSE
    forward = before + 2 * inner
    # Without reentry it stops when all that the backward needs is there: the last product is not.
    again = 2 * inner if reentrant else inner
    assert estimate(Checkpointed(), X, train=True).mac == forward + again + before + 2 * 2 * inner


def test_hooks_on_gradients_are_called() -> None:
    plain, hooked = dense(), dense()
    hooked.weight.register_hook(lambda gradient: gradient * 2)

    def flop(model: nn.Module) -> int:
        return sum(estimate(model, X, train=True).flop().values())

    assert flop(hooked) == flop(plain) + IN * OUT


OPTIMIZERS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_functions_leave_optimizers_and_schedules_alone(name: str) -> None:
    model = nn.Sequential(dense(), nn.ReLU(), dense(OUT, IN))
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def step(x: torch.Tensor) -> None:
        for _ in range(3):  # gradients are accumulated
            model(x).square().mean().backward()
        optimizer.step()
        schedule.step()

    found = [copy.deepcopy(each.state_dict()) for each in (model, optimizer, schedule)]
    record = estimate(step, X)
    assert (record.mac, record.unknown) == (3 * (2 * DENSE + DENSE + 2 * DENSE), ())
    assert estimate(step, X).tally == record.tally
    after = [each.state_dict() for each in (model, optimizer, schedule)]
    assert str(after[1:]) == str(found[1:])
    assert all(torch.equal(after[0][key], found[0][key]) for key in found[0])
    assert all(parameter.grad is None for parameter in model.parameters())


# --- what is not known, and what goes wrong


@torch.library.custom_op("flopwatch_tests::described", mutates_args=())
def described(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


described.register_fake(torch.empty_like)


@torch.library.custom_op("flopwatch_tests::undescribed", mutates_args=())
def undescribed(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@pytest.mark.parametrize("operator", [described, undescribed])
def test_operators_of_others_are_unknown_by_name_and_place(operator: Any) -> None:
    model = nn.Sequential(dense(IN, IN), function(operator), function(lambda x: operator(operator(x))))
    record = estimate(model, X)
    (unknown,) = record.unknown
    assert unknown.name == f"flopwatch_tests::{operator._name.rpartition('::')[2]}"
    assert (unknown.count, unknown.layers, record.mac) == (3, ("1", "2"), BATCH * IN * IN)


def test_products_that_nobody_can_see_are_unknown() -> None:
    with pytest.warns(FutureWarning):
        scripted = torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval())
        fast = torch.jit.optimize_for_inference(scripted)
    record = estimate(fast, numbers(1, 3, 8, 8))
    assert [each.name for each in record.unknown] == ["prim::mkldnn_convolution"]


class Raises(nn.Module):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.layers, self.error = nn.Sequential(dense(), nn.BatchNorm1d(OUT), nn.Dropout()), error

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = self.layers(x)
        raise self.error


def state_of(model: nn.Module) -> tuple[Any, ...]:
    return (
        [(name, value.tolist()) for name, value in model.state_dict().items()],
        [(module.training, len(module._forward_hooks), sorted(vars(module))) for module in model.modules()],
        [(parameter.requires_grad, id(parameter), id(parameter.grad)) for parameter in model.parameters()],
        torch.get_rng_state().tolist(),
        (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        {module: sorted(vars(module)) for module in (torch.Tensor, functional, nn.Module)},
    )


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize(
    "error", [ValueError("no"), RuntimeError("no"), KeyboardInterrupt(), StopIteration()], ids=repr
)
def test_a_model_that_raises_is_left_as_it_was(error: BaseException, train: bool) -> None:
    model = Raises(error).train()
    model.layers[1].eval()
    model.layers[0].weight.requires_grad_(False)
    model.layers[0].bias.grad = torch.ones(OUT)
    before = state_of(model)
    for _ in range(2):  # the same object, again
        with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else UsageError):
            estimate(model, X, train=train)
        assert state_of(model) == before
    assert mac(dense(), X) == DENSE


def test_a_call_that_no_formula_is_made_for_is_unknown() -> None:
    from flopwatch.estimating import Estimation
    from flopwatch.events import Op

    estimation = Estimation()
    estimation.see(Op("aten::mm", {"self": 3, "mat2": None}))
    assert [each.name for each in estimation.unknown] == ["aten::mm"]
    assert isinstance(estimate(dense(), X), Record)
