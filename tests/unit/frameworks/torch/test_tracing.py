"""Following a model finds every operator in its place, and leaves the model as it was."""

from __future__ import annotations

import copy
import gc
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import flopwatch  # noqa: E402
from flopwatch import estimate  # noqa: E402
from flopwatch.errors import UsageError  # noqa: E402
from flopwatch.events import Op  # noqa: E402
from flopwatch.frameworks import BACKWARD, FORWARD, OPTIMIZER, OUTSIDE, ROOT, Traced  # noqa: E402
from flopwatch.frameworks.torch import TorchHooks  # noqa: E402
from flopwatch.frameworks.torch.running import steps  # noqa: E402
from flopwatch.frameworks.torch.tracing import trace  # noqa: E402
from flopwatch.frameworks.torch.tracing.programs import subject_of  # noqa: E402
from flopwatch.scope import Scopes  # noqa: E402
from tests.following import function, mac, macs  # noqa: E402

pytestmark = pytest.mark.torch

BATCH, IN, HIDDEN, OUT = 2, 3, 5, 7


def numbers(*sizes: int) -> torch.Tensor:
    return torch.ones(sizes)


def perceptron(**options: Any) -> nn.Sequential:
    return nn.Sequential(nn.Linear(IN, HIDDEN, **options), nn.ReLU(), nn.Linear(HIDDEN, OUT, **options))


FIRST, SECOND = BATCH * IN * HIDDEN, BATCH * HIDDEN * OUT


def traced(program: Any, *args: Any, train: bool = False, **kwargs: Any) -> tuple[list[Op], Traced]:
    ops: list[Op] = []
    found = trace(subject_of(program, args, kwargs), ops.append, train=train)
    return ops, found


def how(program: Any, *args: Any, **kwargs: Any) -> str:
    return traced(program, *args, **kwargs)[1].how


