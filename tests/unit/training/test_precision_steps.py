"""What a step does at each precision, as Apex did it: casts, masters, scales, skipped steps, verdicts, resumed runs."""

from __future__ import annotations

import gc
import io
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402

from flopwatch.errors import CannotMeasureError, UsageError  # noqa: E402
from flopwatch.training.precision import PRESETS, Running, find, flags  # noqa: E402
from flopwatch.training.precision.scalers import LARGEST, WINDOW, Scaler  # noqa: E402
from flopwatch.training.precision.watching import Watching  # noqa: E402

pytestmark = pytest.mark.torch

CPU = [name for name in PRESETS if name != "tf32"]  # a CPU has none
BATCH, CLASSES = 8, 3


OPEN: list[weakref.ref[Running]] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the runs of a test, the last first."""
    yield
    while OPEN:
        run = OPEN.pop()()
        if run is not None:
            run.close()


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, CLASSES)
    )


def images() -> Any:
    return torch.randn(BATCH, 3, 6, 6, generator=torch.Generator().manual_seed(1))


def labels() -> Any:
    return torch.arange(BATCH) % CLASSES


def sgd(lr: float = 0.1) -> Callable[[list[nn.Parameter]], Any]:
    return lambda parameters: torch.optim.SGD(parameters, lr, momentum=0.9, weight_decay=1e-4)


def running(precision: str, model: nn.Module | None = None, make: Any = None, **options: Any) -> Running:
    run = Running(net() if model is None else model, make or sgd(), find(precision), "cpu", **options)
    OPEN.append(weakref.ref(run))
    return run


def one_step(run: Running, x: Any = None, worse: float = 1.0) -> bool:
    run.zero()
    outputs = run.forward(images() if x is None else x)
    run.backward(nn.functional.cross_entropy(outputs, labels()) * worse)
    return run.step()


def one_weight(precision: str, lr: float) -> Running:
    """A model that is one weight of 1, to be trained at the rate `lr`."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)
    return running(precision, model, lambda parameters: torch.optim.SGD(parameters, lr))


def descend(run: Running) -> None:
    """A step whose gradient is exactly 1."""
    run.zero()
    run.backward(run.forward(torch.ones(1, 1)).sum())
    assert run.step()


def all_state(run: Running) -> list[Any]:
    """Every tensor and number of a run, in order."""

    def walk(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            for each in value.values():
                yield from walk(each)
        elif isinstance(value, list | tuple):
            for each in value:
                yield from walk(each)
        else:
            yield value

    return list(walk(run.state_dict()))


def same(left: list[Any], right: list[Any]) -> bool:
    """Whether two states are equal to the bit."""
    return len(left) == len(right) and all(
        torch.equal(a, b) and a.dtype == b.dtype if isinstance(a, torch.Tensor) else a == b
        for a, b in zip(left, right, strict=True)
    )


# --- O2's masters -------------------------------------------------------------------------------------------------------------


def test_a_small_step_moves_the_master_and_not_the_weight() -> None:
    run = one_weight("O2,scaler=128", lr=2**-13)
    (weight, master) = run.masters.pairs[0]
    descend(run)
    assert master.item() == 1 - 2**-13
    assert weight.item() == 1  # fp16 has nothing between 1 and 1 - 2^-11
    for _ in range(7):
        descend(run)
    assert master.item() == weight.item() == 1 - 2**-10


def test_the_same_steps_without_masters_lead_nowhere() -> None:
    run = one_weight("O3", lr=2**-13)
    for _ in range(8):
        descend(run)
    assert run.module.weight.item() == 1


def test_masters_are_made_from_the_narrow_weights() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 1 + 2**-12)
    ((weight, master),) = running("O2", model).masters.pairs
    assert weight.item() == master.item() == 1


def test_gradients_of_several_backwards_are_added_in_fp32() -> None:
    run = one_weight("O2,scaler=1", lr=0.0)
    ((_, master),) = run.masters.pairs
    run.zero()
    for size in (2048.0, 1.0):
        run.backward(run.forward(torch.full((1, 1), size)).sum())
    run.unscale()
    assert master.grad.item() == 2048 + 1  # fp16 would have made it 2048


