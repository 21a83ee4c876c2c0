"""Is this a virtual machine or a container, and whose?"""

from __future__ import annotations

from flopwatch.diagnosis.findings import Section, ok
from flopwatch.diagnosis.host import Host

DMI = "sys/class/dmi/id"
# A word of a path in /proc/1/cgroup, and whose it is; Kubernetes first, as its containers are of other makes.
CGROUPS = {"kubepods": "Kubernetes", "docker": "Docker", "libpod": "Podman", "lxc": "LXC", "containerd": "containerd"}


def check(host: Host) -> Section:
    """Whether the processor is shared with a hypervisor, and the file system with a container engine."""
    machine, box = virtual_machine(host), container(host)
    findings = (
        ok("virtual machine", machine or "none: nothing points to one"),
        ok("container", box or "none: nothing points to one"),
    )
    return Section("virtualisation", findings, {"virtual_machine": machine, "container": box})


def virtual_machine(host: Host) -> str:
    """What points to a virtual machine, in words; empty if nothing does."""
    seen = host.surroundings()
    kind, maker = (
        host.read("sys/hypervisor/type"),
        f"{host.read(f'{DMI}/sys_vendor')} {host.read(f'{DMI}/product_name')}",
    )
    if seen.wsl:
        return "WSL2, Linux inside Windows"
    if not (seen.hypervisor or kind):
        return ""
    words = [word for word in (kind, maker.strip()) if word]
    return "yes: " + (", ".join(words) if words else "the processor says that a hypervisor runs it")


def container(host: Host) -> str:
    """Whose container this is, in words; empty if nothing points to one."""
    if host.surroundings().container == "kubernetes":
        return "Kubernetes"
    cgroup = host.read("proc/1/cgroup")
    for word, name in CGROUPS.items():
        if word in cgroup:
            return name
    if host.exists(".dockerenv"):
        return "Docker, or made to look like it (/.dockerenv)"
    if host.exists("run/.containerenv"):
        return "Podman"
    return host.read("run/systemd/container")
