"""The presets are Apex's, every field can be replaced, and what makes no sense is refused with the reason."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flopwatch.errors import UsageError
from flopwatch.training.precision import PRESETS, find

# apex/amp/frontend.py, its properties by their own names; None: Apex left it to what the model has.
APEX = {
    "O0": {"cast_model_type": "fp32", "keep_batchnorm_fp32": True, "master_weights": False, "loss_scale": 1.0},
    "O1": {"cast_model_type": "fp32", "keep_batchnorm_fp32": True, "master_weights": False, "loss_scale": "dynamic"},
    "O2": {"cast_model_type": "fp16", "keep_batchnorm_fp32": True, "master_weights": True, "loss_scale": "dynamic"},
    "O3": {"cast_model_type": "fp16", "keep_batchnorm_fp32": False, "master_weights": False, "loss_scale": 1.0},
    "O3+bn": {"cast_model_type": "fp16", "keep_batchnorm_fp32": True, "master_weights": False, "loss_scale": 1.0},
}


@pytest.mark.parametrize("name", APEX)
def test_a_preset_is_what_apex_made_of_it(name: str) -> None:
    preset, apex = PRESETS[name], APEX[name]
    assert preset.parameters == apex["cast_model_type"]
    assert (preset.norms == "fp32") is apex["keep_batchnorm_fp32"]
    assert preset.masters is apex["master_weights"]
    assert preset.scaler == apex["loss_scale"]
    assert (preset.autocast == "fp16") is (name == "O1")  # patch_torch_functions
    assert not preset.checked and not preset.tf32


def test_there_are_ten_presets_each_with_a_source() -> None:
    names = "fp32-ieee tf32 O0 O1 O2 O3 O3+bn amp-bf16 bf16-master bf16-pure"
    assert list(PRESETS) == names.split()
    assert all(preset.source and preset.about for preset in PRESETS.values())


def test_no_two_presets_compute_the_same_but_fp32_ieee_and_o0() -> None:
    computed: dict[tuple[object, ...], str] = {}
    for name, preset in PRESETS.items():
        fields = {key: value for key, value in preset.as_json().items() if key != "name"}
        if name == "O0":
            fields["scaler"] = "none"  # a scale of 1 that never changes
        key = tuple(fields.items())
        if name == "O0":
            assert computed[key] == "fp32-ieee"
        else:
            assert key not in computed
            computed[key] = name


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_found_by_its_name_in_any_case(name: str) -> None:
    assert find(name) is PRESETS[name]
    assert find(name.upper()) is PRESETS[name]


def test_fields_are_replaced_in_the_text_and_by_the_caller() -> None:
    found = find("O2,scaler=128,norms=fp16", {"checked": True})
    assert (found.parameters, found.norms, found.masters, found.scaler, found.checked) == (
        "fp16",
        "fp16",
        True,
        128.0,
        True,
    )
    assert found.name == "O2,norms=fp16,scaler=128,checked=yes"
    assert find(found.name) == found


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("O3,keep_batchnorm_fp32=True", "O3,norms=fp32"),
        ("O2,loss_scale=128.0", "O2,scaler=128"),
        ("O0,loss_scale=dynamic", "O0,scaler=dynamic"),
        ("O2,master_weights=False", "O2,masters=no"),
        ("O0,cast_model_type=torch.float16", "O0,parameters=half"),
        ("O2, keep_batchnorm_fp32=False", "O2,norms=fp16"),
    ],
)
def test_apex_names_are_understood(text: str, same: str) -> None:
    assert find(text) == find(same)


def test_o3_with_batch_norm_kept_is_the_preset_of_that_name() -> None:
    asked, preset = find("O3,keep_batchnorm_fp32=True").as_json(), PRESETS["O3+bn"].as_json()
    assert asked.pop("name") != preset.pop("name")
    assert asked == preset


def test_inputs_and_norms_follow_the_parameters() -> None:
    found = find("O3,parameters=bf16")
    assert (found.inputs, found.norms) == ("bf16", "bf16")
    assert find("O2,parameters=bf16").norms == "fp32"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("O1,cast_model_type=fp16", "weights themselves stay fp32"),
        ("O1,keep_batchnorm_fp32=False,parameters=fp16", "weights themselves stay fp32"),
        ("O1,norms=fp16", "BatchNorm has fp32 parameters anyway"),
        ("O1,master_weights=True", "whose weights are fp32 themselves"),
        ("O2,autocast=fp16", "weights themselves stay fp32"),
        ("O0,masters=yes", "these weights are fp32 themselves"),
        ("O0,autocast=fp32", "casts nothing"),
        ("O2,norms=bf16", "of that type or fp32"),
        ("O0,norms=fp16", "of that type or fp32"),
        ("O2,inputs=fp32", "can't multiply two types"),
        ("O3,inputs=kept", "can't multiply two types"),
        ("amp-bf16,checked=yes", "not looked at"),
        ("O2,tf32=yes", "not fp32"),
        ("O2,scaler=0", "a number above 0"),
        ("O2,scaler=inf", "a number above 0"),
        ("O2,scaler=nan", "a number above 0"),
        ("O2,scaler=much", "none, dynamic or a number"),
        ("O2,masters=maybe", "yes or no"),
        ("O2,parameters=fp64", "Take one of fp32, fp16, bf16."),
        ("O2,parameters=none", "Take one of fp32, fp16, bf16."),
        ("O2,scale=128", "Near it: scaler"),
        ("O2,opt_level=O1", "no field 'opt_level'"),
        ("O2,128", "PRESET,field=value"),
        ("bf16-mater", "Near it: bf16-master"),
        ("fp16", "Known: fp32-ieee"),
        ("fp8", "linear layers only"),
        ("O2,parameters=float8_e4m3fn", "linear layers only"),
        ("amp-bf16,autocast=fp8", "linear layers only"),
        ("int8", "for inference"),
        ("", "no precision ''"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as refusal:
        find(text)
    assert reason in str(refusal.value)


def test_asking_for_a_precision_loads_no_framework() -> None:
    program = "import sys; from flopwatch.training.precision import find; find('O2,scaler=128'); print('torch' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )
