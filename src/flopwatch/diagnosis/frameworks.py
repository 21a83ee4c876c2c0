"""Frameworks found, without importing them here, and what keeps their libraries from using all instruction sets."""

from __future__ import annotations

from typing import Any

from flopwatch.diagnosis.findings import Finding, Section, cannot, ok, todo
from flopwatch.diagnosis.host import Host

# Package, and what flopwatch does with it.
PACKAGES = {
    "torch": "models layer by layer",
    "torchvision": "models by name",
    "timm": "models by name",
    "chainer": "models layer by layer",
    "jax": "as a program",
    "tensorflow": "as a program",
    "onnxruntime": "as a program",
    "transformers": "as a program",
    "scikit-learn": "as a program",
    "scipy": "as a program",
    "numpy": "as a program",
}
LAYERED = ("torch", "chainer")
# Variables that make a library choose older instruction sets, and whose library.
CAPS = {
    "ATEN_CPU_CAPABILITY": "PyTorch",
    "ONEDNN_MAX_CPU_ISA": "oneDNN",
    "DNNL_MAX_CPU_ISA": "oneDNN",
    "ONEDNN_DEFAULT_FPMATH_MODE": "oneDNN",
    "MKL_ENABLE_INSTRUCTIONS": "MKL",
    "MKL_CBWR": "MKL",
    "MKL_DEBUG_CPU_TYPE": "MKL",
    "OPENBLAS_CORETYPE": "OpenBLAS",
    "BLIS_ARCH_TYPE": "BLIS",
    "NPY_DISABLE_CPU_FEATURES": "NumPy",
    "NPY_ENABLE_CPU_FEATURES": "NumPy",
    "TF_ENABLE_ONEDNN_OPTS": "TensorFlow",
    "XLA_FLAGS": "XLA",
    "NUMBA_CPU_NAME": "Numba",
    "GLIBC_TUNABLES": "the C library",
}
CAPABILITY = "import torch; print(torch.backends.cpu.get_cpu_capability(), torch.backends.mkldnn.is_available())"
SECONDS = 60


def check(host: Host) -> Section:
    """A line for each framework, one for what PyTorch chooses here, one for each variable that restrains a library."""
    versions = {name: number for name in PACKAGES if (number := host.version(name))}
    findings: list[Finding] = [ok(name, f"{number}: {PACKAGES[name]}") for name, number in versions.items()]
    if not any(name in versions for name in LAYERED):
        findings.append(
            todo(
                "layers of models", "neither PyTorch nor Chainer is installed.", "Run `pip install 'flopwatch[torch]'`."
            )
        )
    caps = {name: host.env[name] for name in CAPS if host.env.get(name)}
    facts: dict[str, Any] = {"versions": versions, "isa_caps": caps}
    if "torch" in versions:
        facts |= torch_facts(host)
        findings.append(_torch(facts))
    findings += [ok(f"{CAPS[name]} is told", f"{name}={value}") for name, value in caps.items()]
    if not caps:
        findings.append(ok("ISA caps", "no variable restrains a library"))
    return Section("frameworks", tuple(findings), facts)


def torch_facts(host: Host) -> dict[str, Any]:
    """`torch_capability`, the instruction set that ATen's own kernels choose (None if PyTorch does not start), and `torch_onednn`."""
    words = host.output(host.python, "-c", CAPABILITY, seconds=SECONDS).split()
    if len(words) != 2:
        return {"torch_capability": None, "torch_onednn": None}
    return {"torch_capability": words[0], "torch_onednn": words[1] == "True"}


def _torch(facts: dict[str, Any]) -> Finding:
    if facts["torch_capability"] is None:
        return cannot("torch kernels", f"PyTorch did not start within {SECONDS} s")
    return ok("torch kernels", f"{facts['torch_capability']}, with{'' if facts['torch_onednn'] else 'out'} oneDNN")
