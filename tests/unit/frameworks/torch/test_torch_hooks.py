"""Every operation lands in exactly one row of each axis, and the hooks leave no trace."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from flopwatch.errors import UsageError  # noqa: E402
from flopwatch.frameworks import BACKWARD, FORWARD, OPTIMIZER, OUTSIDE, ROOT  # noqa: E402
from flopwatch.frameworks.torch import TorchHooks  # noqa: E402
from flopwatch.scope import Scopes  # noqa: E402
from tests.fake_torch import Cost, Machine, costly, work  # noqa: E402

pytestmark = pytest.mark.torch


def forward(model: nn.Module, *, observe: bool = True, **kwargs: Any) -> Machine:
    with Machine(model, observe=observe) as machine:
        model(torch.ones(2, 3), **kwargs)
    return machine


class Block(nn.Module):
    """Work before, between and after two children, the first of them used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Cost(1), Cost(2)

    def forward(self, x):
        work(4)
        x = self.first(x)
        work(8)
        x = self.second(x)
        work(16)
        return self.first(x)


BLOCK = {"first": 1 + 1, "second": 2}


def test_nested_models_and_a_module_used_twice():
    machine = forward(nn.Sequential(Block(), Cost(32), Block()))
    inner = {f"{index}.{name}": amount for index in (0, 2) for name, amount in BLOCK.items()}
    assert machine.rows("layer") == {"0": 4 + 8 + 16, "1": 32, "2": 4 + 8 + 16, **inner}


def test_the_own_work_of_the_model_and_work_outside():
    model = Block()
    with Machine(model) as machine:
        work(64)
        model(torch.ones(1))
        costly(torch.ones(1), 128)
    assert machine.rows("layer") == {ROOT: 4 + 8 + 16, OUTSIDE: 64 + 128, **BLOCK}
    assert machine.rows("function") == {FORWARD: machine.total}


def test_a_module_registered_twice_has_its_first_name():
    shared = Cost(1)
    machine = forward(nn.Sequential(shared, Cost(2), shared))
    assert machine.rows("layer") == {"0": 1 + 1, "1": 2}