def test_under_no_sync_they_are_left_to_the_wrapper() -> None:
    class Wrapper(nn.Module):
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self.module = module
            self.require_backward_grad_sync = False

        def forward(self, x: Any) -> Any:
            return self.module(x)

    run = one_weight("O2,scaler=1", lr=0.0)
    run.model = Wrapper(run.module)
    ((weight, master),) = run.masters.pairs
    run.zero()
    run.backward(run.forward(torch.full((1, 1), 2.0)).sum())
    run.model.require_backward_grad_sync = True
    run.backward(run.forward(torch.full((1, 1), 1.0)).sum())
    assert weight.grad.item() == 2 + 1
    run.unscale()
    assert master.grad.item() == 2 + 1


def test_groups_of_parameters_are_kept() -> None:
    def groups(parameters: list[nn.Parameter]) -> Any:
        flat = [each for each in parameters if each.ndim < 2]
        whole = [each for each in parameters if each.ndim >= 2]
        return torch.optim.SGD([{"params": flat, "weight_decay": 0.0}, {"params": whole}], 0.1, weight_decay=0.5)

    run = running("O2", make=groups)
    assert [(len(group["params"]), group["weight_decay"]) for group in run.optimizer.param_groups] == [
        (4, 0.0),
        (2, 0.5),
    ]
    assert {each.dtype for group in run.optimizer.param_groups for each in group["params"]} == {torch.float32}


def test_groups_of_the_models_own_parameters_get_the_masters() -> None:
    model = net()
    run = running(
        "O2", model, lambda parameters: torch.optim.Adagrad(model.parameters(), 0.1, initial_accumulator_value=1.0)
    )
    taken = run.optimizer.param_groups[0]["params"]
    assert [each.dtype for each in taken] == [torch.float32] * len(list(model.parameters()))
    assert {run.optimizer.state[each]["sum"].dtype for each in taken} == {torch.float32}
    before = [each.detach().clone() for each in taken]
    assert one_step(run)
    assert not any(torch.equal(old, new) for old, new in zip(before, taken, strict=True))


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Adadelta"])
def test_any_optimizer_works_on_masters(name: str) -> None:
    run = running("O2,scaler=128", make=lambda parameters: getattr(torch.optim, name)(parameters, lr=0.01))
    before = [master.detach().clone() for _, master in run.masters.pairs]
    assert one_step(run)
    for (weight, master), old in zip(run.masters.pairs, before, strict=True):
        assert not torch.equal(master, old)
        assert torch.equal(weight, master.half())


def test_frozen_parameters_have_no_master_and_stay() -> None:
    model = net()
    model[0].weight.requires_grad_(False)
    run = running("O2,scaler=128", model)
    before = model[0].weight.detach().clone()
    assert before.dtype == torch.float16
    assert "0.weight" not in run.masters.state_dict()
    assert one_step(run)
    assert torch.equal(model[0].weight, before)


def test_nothing_to_train_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to train"):
        running("O2", net().requires_grad_(False))


def test_an_optimizer_of_foreign_parameters_is_refused() -> None:
    with pytest.raises(UsageError, match="not the model's"):
        running("O2", make=lambda parameters: torch.optim.SGD(net().parameters(), 0.1))


@pytest.mark.parametrize(("name", "told"), [("O3", 1), ("O2", 0), ("O0", 0), ("bf16-pure", 0)])
def test_an_eps_that_fp16_does_not_have_is_told(name: str, told: int) -> None:
    run = running(name, make=lambda parameters: torch.optim.Adam(parameters, eps=1e-8))
    assert sum("eps of 1e-08 is 0 in fp16" in note for note in run.notes) == told


def test_an_optimizer_that_needs_a_closure_is_refused() -> None:
    with pytest.raises(CannotMeasureError, match="LBFGS"):
        running("O0", make=lambda parameters: torch.optim.LBFGS(parameters))


# --- Casts --------------------------------------------------------------------------------------------------------------------


