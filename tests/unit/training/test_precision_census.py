"""The census proves a precision: it differs between presets as documented, finds a precision that is none, leaves no trace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from torch import nn  # noqa: E402

from flopwatch.training.precision import PRESETS, Abilities, Census, Running, census, find  # noqa: E402
from flopwatch.training.precision.flags import Fp32Products  # noqa: E402
from flopwatch.training.precision.kernels import Kernel, dtype_of, kernels, listening, ran  # noqa: E402
from flopwatch.training.precision.proof import complaints  # noqa: E402

pytestmark = pytest.mark.torch

CPU = [name for name in PRESETS if name != "tf32"]
BATCH, CLASSES = 8, 3


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """Runs are not closed in most tests: the flags are put back here."""
    products = Fp32Products(tf32=False)
    yield
    products.restore()


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.BatchNorm2d(4, affine=False),
        nn.Dropout(0.5),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.LayerNorm(4),
        nn.Linear(4, CLASSES),
    )


def batch() -> tuple[Any, Any]:
    return torch.randn(BATCH, 3, 6, 6, generator=torch.Generator().manual_seed(1)), torch.arange(BATCH) % CLASSES


def running(name: str, model: nn.Module | None = None, make: Any = None) -> Running:
    sgd = make or (lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9))
    return Running(net() if model is None else model, sgd, find(name))


def taken(name: str, model: nn.Module | None = None) -> Census:
    with running(name, model) as run:
        return census(run, batch())


# What differs, and nothing else does: the types of the weights of convolutions and of affine BatchNorm, of the operands of
# products forward and backward, of BatchNorm's operands, of gradients, of masters, of the optimizer's momentum, of outputs.
TABLE = {
    #              weights norms   products norm operands  gradients masters  momentum            inputs  outputs
    "fp32-ieee": ("fp32", "fp32", "fp32", ("fp32",), "fp32", (), ("fp32",), "fp32", "fp32"),
    "O0": ("fp32", "fp32", "fp32", ("fp32",), "fp32", (), ("fp32",), "fp32", "fp32"),
    "O1": ("fp32", "fp32", "fp16", ("fp16", "fp16+fp32"), "fp32", (), ("fp32",), "fp32", "fp32"),
    "O2": ("fp16", "fp32", "fp16", ("fp16", "fp16+fp32"), "fp16", ("fp32",), ("fp32",), "fp16", "fp32"),
    "O3": ("fp16", "fp16", "fp16", ("fp16",), "fp16", (), ("fp16",), "fp16", "fp32"),
    "O3+bn": ("fp16", "fp32", "fp16", ("fp16", "fp16+fp32"), "fp16", (), ("fp16", "fp32"), "fp16", "fp32"),
    "amp-bf16": ("fp32", "fp32", "bf16", ("bf16", "bf16+fp32"), "fp32", (), ("fp32",), "fp32", "fp32"),
    "bf16-master": ("bf16", "fp32", "bf16", ("bf16", "bf16+fp32"), "bf16", ("fp32",), ("fp32",), "bf16", "fp32"),
    "bf16-pure": ("bf16", "bf16", "bf16", ("bf16",), "bf16", (), ("bf16",), "bf16", "fp32"),
}


@pytest.mark.parametrize("name", CPU)
def test_the_census_differs_between_presets_as_documented(name: str) -> None:
    weights, norms, products, norm_operands, gradients, masters, momentum, inputs, outputs = TABLE[name]
    seen = taken(name)
    assert seen.complaints == ()
    assert seen.dtypes("parameters", "Conv2d") == seen.dtypes("parameters", "LayerNorm") == (weights,)
    assert seen.dtypes("parameters", "BatchNorm2d") == (norms,)
    assert seen.dtypes("buffers", "BatchNorm2d") == tuple(sorted((norms, "int64")))
    assert seen.dtypes("buffers", "BatchNorm2d (affine=False)") == tuple(sorted((weights, "int64")))
    assert seen.products("forward") == seen.products("backward") == (products,)
    plain = seen.operands("forward", "native_batch_norm", "_batch_norm_with_update")
    # Under autocast BatchNorm without weights has fp32 statistics, too.
    assert plain == (norm_operands[-1:] if PRESETS[name].autocast != "none" else norm_operands)
    assert seen.dtypes("gradients", "Conv2d") == (gradients,)
    assert seen.dtypes("gradients", "BatchNorm2d") == (norms,)
    assert seen.dtypes("masters") == seen.dtypes("master gradients") == masters
    assert seen.dtypes("optimizer state", "momentum_buffer") == momentum
    assert seen.dtypes("inputs") == (inputs,)
    assert seen.dtypes("outputs") == seen.dtypes("loss") == (outputs,)


def test_o1_is_not_measured_four_times() -> None:
    seen = {name: taken(name) for name in ("O0", "O1", "O2", "O3", "O3+bn")}
    whole = {(each.tensors, each.operations) for each in seen.values()}
    assert len(whole) == len(seen)


def test_o0_is_fp32_ieee_under_another_name() -> None:
    one, other = taken("O0"), taken("fp32-ieee")
    assert (one.tensors, one.operations, one.flags) == (other.tensors, other.operations, other.flags)


def test_tf32_differs_from_fp32_ieee_by_its_flags_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    chip = Abilities("cpu", "A chip", fp16=True, bf16=True, tf32=True)
    monkeypatch.setattr("flopwatch.training.precision.devices.abilities", lambda device: chip)
    one, other = taken("tf32"), taken("fp32-ieee")
    assert (one.tensors, one.operations, one.complaints) == (other.tensors, other.operations, other.complaints)
    differ = {name: (one.flags[name], value) for name, value in other.flags.items() if one.flags[name] != value}
    assert differ.pop("cuda.matmul.allow_tf32") == differ.pop("cudnn.allow_tf32") == (True, False)
    assert set(differ) <= {f"{place}.fp32_precision" for place in ("cuda.matmul", "cudnn", "cudnn.conv", "cudnn.rnn")}
    assert set(differ.values()) <= {("tf32", "ieee")}


def test_numbers_are_counted() -> None:
    seen = taken("O2")
    convolution, linear, norm = 3 * 4 * 3 * 3, 4 * CLASSES + CLASSES, 4 + 4
    counts = {(each.part, each.kind, each.dtype): (each.tensors, each.elements) for each in seen.tensors}
    assert counts[("parameters", "Conv2d", "fp16")] == (1, convolution)
    assert counts[("parameters", "Linear", "fp16")] == (2, linear)
    assert counts[("parameters", "BatchNorm2d", "fp32")] == (2, norm)
    assert counts[("masters", "optimizer", "fp32")] == (1 + 2 + 2, convolution + linear + (4 + 4))
    assert counts[("outputs", "model", "fp32")] == (1, BATCH * CLASSES)
    (forward,) = [each for each in seen.operations if each.phase == "forward" and each.name == "aten::convolution"]
    assert (forward.operands, forward.results, forward.calls) == ("fp16", "fp16", 1)


# --- No trace -----------------------------------------------------------------------------------------------------------------


def everything(run: Running) -> list[Any]:
    found: list[Any] = [torch.get_rng_state(), run.telemetry.as_json(), run.scaler.state_dict()]
    found += [each.detach().clone() for each in run.module.state_dict().values()]
    found += [each.clone() for each in run.masters.state_dict().values()]
    found += [gradient.clone() for each in run.masters.names if (gradient := run.masters.gradient(each)) is not None]
    for state in run.optimizer.state_dict()["state"].values():
        found += [each.clone() if isinstance(each, torch.Tensor) else each for each in state.values()]
    found += [module.training for module in run.module.modules()]
    return found


def same(left: list[Any], right: list[Any]) -> bool:
    return len(left) == len(right) and all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "NAdam"])
@pytest.mark.parametrize("name", ["O0", "O1", "O2", "O3+bn", "bf16-pure"])
def test_it_leaves_no_trace(name: str, optimizer: str) -> None:
    options = {"momentum": 0.9} if optimizer == "SGD" else {"eps": 1e-3}

    def train(watched: bool) -> list[Any]:
        run = running(name, make=lambda parameters: getattr(torch.optim, optimizer)(parameters, 0.01, **options))
        states = []
        for step in range(3):
            images, labels = batch()
            if watched:
                run.module.train(step != 1)  # the census trains, and puts evaluation back
                before = everything(run)
                census(run, batch())
                assert same(before, everything(run))
                run.module.train()
            run.zero()
            run.backward(nn.functional.cross_entropy(run.forward(images), labels))
            if watched and step == 2:  # between backward and step, too
                census(run, batch())
            run.step()
            states += everything(run)
        return states

    torch.manual_seed(0)
    alone = train(watched=False)
    torch.manual_seed(0)
    assert same(alone, train(watched=True))


def test_an_overflow_in_it_changes_no_scale() -> None:
    run = running("O2")
    seen = census(run, batch(), lambda outputs, labels: nn.functional.cross_entropy(outputs, labels) * 1e30)
    assert seen.overflow
    assert seen.dtypes("optimizer state", "momentum_buffer") == ("fp32",)
    assert (run.scaler.scale, run.telemetry.skipped, run.verdict) == (2.0**16, 0, None)
    assert not census(run, batch()).overflow


def test_an_error_in_it_leaves_no_trace_either() -> None:
    run = running("O2")
    before = everything(run)
    with pytest.raises(ZeroDivisionError):
        census(run, batch(), lambda outputs, labels: outputs.sum() / (1 // 0))
    assert same(before, everything(run))


def test_a_scheduler_is_not_told_that_the_optimizer_ran(recwarn: pytest.WarningsRecorder) -> None:
    run = running("O2")
    scheduler = torch.optim.lr_scheduler.StepLR(run.optimizer, 1)
    census(run, batch())
    assert not run.optimizer.__dict__.get("_opt_called")
    run.backward(nn.functional.cross_entropy(run.forward(batch()[0]), batch()[1]))
    run.step()
    scheduler.step()
    assert [str(each.message) for each in recwarn if "lr_scheduler" in str(each.message)] == []


# --- Complaints ---------------------------------------------------------------------------------------------------------------


class Pretender(nn.Conv2d):
    """A convolution that says fp16 and multiplies fp32."""

    def forward(self, x: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            return nn.functional.conv2d(x.float(), self.weight.float()).to(x.dtype)


@pytest.mark.parametrize("name", ["O1", "O2", "O3"])
def test_a_layer_that_multiplies_fp32_is_found(name: str) -> None:
    model = net()
    model[0] = Pretender(3, 4, 3, bias=False)
    assert taken(name, model).complaints == (
        "aten::convolution multiplied fp32 in forward, not fp16.",
        "aten::convolution_backward multiplied fp32 in backward, not fp16.",
    )


def test_weights_that_were_cast_afterwards_are_found() -> None:
    run = running("O2")
    run.module[1].half()
    weights, buffers, gradients, masters = census(run, batch()).complaints
    assert weights == "parameters of BatchNorm2d are fp16, not fp32."
    assert buffers == "buffers of BatchNorm2d are fp16, not fp32."
    assert gradients == "gradients of BatchNorm2d are fp16, not fp32."
    assert masters == "5 parameters have fp32 masters, and 7 should."


def test_flags_that_were_changed_afterwards_are_found() -> None:
    with running("O0") as run:
        torch.backends.cuda.matmul.allow_tf32 = True
        assert "The flag cuda.matmul.allow_tf32 is True." in census(run, batch()).complaints


def test_missing_masters_are_found() -> None:
    seen = taken("O2")
    assert complaints(seen, affine_norms=frozenset({"BatchNorm2d"}), masters=6) == (
        "5 parameters have fp32 masters, and 6 should.",
    )


@pytest.mark.parametrize("name", ["O0", "O1", "O2"])
def test_the_fp32_sums_of_fused_attention_are_none(name: str) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project = nn.Linear(6, 3 * 8)

        def forward(self, x: Any) -> Any:
            query, key, value = self.project(x).chunk(3, dim=-1)
            return nn.functional.scaled_dot_product_attention(query, key, value).mean((1, 2))[:, :CLASSES]

    seen = taken(name, Attention())
    assert any("_scaled_dot_product" in each.name for each in seen.operations)
    assert seen.complaints == ()


def test_a_model_without_products_proves_nothing() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(CLASSES))

        def forward(self, x: Any) -> Any:
            return x.mean((2, 3)) * self.weight

    assert taken("O0", Scale()).complaints == ("No convolution or matrix product was seen.",)


# --- Kernels, by their names: no CUDA device is needed ------------------------------------------------------------------------

NAMES = {
    "volta_scudnn_128x64_relu_interior_nn_v1": "fp32",
    "volta_sgemm_64x64_nn": "fp32",
    "ampere_sgemm_128x64_tn": "fp32",
    "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x128x8_stage3": "fp32",
    "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn": "fp16",
    "volta_s884cudnn_fp16_128x128_ldg8_relu_exp_small_nhwc_tn_v1": "fp16",
    "volta_h884gemm_128x64_ldg8_nn": "fp16",
    "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn": "fp16",
    "turing_h1688gemm_128x128_ldg8_tn": "fp16",
    "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn": "fp16",
    "ampere_h16816gemm_256x128_ldg8_stages_32x3_tn": "fp16",
    "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32": "fp16",
    "nvjet_hsh_192x192_64x3_2x1_v_bz_coopB_NTN": "fp16",
    "nvjet_sm90_hss_320x128": "fp16",
    "nvjet_tst_256x256_64x4_2x1_v_bz": "bf16",
    "nvjet_sm100_tst_16x64_64x16_4x1_v_bz_TNN": "bf16",
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn": "bf16",
    "sm80_xmma_dgrad_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize64x64x64": "bf16",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16": "tf32",
    "cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4": "tf32",
    "cutlass::Kernel2<cutlass_80_tensorop_tf32_s1688gemm_tf32_64x64_nn>": "tf32",
}


@pytest.mark.parametrize(("name", "dtype"), NAMES.items())
def test_the_name_of_a_kernel_tells_its_type(name: str, dtype: str) -> None:
    assert dtype_of(name) == dtype
    assert kernels([name]) == (Kernel(name, dtype, True, 1),)


def test_copies_are_no_kernels_and_conversions_no_products() -> None:
    convert = "void at::native::convert_kernel<c10::Half>"
    norm = "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1, true>"
    assert kernels(["Memcpy HtoD (Pinned -> Device)", convert, norm, "Memset (Device)", convert]) == (
        Kernel(convert, "fp16", False, 2),
        Kernel(norm, "fp32", False, 1),
    )


def test_spans_and_the_host_are_no_kernels() -> None:
    class Kind(Enum):
        CUDA = 1
        CPU = 2

    def event(name: str, kind: Kind, **more: Any) -> SimpleNamespace:
        return SimpleNamespace(name=name, device_type=kind, **more)

    events = [
        event("cudaLaunchKernel", Kind.CPU),
        event("volta_sgemm_64x64_nn", Kind.CUDA, is_user_annotation=False),
        event("my span", Kind.CUDA, is_user_annotation=True),
        event("Optimizer.step#SGD.step", Kind.CUDA),
    ]
    assert list(ran(events)) == ["volta_sgemm_64x64_nn"]


def test_pytorchs_events_have_what_is_read() -> None:
    with torch.profiler.profile(acc_events=True) as profiler:
        torch.ones(2) + 1
    assert profiler.events()
    assert list(ran(profiler.events())) == []  # there is no CUDA


@pytest.mark.parametrize(
    ("preset", "name", "wrong"),
    [
        ("O0", "cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4", "tf32"),
        ("O0", "volta_h884gemm_128x64_ldg8_nn", "fp16"),
        ("O2", "ampere_sgemm_128x64_tn", "fp32"),
        ("O2", "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn", None),
        ("O0", "ampere_sgemm_128x64_tn", None),
        ("bf16-pure", "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_tn", None),
        ("O0", "gemm_of_no_known_kind", None),
    ],
)
def test_a_kernel_of_another_type_is_a_complaint(preset: str, name: str, wrong: str | None) -> None:
    seen = replace(taken(preset), kernels=kernels([name]))
    masters = sum(each.tensors for each in seen.tensors if each.part == "masters")
    said = complaints(seen, affine_norms=frozenset({"BatchNorm2d"}), masters=masters)
    assert said == ((f"The kernel {name} multiplied {wrong}.",) if wrong else ())


def test_there_are_no_kernels_without_cuda() -> None:
    with listening(torch.device("cpu")) as names:
        assert names is None
    assert taken("O0").kernels is None


# --- What becomes of it -------------------------------------------------------------------------------------------------------


def test_it_is_json() -> None:
    whole = json.loads(json.dumps(taken("O2,scaler=128").as_json()))
    assert whole["precision"]["scaler"] == 128
    assert whole["kernels"] is None and whole["complaints"] == [] and whole["device"] == "cpu"
    assert {"part": "masters", "kind": "optimizer", "dtype": "fp32", "tensors": 5, "elements": 131} in whole["tensors"]
    assert whole["flags"]["cuda.matmul.allow_tf32"] is False
    assert whole["torch"] == torch.__version__


def test_it_is_a_sheet() -> None:
    seen = replace(taken("O2"), kernels=kernels(["volta_h884gemm_128x64_ldg8_nn", "elementwise_kernel"]))
    sheet = replace(seen, complaints=("Something is wrong.",)).sheet()
    assert sheet.title == "Datatypes of one step at O2 on cpu"
    assert ("parameters", "BatchNorm2d", "fp32", None, 2, 8) in sheet.rows
    assert ("forward", "aten::convolution", "fp16", "fp16", 1, None) in sheet.rows
    assert [row for row in sheet.rows if row[0] == "kernel"] == [
        ("kernel", "volta_h884gemm_128x64_ldg8_nn", "fp16", None, 1, None)
    ]
    assert sheet.notes[0] == "Something is wrong."


def test_a_compiled_wrapper_is_seen_through() -> None:
    run = running("O2")
    run.model = torch.compile(run.module)
    assert census(run, batch()).complaints == ()