class Net(nn.Module):
    """Layers of many kinds: shared, entered twice, passed by, with statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.shared = nn.Conv2d(4, 4, 1, bias=False)
        self.same = self.shared
        self.norm.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.norm(self.conv(x)))
        x = self.same(self.shared(x)) + self.shared.forward(x)
        return x.mean((2, 3))


IMAGE = (BATCH, 3, 6, 6)


# --- places


@pytest.mark.parametrize("train", [False, True])
def test_places_are_those_of_a_measurement(train: bool) -> None:
    subject = subject_of(Net(), (numbers(*IMAGE),), {})
    labels: set[int] = set()
    with steps(subject, train=train) as step:
        scopes = Scopes(labels.add)
        with TorchHooks(subject.model, scopes):
            step()
    measured = {scopes.scope(label) for label in labels}
    ops, _ = traced(subject.model, numbers(*IMAGE), train=train)
    estimated = {op.scope for op in ops}
    assert estimated <= measured
    # Nodes that hand a gradient on call no operator.
    silent = {scope.op for scope in measured - estimated}
    assert silent <= {"", "AddBackward0"}


def test_operators_are_named_by_the_outermost() -> None:
    ops, _ = traced(perceptron(), numbers(BATCH, IN), train=True)
    products = [(op.name, op.scope.op, op.scope.layer, op.scope.function) for op in ops if "mm" in op.name]
    assert products == [
        ("aten::addmm", "aten::linear", "0", FORWARD),
        ("aten::addmm", "aten::linear", "2", FORWARD),
        ("aten::mm", "AddmmBackward0", "2", BACKWARD),
        ("aten::mm", "AddmmBackward0", "2", BACKWARD),
        ("aten::mm", "AddmmBackward0", "0", BACKWARD),
    ]
    assert {op.scope.function for op in ops if op.scope.layer == OUTSIDE} == {FORWARD, BACKWARD, OPTIMIZER}


def test_arguments_have_names_and_defaults() -> None:
    ops, _ = traced(torch.add, numbers(2, 3), numbers(3))
    (op,) = ops
    assert op.name == "aten::add"
    assert list(op.arguments) == ["self", "other", "alpha"]
    assert (op.arguments["self"].shape, op.arguments["other"].shape, op.arguments["alpha"]) == ((2, 3), (3,), 1)
    assert [each.shape for each in op.outputs] == [(2, 3)]


def test_expanded_views_store_less_than_they_show() -> None:
    ops, _ = traced(lambda x: x.expand(100, 3).neg(), numbers(1, 3))
    (negation,) = [op for op in ops if op.name == "aten::neg"]
    assert (negation.arguments["self"].shape, negation.arguments["self"].stored) == ((100, 3), 3)
    assert negation.read == 4 * 3


def test_modules_that_are_shared_or_entered_twice() -> None:
    once = BATCH * 6 * 6 * 4 * 4
    found = estimate(Net(), numbers(*IMAGE))
    assert macs(found, "layer") == {"conv": BATCH * 6 * 6 * 9 * 3 * 4, "shared": 3 * once}
    assert [layer.name for layer in found.layers] == [ROOT, "conv", "norm", "shared"]


def test_a_plain_function_works_outside_any_module() -> None:
    assert macs(estimate(torch.mm, numbers(3, 4), numbers(4, 5)), "layer") == {OUTSIDE: 3 * 4 * 5}


def test_a_function_knows_the_modules_that_it_holds() -> None:
    net = perceptron()
    assert macs(estimate(lambda x: net(x), numbers(BATCH, IN)), "layer") == {"net.0": FIRST, "net.2": SECOND}
    assert macs(estimate(net.forward, numbers(BATCH, IN)), "layer") == {"Sequential.0": FIRST, "Sequential.2": SECOND}


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputation_is_backward_of_the_layer_that_is_computed_again(reentrant: bool) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = perceptron()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = checkpoint(self.block, x, use_reentrant=reentrant)
            return result

    record = estimate(Checkpointed(), numbers(BATCH, IN).requires_grad_(), train=True)
    again = {(cell.layer, cell.mac) for cell in record.cells if cell.function == BACKWARD and cell.op == "aten::linear"}
    # Without the reentrant one recomputation ends when all that backward needs is there: the last product is not.
    assert again == ({("block.0", FIRST), ("block.2", SECOND)} if reentrant else {("block.0", FIRST), ("block.2", 0)})


def test_derivatives_of_derivatives() -> None:
    def penalty(x: torch.Tensor, w: torch.Tensor) -> None:
        (slope,) = torch.autograd.grad((x @ w).square().sum(), w, create_graph=True)
        slope.square().sum().backward()

    product = BATCH * IN * OUT
    # y = xw; slope = x'g; then g' = x s', and w' = x' g'.
    record = estimate(penalty, numbers(BATCH, IN), numbers(IN, OUT).requires_grad_())
    assert record.mac == 4 * product


def test_functional_transforms() -> None:
    w, x = numbers(IN, OUT), numbers(BATCH, IN)
    product = BATCH * IN * OUT
    assert mac(lambda w, x: torch.func.grad(lambda w: (x @ w).square().sum())(w), w, x) == 2 * product
    assert mac(lambda w, x: torch.func.vmap(lambda row: row @ w)(x), w, x) == product
    net = perceptron()
    assert mac(lambda x: torch.func.functional_call(net, dict(net.named_parameters()), (x,)), x) == FIRST + SECOND


# --- programs of all kinds


def programs() -> dict[str, Any]:
    net = perceptron().eval()
    made = perceptron().eval()
    made.compile(backend="eager")
    compiled = torch.compile(net, backend="eager")
    compiled(numbers(BATCH, IN))
    return {
        "eager": net,
        "compiled": compiled,
        "compiled in place": made,
        "compiled function": torch.compile(lambda x: net(x), backend="eager"),
        "compiled part": nn.Sequential(torch.compile(net, backend="eager")),
        "scripted": torch.jit.script(net),
        "traced": torch.jit.trace(net, numbers(BATCH, IN)),
        "frozen": torch.jit.freeze(torch.jit.script(net)),
        "exported": torch.export.export(net, (numbers(BATCH, IN),)),
        "exported module": torch.export.export(net, (numbers(BATCH, IN),)).module(),
        "data parallel": nn.DataParallel(net),
        "parametrized": nn.Sequential(nn.utils.parametrizations.weight_norm(copy.deepcopy(net[0])), *net[1:]),
    }


@pytest.mark.filterwarnings("ignore")
def test_programs_of_all_kinds_cost_the_same() -> None:
    found = {name: mac(program, numbers(BATCH, IN)) for name, program in programs().items()}
    assert found == dict.fromkeys(found, FIRST + SECOND)


def test_compiled_and_exported_models_have_layers() -> None:
    net = perceptron().eval()
    inside = {"0": FIRST, "2": SECOND}
    assert macs(estimate(torch.compile(net), numbers(BATCH, IN)), "layer") == inside
    assert macs(estimate(torch.export.export(net, (numbers(BATCH, IN),)), numbers(BATCH, IN)), "layer") == inside
    part = nn.Sequential(torch.compile(net), nn.Linear(OUT, 1))
    assert [layer.name for layer in estimate(part, numbers(BATCH, IN)).layers] == [ROOT, "0", "0.0", "0.1", "0.2", "1"]


def test_wrappers_that_split_batches_keep_their_names() -> None:
    both = nn.ModuleDict({"a": nn.DataParallel(nn.Linear(196, 256)), "b": nn.Linear(256, 10)})

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.both = both

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.both["b"](self.both["a"](x))
            return result

    found = macs(estimate(Wrapped(), numbers(64, 196)), "layer")
    assert found == {"both.a.module": 64 * 196 * 256, "both.b": 64 * 256 * 10}


def test_any_signature() -> None:
    def call(pair: Any, table: dict[str, Any], *, scale: torch.Tensor, flag: bool) -> Any:
        return {"out": (pair[0] @ table["w"][0]) * scale} if flag else None

    arguments = ([numbers(BATCH, IN)], {"w": (numbers(IN, OUT),)})
    assert mac(call, *arguments, scale=numbers(OUT), flag=True) == BATCH * IN * OUT


def test_automatic_casts_change_the_datatype_and_nothing_else() -> None:
    net = perceptron().eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        record = estimate(net, numbers(BATCH, IN))
    assert record.mac == FIRST + SECOND
    assert "bf16" in {str(dtype) for dtype in record.flop()}


def test_a_batch_without_elements_costs_nothing() -> None:
    assert mac(perceptron(), numbers(0, IN)) == 0


def test_huge_shapes_do_not_overflow() -> None:
    large = torch.empty(10**12, IN, device="meta")
    assert mac(perceptron(), large) == 10**12 * (IN * HIDDEN + HIDDEN * OUT)
    with pytest.raises(UsageError, match="overflow"):
        estimate(lambda x: x[:, None] * x[None, :], torch.empty(2**40, device="meta"))


# --- what programs do with data


def test_constants_shapes_and_masks_can_be_looked_at() -> None:
    class Looks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(IN, IN)
            self.times = torch.tensor([2, 3])

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            ones = torch.ones(BATCH, dtype=torch.bool, device=x.device)
            if mask.to(x.device).all() and ones.all() and torch.arange(3, device=x.device).sum().item() == 3:
                x = self.layer(x)
            held = torch.zeros(BATCH, IN)  # on the CPU, as its author had it
            held[:, :] = x
            return self.layer(held.repeat(self.times.tolist()[1], 1)[mask.repeat(3)])

    mask = torch.tensor([True, True])
    assert mac(Looks(), numbers(BATCH, IN), mask) == (1 + 3) * BATCH * IN * IN
    assert how(Looks(), numbers(BATCH, IN), mask) == "on meta tensors: nothing was computed"


def test_a_program_that_looks_at_its_activations_is_run() -> None:
    class Repeats(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(IN, IN, bias=False)
            nn.init.eye_(self.layer.weight)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            while x.sum() < 4 * BATCH * IN:
                x = self.layer(x) * 2
            return x

    assert how(Repeats(), numbers(BATCH, IN)).startswith("by a real run, since ")
    assert mac(Repeats(), numbers(BATCH, IN)) == 2 * BATCH * IN * IN


def test_what_was_written_to_a_real_tensor_may_not_be_looked_at() -> None:
    def count(x: torch.Tensor) -> torch.Tensor:
        held = torch.zeros(4)
        held.copy_(x)
        return x.outer(x) if held.sum() > 0 else x

    assert how(count, numbers(4)).startswith("by a real run, since ")


def test_a_model_without_weights_is_made_again_if_it_looks_at_data() -> None:
    record = flopwatch.estimate("fasterrcnn_mobilenet_v3_large_320_fpn")
    assert "by a real run, since" in record.notes[0]
    assert record.mac > 0


def test_unknown_operators_are_counted_and_placed() -> None:
    library = torch.library.Library("flopwatch_tests", "DEF")
    library.define("mystery(Tensor x) -> Tensor")
    library.impl("mystery", lambda x: x.clone(), "CompositeExplicitAutograd")
    try:

        class Mysterious(nn.Module):
            def forward(self, x: torch.Tensor) -> Any:
                return torch.ops.flopwatch_tests.mystery(torch.ops.flopwatch_tests.mystery(x))

        record = estimate(nn.Sequential(nn.Linear(IN, OUT), Mysterious()), numbers(BATCH, IN))
    finally:
        library._destroy()
    (unknown,) = record.unknown
    assert (unknown.name, unknown.count, unknown.layers) == ("flopwatch_tests::mystery", 2, ("1",))
    assert record.mac == BATCH * IN * OUT
    assert record.coverage < 1


# --- memory


def test_activations_live_until_nobody_holds_them() -> None:
    width = 1000
    chain = nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(4)))
    row = 4 * BATCH * width
    _, inference = traced(chain, numbers(BATCH, width))
    # The input of a layer, but for that of the model, and its output.
    assert (inference.activations, inference.at) == (2 * row, "1")
    assert (inference.parameters, inference.buffers) == (4 * 4 * width * width, 0)


def test_training_holds_what_backward_needs() -> None:
    block = 4 * 50 * 20

    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(5):
            x = x.exp()
        return x

    # Without gradients the input and output of one step, with them the output of each.
    assert traced(torch.no_grad()(chain), numbers(50, 20).requires_grad_())[1].activations == 2 * block
    assert traced(chain, numbers(50, 20).requires_grad_())[1].activations == 5 * block

    def step(x: torch.Tensor, w: torch.Tensor) -> None:
        (x.exp().exp() * w).sum().backward()

    # At the second exponential's gradient: both results, what comes in and what goes out; the loss and its gradient, a number each.
    assert traced(step, numbers(50, 20).requires_grad_(), numbers(50, 20))[1].activations == 4 * block + 2 * 4


def test_views_share_what_they_show() -> None:
    _, found = traced(lambda x: (x + 1).view(-1)[:5].unsqueeze(0).expand(100, 5), numbers(BATCH, 50))
    assert found.activations == 4 * BATCH * 50


def test_lists_of_results_are_alive_together() -> None:
    _, found = traced(lambda x: [x * i for i in range(3)], numbers(BATCH, 50))
    assert found.activations == 3 * 4 * BATCH * 50


# --- nothing is touched


def state(model: nn.Module) -> dict[str, Any]:
    """Everything about a model that could be changed, by identity and by content."""
    return {
        "parameters": [(name, id(each), each.data_ptr(), each._version) for name, each in model.named_parameters()],
        "buffers": [(name, id(each), each.tolist()) for name, each in model.named_buffers()],
        "values": {name: each.tolist() for name, each in model.state_dict().items()},
        "gradients": [(id(each.grad), each.requires_grad) for each in model.parameters()],
        "training": [module.training for module in model.modules()],
        "hooks": [
            [list(value) for name, value in vars(module).items() if "hooks" in name] for module in model.modules()
        ],
        "attributes": [[(name, id(value)) for name, value in vars(module).items()] for module in model.modules()],
        "forward": [(type(module).forward, type(module).__call__) for module in model.modules()],
        "random": torch.get_rng_state().tolist(),
        "torch": {name: id(value) for name, value in vars(torch).items()},
        "functional": {name: id(value) for name, value in vars(functional).items()},
        "modes": torch._C._len_torch_dispatch_stack(),
        "inference": (torch.is_inference_mode_enabled(), torch.is_grad_enabled()),
    }


def busy() -> nn.Module:
    """A model in the middle of its life: part frozen and in evaluation, with gradients and a hook."""
    model = Net()
    model.norm.eval()
    model.conv.weight.grad = torch.ones_like(model.conv.weight)
    model.conv.register_forward_hook(lambda *_: None)
    return model


@pytest.mark.parametrize("train", [False, True])
def test_the_model_is_as_it_was(train: bool) -> None:
    model = busy()
    before = state(model)
    record = estimate(model, numbers(*IMAGE), train=train)
    assert record.mac > 0
    assert state(model) == before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("train", [False, True])
def test_the_model_is_as_it_was_when_it_raised(error: type[BaseException], train: bool) -> None:
    model = busy()

    def fail(*_: Any) -> None:
        raise error("no further")

    model.same.register_forward_pre_hook(fail)
    before = state(model)
    with pytest.raises((UsageError, KeyboardInterrupt), match="no further"):
        estimate(model, numbers(*IMAGE), train=train)
    assert state(model) == before
    assert model.conv(numbers(*IMAGE)).isfinite().all()


@pytest.mark.filterwarnings("ignore")
def test_what_a_forward_leaves_in_its_modules_is_taken_back() -> None:
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.utils.weight_norm(nn.Linear(IN, OUT))  # computes its weight anew at each call
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            self.last = self.layer(x)
            return self.last

    model = Keeps()
    before = state(model)
    assert mac(model, numbers(BATCH, IN)) == BATCH * IN * OUT
    assert state(model) == before
    assert model.layer.weight.device.type == "cpu"
    assert not hasattr(model, "last")


def test_hooks_of_the_user_run() -> None:
    model, seen = perceptron(), []
    model[0].register_forward_pre_hook(lambda module, arguments: seen.append(("before", arguments[0].shape)))
    model[2].register_forward_hook(lambda module, arguments, output: seen.append(("after", output.shape)))
    model[0].weight.register_hook(lambda gradient: seen.append(("gradient", gradient.shape)))
    estimate(model, numbers(BATCH, IN))
    assert seen == [("before", (BATCH, IN)), ("after", (BATCH, OUT))]


def test_it_can_be_asked_within_a_training_loop() -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loop(watched: bool) -> list[float]:
        torch.manual_seed(0)
        nn.init.ones_(model[0].weight)
        nn.init.ones_(model[2].weight)
        nn.init.zeros_(model[0].bias)
        nn.init.zeros_(model[2].bias)
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.rand(BATCH, IN)).square().mean()
            if watched:
                estimate(model, numbers(BATCH, IN), train=True)
            loss.backward()
            if watched:
                estimate(model, numbers(BATCH, IN))
            optimizer.step()
        return [each.sum().item() for each in model.parameters()]

    assert loop(watched=True) == loop(watched=False)


@pytest.mark.parametrize("looks", [False, True])
def test_a_training_step_of_the_users_own(looks: bool) -> None:
    model = perceptron(bias=False)
    optimizer = torch.optim.Adam(model.parameters())

    def step(x: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if looks:
            loss.item()

    step(numbers(BATCH, IN))
    before = state(model), copy.deepcopy(optimizer.state_dict())
    record = estimate(step, numbers(BATCH, IN))
    assert ("by a real run" in record.notes[0]) is looks
    assert record.mac == 2 * FIRST + 3 * SECOND
    # One root for each parameter and step, at least: the optimizer was followed too.
    weights = IN * HIDDEN + HIDDEN * OUT
    roots = sum(
        each.count
        for cell in record.cells
        if cell.function == OPTIMIZER
        for each in cell.operations
        if each.operation == "sqrt"
    )
    assert roots == weights
    after = state(model), optimizer.state_dict()
    assert after[0] == before[0]
    assert str(after[1]) == str(before[1])
    assert optimizer.param_groups[0]["params"][0] is model[0].weight


def test_tensors_that_a_function_holds_get_no_gradient() -> None:
    weight = numbers(IN, OUT).requires_grad_()
    assert mac(lambda x: (x @ weight).sum().backward(), numbers(BATCH, IN)) == 2 * BATCH * IN * OUT
    assert weight.grad is None


def test_estimates_within_estimates() -> None:
    inner, found = perceptron(), []

    def outer(x: torch.Tensor) -> torch.Tensor:
        found.append(estimate(inner, numbers(BATCH, IN)))
        return x @ x

    assert mac(outer, numbers(4, 4)) == 4 * 4 * 4
    assert macs(found[0], "layer") == {"0": FIRST, "2": SECOND}
    assert macs(found[0], "op") == {"aten::linear": FIRST + SECOND}


def test_estimates_within_modes_of_others() -> None:
    with torch.inference_mode():
        assert mac(perceptron(), numbers(BATCH, IN), train=True) == 2 * FIRST + 3 * SECOND
    with FlopCounterMode(display=False) as other:
        assert mac(perceptron(), numbers(BATCH, IN)) == FIRST + SECOND
    assert other.get_total_flops() == 0


def test_threads_do_not_meet() -> None:
    found: dict[int, list[int]] = {width: [] for width in range(1, 5)}

    def work(width: int) -> None:
        for _ in range(3):
            found[width].append(mac(nn.Linear(IN, width), numbers(BATCH, IN)))

    threads = [threading.Thread(target=work, args=(width,)) for width in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {width: [BATCH * IN * width] * 3 for width in range(1, 5)}


def test_no_weights_are_kept_alive() -> None:
    model = perceptron()
    estimate(model, numbers(BATCH, IN), train=True)
    freed: list[str] = []
    torch.utils.weak.weakref.finalize(model[0].weight, freed.append, "weight")
    del model
    gc.collect()
    assert freed == ["weight"]


# --- what goes wrong


def test_a_shape_that_the_model_refuses_is_its_own_error_with_the_shapes() -> None:
    with pytest.raises(UsageError) as raised:
        estimate(perceptron(), numbers(BATCH, IN + 1))
    assert str(raised.value) == (
        "Sequential cannot run on input of 2x4, fp32. RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x4 and 3x5)"
    )


def test_lazy_models_get_their_parameters_in_a_copy() -> None:
    model = nn.Sequential(nn.LazyConv2d(OUT, 3), nn.Flatten(), nn.LazyLinear(IN))
    assert mac(model, numbers(BATCH, IN, 5, 5)) == BATCH * (3 * 3) * 9 * IN * OUT + BATCH * (3 * 3 * OUT) * IN
    assert isinstance(model[0], nn.LazyConv2d)
    with pytest.raises(UsageError, match="shapes are not known yet"):
        estimate(model, numbers(BATCH, IN, 2, 2))


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(UsageError, match="It is a int"):
        estimate(3)
    with pytest.raises(UsageError, match="brings its own input"):
        estimate("resnet18", numbers(*IMAGE))


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_model_that_names_a_gpu_is_followed_without_one() -> None:
    assert mac(function(lambda x: x.cuda() @ x.cuda()), numbers(4, 4)) == 4 * 4 * 4


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_model_that_needs_a_gpu_gets_a_sentence() -> None:
    def ask(x: torch.Tensor) -> torch.Tensor:
        torch.cuda.synchronize()
        return x

    with pytest.raises(UsageError, match="needs CUDA, which is not to be had here"):
        estimate(ask, numbers(4, 4))


def test_there_must_be_something_to_train() -> None:
    with pytest.raises(UsageError, match="There is nothing to train"):
        estimate(lambda: None, train=True)


def test_the_loss_of_the_model_is_taken_if_it_has_one() -> None:
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(IN, OUT, bias=False), nn.Linear(IN, OUT, bias=False)

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"logits": self.unused(x), "loss": self.used(x).mean()}

    found = macs(estimate(WithLoss(), numbers(BATCH, IN), train=True), "layer")
    assert found == {"used": 2 * BATCH * IN * OUT, "unused": BATCH * IN * OUT}