def test_the_walker_keeps_affine_batch_norm_and_nothing_else() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.BatchNorm2d(4, affine=False),
        nn.GroupNorm(2, 4),
        nn.LayerNorm([4, 4, 4]),
        nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
    )
    running("O2", model)
    half, single = {torch.float16}, {torch.float32}
    kinds = [{each.dtype for each in (*m.parameters(), *m.buffers()) if each.is_floating_point()} for m in model]
    assert kinds == [half, single, half, half, half, half]
    assert model[1].num_batches_tracked.dtype == model[2].num_batches_tracked.dtype == torch.int64


def test_parameters_stay_the_same_objects_and_tied_ones_tied() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    before = list(model.parameters())
    run = running("O2", model)
    assert all(old is new for old, new in zip(before, model.parameters(), strict=True))
    assert model[1].weight is model[0].weight
    assert len(run.masters.pairs) == 3  # a weight and two biases


class Talkative(nn.Module):
    """Says in which type it got what, and returns everything in a mapping."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.got: list[Any] = []

    def forward(self, x: Any, index: Any, more: dict[str, Any]) -> Any:
        self.got = [x.dtype, index.dtype, more["y"].dtype]
        return {"out": self.linear(x), "index": index, "pair": (self.linear(more["y"]), "text")}


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("O0", torch.float32),
        ("O1", torch.float32),
        ("O2", torch.float16),
        ("O3", torch.float16),
        ("bf16-pure", torch.bfloat16),
    ],
)
def test_floats_are_cast_on_the_way_in_and_out(name: str, inside: Any) -> None:
    model = Talkative()
    run = running(name, model)
    # O1 leaves inputs as they are, and autocast leaves float64 alone.
    x = torch.ones(1, 2, dtype=torch.float32 if name == "O1" else torch.float64)
    outputs = run.forward(x, torch.ones(1, dtype=torch.int32), {"y": x})
    assert model.got == [inside, torch.int32, inside]
    assert outputs["out"].dtype == outputs["pair"][0].dtype == torch.float32
    assert outputs["index"].dtype == torch.int32
    assert outputs["pair"][1] == "text"


@pytest.mark.parametrize("name", CPU)
def test_validation_runs_at_the_precision_of_training(name: str) -> None:
    run = running(name)
    seen: list[Any] = []
    run.module[0].register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    run.forward(images())
    run.module.eval()
    with torch.no_grad():
        assert run.forward(images()).dtype == torch.float32
    names = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    assert seen == [names[run.precision.products]] * 2


# --- Scales, and steps that are skipped ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["O1", "O2", "O3,scaler=dynamic", "bf16-pure,scaler=dynamic", "bf16-master,scaler=dynamic"]
)
def test_an_overflow_skips_the_step_and_halves_the_scale(name: str) -> None:
    run = running(name)
    weights = [each.detach().clone() for each in run.module.parameters()]
    handle = run.module[5].weight.register_hook(lambda gradient: gradient * float("inf"))
    assert not one_step(run)
    assert all(torch.equal(old, new) for old, new in zip(weights, run.module.parameters(), strict=True))
    telemetry = run.telemetry
    assert (telemetry.scale, telemetry.steps, telemetry.updates, telemetry.skipped) == (2.0**15, 1, 0, 1)
    assert telemetry.skips == (1,)
    assert telemetry.fault is not None and (telemetry.fault.module, telemetry.fault.what) == ("5", "gradient")
    assert run.optimizer.state == {}  # no momentum yet
    handle.remove()
    assert one_step(run)
    assert run.telemetry.skipped_in_a_row == 0


def test_the_same_overflow_ruins_o3() -> None:
    run = running("O3")
    run.module[5].weight.register_hook(lambda gradient: gradient * float("inf"))
    assert one_step(run)
    assert not torch.isfinite(run.module[5].weight).any()
    assert run.verdict is None
    one_step(run)
    assert run.verdict is not None
    assert (run.verdict.reason, run.verdict.step) == ("diverged", 2)
    assert run.verdict.fault is not None
    assert (run.verdict.fault.module, run.verdict.fault.what, run.verdict.fault.exact) == ("5", "weights", True)


def test_a_static_scale_looks_at_nothing_unless_checked() -> None:
    for precision, skipped in (("O2,scaler=128", False), ("O2,scaler=128,checked=yes", True)):
        run = running(precision)
        run.module[5].weight.register_hook(lambda gradient: gradient * float("inf"))
        assert one_step(run) is not skipped
        assert bool(torch.isfinite(run.module[5].weight).all()) is skipped
        assert run.scaler.scale == 128


def test_after_2000_clean_steps_the_scale_doubles_up_to_2_to_the_24() -> None:
    scaler = Scaler.of(find("O2"))
    assert (scaler.scale, WINDOW, LARGEST) == (2.0**16, 2000, 2.0**24)
    for _ in range(WINDOW - 1):
        assert not scaler.update(False)
    assert scaler.scale == 2.0**16
    scaler.update(False)
    assert scaler.scale == 2.0**17
    for _ in range(20 * WINDOW):
        scaler.update(False)
    assert scaler.scale == 2.0**24


def test_an_overflow_starts_the_count_anew_and_there_is_no_least_scale() -> None:
    scaler = Scaler.of(find("O1"))
    for _ in range(WINDOW - 1):
        scaler.update(False)
    assert scaler.update(True)
    for _ in range(WINDOW - 1):
        scaler.update(False)
    assert scaler.scale == 2.0**15
    for _ in range(40):
        scaler.update(True)
    assert scaler.scale == 2.0 ** (15 - 40)


def test_a_static_scale_never_changes() -> None:
    scaler = Scaler.of(find("O3,scaler=128"))
    for overflow in (True, False) * (WINDOW + 1):
        assert not scaler.update(overflow)
    assert scaler.scale == 128


@pytest.mark.parametrize("name", ["O0", "O1", "O2", "O3+bn"])
def test_a_scale_that_is_a_power_of_two_changes_no_update_of_large_gradients(name: str) -> None:
    plain, scaled = one_weight(f"{name},scaler=1", 0.5), one_weight(f"{name},scaler=1024", 0.5)
    descend(plain)
    descend(scaled)
    assert plain.module.weight.item() == scaled.module.weight.item() == 1 - 0.5 * 1


@pytest.mark.parametrize("name", ["O1", "O2"])
def test_after_many_skips_no_scale_fits(name: str) -> None:
    run = running(name, patience=5)
    assert one_step(run, worse=1e-3)
    for _ in range(5):
        assert run.verdict is None
        assert not one_step(run, worse=float("inf"))
    verdict = run.verdict
    assert verdict is not None
    assert (verdict.reason, verdict.step) == ("no scale", 2)
    assert verdict.fault is not None
    assert (verdict.fault.module, verdict.fault.what) == ("5", "gradient")  # nearest to the loss, which was infinite
    assert "5 steps in a row were skipped from step 2 on, the last at scale 4096" in str(verdict)
    assert run.scaler.scale == 2.0 ** (16 - 5)


# --- Divergence ---------------------------------------------------------------------------------------------------------------


def test_an_output_that_overflows_is_named() -> None:
    model = net()
    nn.init.constant_(model[0].weight, 6e4)  # fp16 ends at 65504
    run = running("O3", model)
    run.backward(nn.functional.cross_entropy(run.forward(images()), labels()))
    verdict = run.verdict
    assert verdict is not None and verdict.fault is not None
    fault = verdict.fault
    assert (verdict.step, fault.module, fault.what, fault.dtype, fault.step) == (1, "0", "output", "fp16", 1)
    assert str(verdict) == "Diverged at step 1: the loss is not finite; first: output of 0 (fp16) at step 1."


def test_the_replay_leaves_statistics_and_random_numbers_alone() -> None:
    def train(broken: bool) -> tuple[Any, Any]:
        model = nn.Sequential(net(), nn.Dropout(0.5))
        run = running("O0", model)
        run.zero()
        loss = nn.functional.cross_entropy(run.forward(images()), labels())
        run.backward(loss * float("nan") if broken else loss)
        assert (run.verdict is not None) is broken
        return [each.clone() for each in model.buffers()], torch.rand(4)

    (whole, numbers), (broken, after) = train(False), train(True)
    assert torch.equal(numbers, after)
    assert all(torch.equal(old, new) for old, new in zip(whole, broken, strict=True))


def test_inputs_and_losses_that_are_not_finite_are_named() -> None:
    run = running("O0")
    one_step(run, images() * float("inf"))
    assert run.verdict is not None and run.verdict.fault is not None
    assert run.verdict.fault.what == "inputs"
    run = running("O0")
    one_step(run, worse=float("nan"))
    assert run.verdict is not None and run.verdict.fault is not None
    assert run.verdict.fault.what == "loss"


def test_a_large_rate_diverges_and_the_step_is_told() -> None:
    run = running("O3", make=sgd(lr=1e4))
    steps = 0
    while run.verdict is None and steps < 20:
        one_step(run)
        steps += 1
    assert run.verdict is not None
    assert run.verdict.step == steps > 1
    assert run.telemetry.as_json()["verdict"]["step"] == steps


def test_losses_wait_on_an_accelerator_and_the_step_is_right_all_the_same() -> None:
    watching = Watching(
        net(), lambda model, inputs: model(*inputs), lambda parameter: None, Scaler.of(find("O0")), 32, 4
    )
    for loss in (1.0, float("nan"), 1.0):
        watching.loss(torch.tensor(loss))
        watching.step(False, 1.0)
    assert watching.verdict is None
    assert watching.telemetry(scaled=False).verdict is not None
    assert watching.verdict is not None
    assert (watching.verdict.step, watching.verdict.reason) == (2, "diverged")
    assert watching.verdict.fault is not None and not watching.verdict.fault.exact
    assert str(watching.verdict) == "Diverged at step 2: the loss is not finite; found afterwards: loss at step 2."


def test_without_a_scaler_there_is_no_scale_to_tell() -> None:
    run = running("amp-bf16")
    one_step(run)
    assert (run.telemetry.scale, run.telemetry.least_scale, run.telemetry.steps) == (None, None, 1)


# --- Steps --------------------------------------------------------------------------------------------------------------------


def test_gradients_are_true_before_the_step_so_that_they_can_be_clipped() -> None:
    for name in ("O1,scaler=1024", "O2,scaler=1024"):
        run = one_weight(name, lr=0.25)
        run.zero()
        run.backward(run.forward(torch.full((1, 1), 2.0)).sum())
        run.unscale()
        (worked_on,) = run.optimizer.param_groups[0]["params"]
        assert worked_on.grad.item() == 2
        nn.utils.clip_grad_value_([worked_on], 1.0)
        assert run.step()
        assert run.module.weight.item() == 1 - 0.25 * 1


def test_a_step_uses_up_its_gradients() -> None:
    forgotten, zeroed = one_weight("O2,scaler=128", 0.25), one_weight("O2,scaler=128", 0.25)
    for _ in range(2):
        forgotten.backward(forgotten.forward(torch.ones(1, 1)).sum())
        forgotten.step()
        descend(zeroed)
    assert forgotten.module.weight.item() == zeroed.module.weight.item() == 1 - 2 * 0.25


@pytest.mark.parametrize("name", ["fp32-ieee", "O0"])
def test_full_precision_is_plain_pytorch_to_the_bit(name: str) -> None:
    run, model = running(name), net()
    optimizer = sgd()(list(model.parameters()))
    for _ in range(3):
        one_step(run)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images()), labels()).backward()
        optimizer.step()
    assert all(
        torch.equal(a, b) for a, b in zip(run.module.state_dict().values(), model.state_dict().values(), strict=True)
    )


def test_o1_is_autocast_and_gradscaler_to_the_bit() -> None:
    run, model = running("O1"), net()
    optimizer, scaler = sgd()(list(model.parameters())), torch.amp.GradScaler("cpu")
    for _ in range(3):
        one_step(run)
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.float16):
            loss = nn.functional.cross_entropy(model(images()), labels())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == run.scaler.scale
    assert all(
        torch.equal(a, b) for a, b in zip(run.module.state_dict().values(), model.state_dict().values(), strict=True)
    )


# --- Saving and resuming ------------------------------------------------------------------------------------------------------


def adam(parameters: list[nn.Parameter]) -> Any:
    return torch.optim.Adam(parameters, 1e-3, eps=1e-3)  # fp16 has no 1e-8


@pytest.mark.parametrize("make", [sgd(), adam], ids=["SGD", "Adam"])
@pytest.mark.parametrize("name", [*CPU, "O2,scaler=128,norms=fp16"])
def test_a_resumed_run_is_equal_to_the_bit(name: str, make: Any) -> None:
    whole = running(name, make=make)
    for _ in range(3):
        one_step(whole)
    if whole.precision.skips:
        assert not one_step(whole, worse=float("inf"))  # a scale and a count to be kept
    file = io.BytesIO()
    torch.save(whole.state_dict(), file)
    for _ in range(3):
        one_step(whole)
    file.seek(0)
    resumed = running(name, nn.Sequential(*net()), make)
    one_step(resumed)  # whatever was there is replaced
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for _ in range(3):
        one_step(resumed)
    assert same(all_state(whole), all_state(resumed))


def test_masters_are_part_of_the_state() -> None:
    run = one_weight("O2,scaler=128", lr=2**-13)
    descend(run)
    assert run.state_dict()["masters"]["weight"].item() == 1 - 2**-13


def test_the_state_of_another_precision_or_model_is_refused() -> None:
    with pytest.raises(UsageError, match=r"precision O2, not O3\..*masters, scaler.*--precision O2"):
        running("O3").load_state_dict(running("O2").state_dict())
    with pytest.raises(UsageError, match="another model"):
        running("O2").load_state_dict(running("O2", nn.Linear(2, 2)).state_dict())


# --- Flags --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CPU)
def test_tf32_is_off_in_both_places_and_put_back(name: str) -> None:
    before = flags.read()
    with running(name):
        during = flags.read()
        assert during["cuda.matmul.allow_tf32"] is during["cudnn.allow_tf32"] is False
        for place in ("cuda.matmul", "cudnn.conv", "cudnn.rnn"):
            assert during.get(f"{place}.fp32_precision", "ieee") == "ieee"
    assert flags.read() == before


def test_tf32_is_on_in_both_places_and_put_back_once() -> None:
    before = flags.read()
    products = flags.Fp32Products(tf32=True)
    during = flags.read()
    assert during["cuda.matmul.allow_tf32"] is during["cudnn.allow_tf32"] is True
    assert during.get("cuda.matmul.fp32_precision", "tf32") == during.get("cudnn.conv.fp32_precision", "tf32") == "tf32"
    products.restore()
    assert flags.read() == before
    with running("O0"):
        other = flags.read()
        products.restore()
        assert flags.read() == other


def test_flags_are_put_back_after_an_error() -> None:
    before = flags.read()
    with pytest.raises(ZeroDivisionError), running("O0"):
        raise ZeroDivisionError
    assert flags.read() == before


@pytest.fixture
def keep() -> Iterator[flags.Fp32Products]:
    """Flags as PyTorch has them, in the end."""
    products = flags.Fp32Products(tf32=True)
    yield products
    products.restore()


def test_a_run_that_is_thrown_away_takes_no_flags_from_the_next(keep: flags.Fp32Products) -> None:
    first = running("O0")
    with running("O0"):
        during = flags.read()
        del first
        gc.collect()
        assert flags.read() == during


def test_a_refused_run_changes_neither_model_nor_flags() -> None:
    model, before = net(), flags.read()
    with pytest.raises(CannotMeasureError, match="TF32"):
        running("tf32", model)
    assert flags.read() == before
    with pytest.raises(CannotMeasureError):
        running("O2", model, lambda parameters: torch.optim.LBFGS(parameters))
    assert flags.read() == before
