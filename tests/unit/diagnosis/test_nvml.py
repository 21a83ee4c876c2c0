"""NVML's calls, against a library that answers as it does; there is no GPU in the tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from flopwatch.diagnosis import gpu, nvml
from flopwatch.diagnosis.host import load
from tests.unit.diagnosis.machines import Machine

SOURCE = r"""
#include <stdio.h>
typedef struct { unsigned long long total, free, used; } memory;
int nvmlInit_v2(void) { return INIT; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) { return snprintf(text, length, "550.90.07") < 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(0x7f0000000000 + index); return 0; }
int nvmlDeviceGetName(void *device, char *text, unsigned length) {
    return snprintf(text, length, "GPU number %lu", (unsigned long)device & 15) < 0;
}
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) { *major = 9; *minor = 0; return 0; }
int nvmlDeviceGetMemoryInfo(void *device, memory *found) { found->total = 80ull << 30; return 0; }
"""


def built(folder: Path, answer: int = 0) -> str:
    if shutil.which("gcc") is None:
        pytest.skip("no compiler for the library: apt install gcc")
    (folder / "nvml.c").write_text(SOURCE)
    path = folder / f"libnvml{answer}.so"
    subprocess.run(["gcc", "-shared", "-fPIC", f"-DINIT={answer}", "-o", path, folder / "nvml.c"], check=True)
    return str(path)


def test_each_gpu_is_a_line_as_nvidia_smi_prints_it(tmp_path: Path) -> None:
    memory = f"{80 << 10} MiB"
    expected = [f"GPU number {index}, 550.90.07, 9.0, {memory}" for index in range(2)]
    assert nvml.rows(built(tmp_path)) == expected


def test_a_refusal_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="nvmlInit_v2 answers 9"):
        nvml.rows(built(tmp_path, 9))
    with pytest.raises(OSError, match=r"libnowhere\.so"):
        nvml.rows("libnowhere.so")


def test_it_is_asked_where_nvidia_smi_is_missing(tmp_path: Path) -> None:
    machine = Machine("cloud-without-pmu", tmp_path)
    machine.data["commands"] = {f"python -c {gpu.ASK_NVML}": "NVIDIA L4, 550.90.07, 8.9, 23034 MiB"}
    assert gpu.nvidia_cards(machine.host) == [
        {"name": "NVIDIA L4", "driver": "550.90.07", "compute_capability": "8.9", "memory": "23034 MiB"}
    ]


def test_a_library_that_dies_when_it_is_loaded_is_a_reason(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no compiler for the library: apt install gcc")
    (tmp_path / "dies.c").write_text(
        "#include <stdlib.h>\n__attribute__((constructor)) static void die(void) { abort(); }\n"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "libdies.so", tmp_path / "dies.c"], check=True)
    assert "ends the process" in load(str(tmp_path / "libdies.so"))
    assert load(built(tmp_path)) == ""
