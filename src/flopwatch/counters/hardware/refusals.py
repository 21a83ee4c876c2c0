"""Why the hardware cannot count here, as a sentence, and what to do about it, as a command where there is one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from flopwatch.counters import Availability
from flopwatch.counters.hardware.surroundings import DEVICES, Surroundings
from flopwatch.errors import CannotMeasureError

INSTEAD = "Use --counter instrumented"
CLOUDS = (
    "or a machine that has one: bare metal (on AWS the .metal sizes and some that fill a whole socket; on Google Cloud the machine "
    "types that offer it, created with --performance-monitoring-unit=standard); under KVM start the guest with -cpu host,pmu=on"
)
PARANOID = (
    "Run `sudo sysctl kernel.perf_event_paranoid=2` (for good: `echo kernel.perf_event_paranoid=2 | sudo tee "
    "/etc/sysctl.d/60-perf.conf`), or give flopwatch CAP_PERFMON"
)
DOCKER = (
    "Start the container with `--security-opt seccomp=unconfined`, or with a seccomp profile that allows perf_event_open "
    "and `--cap-add PERFMON` (SYS_ADMIN for older engines)"
)
KUBERNETES = (
    "Give the container securityContext: {seccompProfile: {type: Unconfined}, capabilities: {add: [PERFMON]}}, if the cluster's "
    "pod security allows it"
)


def at_sight(seen: Surroundings) -> Availability | None:
    """Why nothing needs to be tried here, or None if something may work."""
    if seen.system == "darwin":
        return Availability(
            False,
            "macOS lets programs read no counters without root and a private framework, and its processors have no event that "
            "counts FLOP.",
            "Count on Linux.",
        )
    if seen.system != "linux":
        return Availability(False, f"it needs Linux, and this is {seen.system}.", "Count on Linux.")
    if not seen.pmus:
        return _without_pmu(seen)
    if seen.paranoid is None:
        return Availability(
            False, "this kernel has no perf events (no /proc/sys/kernel/perf_event_paranoid).", f"{INSTEAD}."
        )
    return None


def _without_pmu(seen: Surroundings) -> Availability:
    if seen.wsl:
        return Availability(
            False,
            "this is WSL2, and Windows shows its virtual machine no performance counters.",
            f"{INSTEAD}, or count on Linux itself.",
        )
    if seen.hypervisor:
        return Availability(
            False,
            f"this virtual machine has no virtual PMU (there is none in /{DEVICES}).",
            f"{INSTEAD}, {CLOUDS}.",
        )
    return Availability(
        False,
        f"the kernel shows no performance counters of this processor (there are none in /{DEVICES}).",
        f"{INSTEAD}.",
    )


def because(error: OSError, seen: Surroundings, event: str, *, pid: int = 0) -> Availability:
    """Why the kernel did not open `event` (of process `pid`; 0: of this one)."""
    number = error.errno or 0
    name = errno.errorcode.get(number, str(number))
    explain = _EXPLAINED.get(number)
    if explain is None:
        return Availability(
            False, f"the kernel refused to count {event}: {os.strerror(number)} ({name}).", f"{INSTEAD}."
        )
    reason, todo = explain(seen, event, pid)
    return Availability(False, f"{reason} ({name}).", f"{todo}.")


def refused(error: OSError, seen: Surroundings, event: str, *, pid: int = 0) -> CannotMeasureError:
    """The same as an error to raise."""
    found = because(error, seen, event, pid=pid)
    return CannotMeasureError("The hardware counter does not work here.", seen=_sentence(found.reason), todo=found.todo)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _no_access(seen: Surroundings, event: str, pid: int) -> tuple[str, str]:
    if pid and (seen.paranoid is None or seen.paranoid <= 2):
        return f"process {pid} may not be looked into", "Use sudo, or count a process of your own"
    if seen.paranoid is not None and seen.paranoid <= 2:
        return (
            f"{event} happens in the kernel, where kernel.perf_event_paranoid {seen.paranoid} lets only privileged programs count",
            "Run `sudo sysctl kernel.perf_event_paranoid=1`",
        )
    return f"kernel.perf_event_paranoid is {seen.paranoid}, so only privileged programs may count", PARANOID


def _not_permitted(seen: Surroundings, event: str, pid: int) -> tuple[str, str]:
    if seen.container == "kubernetes":
        return "this Kubernetes container may not call perf_event_open (its seccomp profile forbids it)", KUBERNETES
    if seen.container or seen.seccomp:
        return "this container may not call perf_event_open (its seccomp profile forbids it)", DOCKER
    if seen.paranoid is not None and seen.paranoid > 2:
        return _no_access(seen, event, pid)
    return "a security module of the kernel forbids perf_event_open", "Ask whoever runs this machine, or use sudo"


def _no_call(seen: Surroundings, event: str, pid: int) -> tuple[str, str]:
    return "there is no perf_event_open here, as in gVisor and other sandboxes", INSTEAD


def _no_event(seen: Surroundings, event: str, pid: int) -> tuple[str, str]:
    if seen.hypervisor:
        return f"the virtual PMU of this machine does not offer {event}", f"{INSTEAD}, {CLOUDS}"
    return f"the kernel does not offer {event} on this processor", f"{INSTEAD}, or a newer kernel"


def _not_supported(seen: Surroundings, event: str, pid: int) -> tuple[str, str]:
    if seen.hypervisor:
        return f"the virtual PMU of this machine cannot count {event}", f"{INSTEAD}, {CLOUDS}"
    return f"the PMU of this processor cannot count {event} in user space only", INSTEAD


def _invalid(seen: Surroundings, event: str, pid: int) -> tuple[str, str]:
    return (
        f"the PMU has no event with the code of {event}, or the kernel is too old for it",
        f"{INSTEAD}, or a newer kernel",
    )


def _too_many(seen: Surroundings, event: str, pid: int) -> tuple[str, str]:
    return (
        f"no file descriptors are left for {event}: each thread needs one for each event",
        "Raise the limit: `ulimit -n 65536`",
    )


def _gone(seen: Surroundings, event: str, pid: int) -> tuple[str, str]:
    return f"process {pid} has ended" if pid else "the thread has ended", "Start it again"


def _no_cpu(seen: Surroundings, event: str, pid: int) -> tuple[str, str]:
    return f"the CPUs that could count {event} are offline", "Bring them online again, or use --counter instrumented"


def _busy(seen: Surroundings, event: str, pid: int) -> tuple[str, str]:
    return f"another program holds the counters that {event} needs for itself", "End that program first"


_Explain = Callable[[Surroundings, str, int], tuple[str, str]]
_EXPLAINED: dict[int, _Explain] = {
    errno.EACCES: _no_access,
    errno.EPERM: _not_permitted,
    errno.ENOSYS: _no_call,
    errno.ENOENT: _no_event,
    errno.EOPNOTSUPP: _not_supported,
    errno.EINVAL: _invalid,
    errno.E2BIG: _invalid,
    errno.EMFILE: _too_many,
    errno.ENFILE: _too_many,
    errno.ESRCH: _gone,
    errno.ENODEV: _no_cpu,
    errno.ENXIO: _no_cpu,
    errno.EBUSY: _busy,
}


def shared(event: str, enabled: int, running: int, seen: Surroundings) -> tuple[str, str]:
    """That an event was not on a counter all the time, which nothing can make good, and what takes counters away."""
    share = f"{running / enabled:.0%}" if enabled else "none"
    reason = f"{event} was on a counter for {share} of the time only: something else uses the counters"
    if seen.watchdog:
        return reason, "Switch the watchdog off that holds one: `sudo sysctl kernel.nmi_watchdog=0`."
    return reason, "End other programs that use the counters (perf, a profiler, a monitoring agent)."