def test_a_module_called_through_forward():
    class Direct(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Block()

        def forward(self, x):
            work(32)
            return self.part.second.forward(self.part.forward(x))

    rows = forward(Direct()).rows("layer")
    assert rows == {ROOT: 32, "part": 4 + 8 + 16, "part.first": 1 + 1, "part.second": 2 + 2}


def test_forward_of_a_base_class_is_the_same_layer():
    class Child(Cost):
        def forward(self, x):
            work(2)
            return super().forward(x)

    assert forward(nn.Sequential(Child(1), Cost(4))).rows("layer") == {"0": 1 + 2, "1": 4}


def test_a_forward_that_stands_in_the_object():
    model = nn.Sequential(Cost(1), Cost(2))
    model[0].forward = lambda x: work(8) or x
    before = [list(vars(module).items()) for module in model.modules()]
    assert forward(model).rows("layer") == {"0": 8, "1": 2}
    assert [list(vars(module).items()) for module in model.modules()] == before


def test_functions_inside_a_module_belong_to_it():
    class Functional(nn.Module):
        def forward(self, x):
            work(2)
            return costly(x, 1)

    machine = forward(nn.Sequential(Functional()))
    assert machine.rows("layer") == {"0": 3}
    assert machine.rows("op") == {"": 2, "_Costly": 1}


def test_hooks_of_the_user_belong_to_the_layer_they_are_on():
    model = nn.Sequential(Cost(1), Cost(2))
    model[0].register_forward_pre_hook(lambda module, args: work(4))
    model[0].register_forward_hook(lambda module, args, output: work(8))
    assert forward(model).rows("layer") == {"0": 1 + 4 + 8, "1": 2}


def test_an_exception_in_the_middle():
    class Failing(nn.Module):
        def forward(self, x):
            work(2)
            torch.mm(x, x)  # shapes that do not fit: the operator raises

    class Robust(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(Cost(1), Failing())

        def forward(self, x):
            with pytest.raises(RuntimeError):
                self.inner(x)
            work(4)
            return x

    assert forward(Robust()).rows("layer") == {ROOT: 4, "inner.0": 1, "inner.1": 2}
    model = nn.Sequential(Cost(1), Failing())
    with pytest.raises(RuntimeError, match="cannot be multiplied"), Machine(model) as machine:
        model(torch.ones(2, 3))
    assert machine.rows("layer") == {"0": 1, "1": 2}
    assert nn.Module.__call__.__name__ == "_wrapped_call_impl" and not hasattr(nn.Module.__call__, "__wrapped__")


def test_backward_belongs_to_the_layer_that_made_the_node():
    model = nn.Sequential(Block(), Cost(32))
    x = torch.ones(1, requires_grad=True)
    with Machine(model) as machine:
        costly(model(x), 64).backward()
    forwards = {"0": 4 + 8 + 16, "0.first": 2, "0.second": 2, "1": 32, OUTSIDE: 64}
    backwards = {"0.first": 2000, "0.second": 2000, "1": 32000, OUTSIDE: 64000}
    assert machine.rows("layer", "function") == {
        **{(layer, FORWARD): amount for layer, amount in forwards.items()},
        **{(layer, BACKWARD): amount for layer, amount in backwards.items()},
    }
    assert machine.rows("op") == {"": 4 + 8 + 16, "_Costly": 2 + 2 + 32 + 64, "_CostlyBackward": 100000}


def test_backward_of_a_graph_that_was_made_before_is_outside():
    model = Cost(1)
    y = model(torch.ones(1, requires_grad=True))
    with Machine(model) as machine:
        y.backward()
    assert machine.rows("layer", "function") == {(OUTSIDE, BACKWARD): 1000}


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputation_is_backward_of_its_layer(reentrant):
    class Square(Cost):
        def forward(self, x):
            return super().forward(x) ** 2  # saves its input, for which the forward pass is done again

    class Saving(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Sequential(Square(1), Square(2))

        def forward(self, x):
            return checkpoint(self.part, x * 1, use_reentrant=reentrant)

    model = Saving()
    x = torch.ones(1, requires_grad=True)
    with Machine(model) as machine:
        (model(x) ** 2).backward()
    assert machine.rows("layer", "function") == {
        ("part.0", FORWARD): 1,
        ("part.1", FORWARD): 2,
        ("part.0", BACKWARD): 1000 + 1,
        ("part.1", BACKWARD): 2000 + 2,
    }


def test_derivatives_of_derivatives_belong_to_the_layer():
    class Cubic(nn.Module):
        def forward(self, x):
            return x**3

    seen = []
    model = nn.Sequential(Cubic())
    x = torch.full((1,), 2.0, requires_grad=True)
    scopes = Scopes(lambda label: seen.append(scopes.scope(label)))
    with TorchHooks(model, scopes):
        (slope,) = torch.autograd.grad(model(x), x, create_graph=True)
        seen.clear()
        slope.backward()
    assert {scope.layer for scope in seen if scope.function == BACKWARD and scope.op != "AccumulateGrad"} == {"0"}


def test_gradients_are_gathered_in_the_layer_of_their_parameter():
    seen = []
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5))
    scopes = Scopes(lambda label: seen.append(scopes.scope(label)))
    with TorchHooks(model, scopes):
        model(torch.ones(2, 3)).sum().backward()
    gathered = [scope.layer for scope in seen if scope.op == "AccumulateGrad"]
    assert sorted(set(gathered)) == ["0", "1"]
    assert {scope.layer for scope in seen if scope.op == "AddmmBackward0"} == {"0", "1"}
    assert all(scope.function == BACKWARD for scope in seen if "Backward" in scope.op)


def test_steps_of_an_optimizer():
    class Step(torch.optim.SGD):
        def step(self, closure=None):
            work(7)
            return super().step(closure)

    model = nn.Linear(2, 2)
    optimizer = Step(model.parameters(), lr=0.1)
    with Machine(model) as machine:
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert machine.rows("layer", "function") == {(OUTSIDE, OPTIMIZER): 7}


def test_a_generator_keeps_the_balance():
    class Lazy(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Cost(1)

        def forward(self, x):
            for _ in range(2):
                x = self.part(x)
                yield x

    model = Lazy()
    with Machine(model) as machine:
        before = machine.scopes.current
        results = model(torch.ones(1))
        next(results)
        work(2)
        next(results)
        results.close()
        assert machine.scopes.current == before
    assert machine.rows("layer") == {"part": 1 + 1, OUTSIDE: 2}


def test_hooks_removed_half_way():
    class Leaving(nn.Module):
        def forward(self, x):
            work(1)
            machine.hooks.__exit__(None, None, None)
            work(2)
            return x

    model = nn.Sequential(Leaving(), Cost(4))
    with Machine(model) as machine:
        model(torch.ones(1))
    assert machine.rows("layer") == {"0": 1, "": 2 + 4}


def test_a_wrapper_put_on_top_of_ours_stays_and_ours_falls_silent():
    class Own(Cost):
        def forward(self, x):
            return super().forward(x)

    model = Own(1)
    machine = Machine(model)
    with machine:
        ours = Own.forward
        Own.forward = lambda self, x: ours(self, x)
    theirs = Own.forward
    model(torch.ones(1))
    assert Own.forward is theirs
    assert machine.rows("layer") == {}


def test_layers_are_seen_in_all_threads_and_operators_in_the_one_that_entered():
    model = nn.Sequential(Cost(1))
    with Machine(model) as machine:
        thread = threading.Thread(target=lambda: model(torch.ones(1, requires_grad=True)).backward())
        thread.start()
        thread.join()
    assert machine.rows("layer", "op") == {("0", ""): 1, (OUTSIDE, ""): 1000}


def test_hooks_cannot_be_entered_twice():
    machine = Machine(Cost(1))
    with machine, pytest.raises(UsageError):
        machine.hooks.__enter__()


def test_an_error_of_the_counter_comes_out_at_the_end():
    def settle(label):
        if scopes.scope(label).op:
            raise OverflowError("full")

    scopes = Scopes(settle)
    with pytest.raises(OverflowError), TorchHooks(nn.Linear(2, 2), scopes):
        torch.ones(2) + 1


def test_nothing_is_left_behind():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), Block())
    model[0].register_forward_hook(lambda *args: None)
    classes = [nn.Module, *{type(module) for module in model.modules()}, *torch.optim.Optimizer.__subclasses__()]
    classes_before = [dict(vars(cls)) for cls in classes]
    before = [(module, dict(vars(module)), copy.copy(module._forward_hooks)) for module in model.modules()]
    x = torch.ones(1, 3, 8, 8)
    model.eval()
    with torch.no_grad():
        expected = model(x)
        with Machine(model):
            assert torch.equal(model(x), expected)
    model.train()
    assert [dict(vars(cls)) for cls in classes] == classes_before
    for module, attributes, hooks in before:
        assert vars(module).keys() == attributes.keys()
        assert module._forward_hooks == hooks
    assert not nn.modules.module._global_forward_hooks and not nn.modules.module._global_forward_pre_hooks


def test_operators_through_a_dispatch_mode_say_so():
    model = nn.Sequential(Block(), Cost(32))
    x = torch.ones(1, requires_grad=True)
    with Machine(model, observe=False) as machine:
        model(x).backward()
    assert machine.rows("layer")["1"] >= 32
    assert "dispatch mode" in machine.hooks.notes[0]
