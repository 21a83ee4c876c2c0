"""GPUs, their drivers, and whether NVIDIA's counters could be read: the library, the permission."""

from __future__ import annotations

import re
from typing import Any

from flopwatch.diagnosis import nvml
from flopwatch.diagnosis.findings import Finding, Section, State, cannot, ok, todo
from flopwatch.diagnosis.host import Host

QUERY = ("nvidia-smi", "--query-gpu=name,driver_version,compute_cap,memory.total", "--format=csv,noheader")
ASK_NVML = "from flopwatch.diagnosis import nvml; print(*nvml.rows(), sep='\\n')"
DRIVER = "libcuda.so.1"
CUPTI = ("libcupti.so.13", "libcupti.so.12", "libcupti.so.11.2")
PACKAGES = ("nvidia-cuda-cupti", "nvidia-cuda-cupti-cu13", "nvidia-cuda-cupti-cu12", "nvidia-cuda-cupti-cu11")
FOLDERS = ("usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*", "usr/local/cuda*/lib64/libcupti.so*")
PARAMETERS = "proc/driver/nvidia/params"
UNLOCK = (
    "Run `echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 | sudo tee /etc/modprobe.d/nvidia-profiling.conf`, "
    "then restart the machine"
)
NOT_COUNTED = "no counter of flopwatch sees GPU work yet: what runs there is missing from every record"


def check(host: Host) -> Section:
    """The GPUs, what is installed for them, and what of their work is counted (nothing yet)."""
    cards = nvidia_cards(host)
    amd, board = host.exists("dev/kfd"), host.read("proc/device-tree/model")
    facts: dict[str, Any] = {"nvidia": cards, "amd": amd}
    findings: list[Finding] = [ok("GPU", _card(card)) for card in cards]
    if amd:
        findings.append(ok("GPU", "an AMD GPU with its compute driver (/dev/kfd)"))
    if board.startswith("Raspberry Pi"):
        findings.append(cannot("GPU", "VideoCore: none of its performance counters counts FLOP"))
    if host.system == "darwin":
        findings.append(cannot("GPU", "macOS lets programs read no counters of its GPUs"))
    present = bool(findings)
    if not present:
        findings.append(cannot("GPU", "there is none with a driver (no nvidia-smi, /dev/nvidia*, /dev/kfd)"))
    if host.system == "linux":
        path, reason = find_cupti(host)
        facts["cupti"] = path
        findings.append(_cupti(path, reason, wanted=bool(cards)))
    if cards:
        libraries = [_library("NVML", nvml.LIBRARY, host), _library("CUDA driver", DRIVER, host)]
        restricted = admin_only(host)
        findings += [*libraries, _permission(restricted, host)]
        works = [each.state is State.OK for each in libraries]
        facts |= {"nvml": works[0], "cuda_driver": works[1], "restricted": restricted}
    if present:
        findings.append(cannot("FLOP of GPUs", NOT_COUNTED))
    return Section("GPU", tuple(findings), facts)


def nvidia_cards(host: Host) -> list[dict[str, str]]:
    """Name, driver, compute capability and memory of each NVIDIA GPU; the name alone where only the kernel tells."""
    text = host.output(*QUERY) or host.output(host.python, "-c", ASK_NVML)
    rows = [[part.strip() for part in line.split(",")] for line in text.splitlines()]
    names = ("name", "driver", "compute_capability", "memory")
    cards = [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]
    if cards:
        return cards
    found = [
        re.search(r"Model:\s*(.+)", host.read(path)) for path in host.glob("proc/driver/nvidia/gpus/*/information")
    ]
    if any(found):
        return [{"name": match[1].strip()} for match in found if match]
    return [{"name": f"an NVIDIA GPU (/{path})"} for path in host.glob("dev/nvidia[0-9]*")]


def find_cupti(host: Host) -> tuple[str, str]:
    """Where the CUPTI library is that can be loaded, or nothing and the reason why not."""
    reasons = [f"{CUPTI[0]} is in no folder of the loader"]
    for name in CUPTI:
        if not host.load(name):
            return name, ""
    packaged = [f"{name} {number}" for name in PACKAGES if (number := host.version(name))]
    for path in (*site_libraries(host), *(f"{host.root / path}" for pattern in FOLDERS for path in host.glob(pattern))):
        reason = host.load(path)
        if not reason:
            return path, ""
        reasons.append(reason)
    if packaged:
        reasons.append(f"installed as a package: {', '.join(packaged)}")
    return "", "; ".join(reasons[-2:])


def site_libraries(host: Host) -> list[str]:
    """CUPTI libraries of the packages that PyTorch brings along."""
    folders = [folder.removeprefix("/") for folder in host.site]
    return [f"{host.root / path}" for folder in folders for path in host.glob(f"{folder}/nvidia/*/lib/libcupti.so*")]


def admin_only(host: Host) -> bool | None:
    """Whether the driver keeps its counters for administrators; None if it does not tell."""
    match = re.search(r"RmProfilingAdminOnly:\s*(\d)", host.read(PARAMETERS))
    return match[1] == "1" if match else None


def _card(card: dict[str, str]) -> str:
    parts = [card["name"]]
    if "driver" in card:
        parts += [f"driver {card['driver']}", f"compute capability {card['compute_capability']}", card["memory"]]
    return ", ".join(parts)


def _library(name: str, library: str, host: Host) -> Finding:
    reason = host.load(library)
    return cannot(name, reason) if reason else ok(name, f"{library} can be loaded")


def _cupti(path: str, reason: str, *, wanted: bool) -> Finding:
    if path:
        return ok("CUPTI", f"{path} can be loaded")
    if not wanted:
        return cannot("CUPTI", reason)
    return todo("CUPTI", f"{reason}.", "Run `pip install nvidia-cuda-cupti-cu12`.")


def _permission(restricted: bool | None, host: Host) -> Finding:
    if restricted is None:
        return ok("GPU counters", "the driver does not tell who may read them")
    if not restricted:
        return ok("GPU counters", "anybody may read them")
    status = re.search(r"CapEff:\s*([0-9a-f]+)", host.read("proc/self/status"))
    if status and int(status[1], 16) >> 21 & 1:
        return ok("GPU counters", "administrators may read them, and this process is one (CAP_SYS_ADMIN)")
    inside = "; in a container also `--cap-add SYS_ADMIN`" if host.surroundings().container else ""
    return todo("GPU counters", "the driver keeps them for administrators.", f"{UNLOCK}{inside}.")
