"""Whatever the kernel answers ends in the right sentence, with what to do."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from flopwatch.counters import Needs, RawEvent
from flopwatch.counters.hardware import HardwareCounter, refusals, surroundings
from flopwatch.counters.hardware.opening import Event, Opened
from flopwatch.counters.hardware.surroundings import Pmu, Surroundings
from flopwatch.errors import CannotMeasureError
from tests.fake_kernel import SEEN, FakeKernel, policy

DOCKER = Surroundings(pmus=SEEN.pmus, container="docker", seccomp=True)
KUBERNETES = Surroundings(pmus=SEEN.pmus, container="kubernetes", seccomp=True)
GUEST = Surroundings(pmus=SEEN.pmus, hypervisor=True)
STRICT = Surroundings(pmus=SEEN.pmus, paranoid=4)

ANSWERS = [
    (errno.EACCES, STRICT, "perf_event_paranoid is 4", "sudo sysctl kernel.perf_event_paranoid=2"),
    (errno.EACCES, SEEN, "happens in the kernel", "kernel.perf_event_paranoid=1"),
    (errno.EPERM, DOCKER, "this container may not call", "docker|--security-opt seccomp=unconfined"),
    (errno.EPERM, KUBERNETES, "this Kubernetes container", "securityContext"),
    (errno.EPERM, STRICT, "perf_event_paranoid is 4", "sudo sysctl"),
    (errno.EPERM, SEEN, "a security module", "sudo"),
    (errno.ENOSYS, SEEN, "no perf_event_open here, as in gVisor", "--counter instrumented"),
    (errno.ENOENT, GUEST, "the virtual PMU of this machine does not offer", "bare metal"),
    (errno.ENOENT, SEEN, "the kernel does not offer", "newer kernel"),
    (errno.EOPNOTSUPP, GUEST, "the virtual PMU of this machine cannot count", "--counter instrumented"),
    (errno.EOPNOTSUPP, SEEN, "cannot count", "--counter instrumented"),
    (errno.EINVAL, SEEN, "no event with the code of", "newer kernel"),
    (errno.E2BIG, SEEN, "the kernel is too old", "newer kernel"),
    (errno.EMFILE, SEEN, "no file descriptors are left", "ulimit -n"),
    (errno.ENFILE, SEEN, "no file descriptors are left", "ulimit -n"),
    (errno.ENODEV, SEEN, "are offline", "online again"),
    (errno.EBUSY, SEEN, "another program holds", "End that program"),
    (errno.EIO, SEEN, "refused to count", "--counter instrumented"),
]


@pytest.mark.parametrize(("number", "seen", "reason", "todo"), ANSWERS, ids=lambda each: str(each)[:24])
def test_every_error_is_a_sentence(number: int, seen: Surroundings, reason: str, todo: str, tmp_path: Path) -> None:
    counter = HardwareCounter(policy(FakeKernel(refuse={None: number}), tmp_path, seen))
    answer = counter.available()
    assert not answer.ok
    assert reason in answer.reason
    assert errno.errorcode[number] in answer.reason
    assert todo.rpartition("|")[2] in answer.todo
    assert answer.reason.endswith(".") and answer.todo.endswith(".")


def test_the_thread_of_another_user() -> None:
    with pytest.raises(CannotMeasureError, match="Process 7 may not be looked into"):
        Opened(FakeKernel(refuse={None: errno.EACCES}), [Event("e", 1)], [7], seen=SEEN, pid=7)


def test_a_failed_opening_leaves_nothing_open() -> None:
    kernel = FakeKernel(descriptors=3)
    with pytest.raises(CannotMeasureError, match="ulimit"):
        Opened(kernel, [Event("a", 1), Event("b", 2)], [1, 2], seen=SEEN)
    assert not kernel.events


@pytest.mark.parametrize(
    ("seen", "reason", "todo"),
    [
        (Surroundings(system="darwin"), "macOS", "Count on Linux"),
        (Surroundings(system="win32"), "needs Linux", "Count on Linux"),
        (Surroundings(release="5.15-microsoft-standard-WSL2", hypervisor=True), "WSL2", "Linux itself"),
        (Surroundings(hypervisor=True), "no virtual PMU", "bare metal"),
        (Surroundings(), "shows no performance counters", "--counter instrumented"),
        (Surroundings(paranoid=None, pmus=(Pmu("cpu", 4),)), "no perf events", "--counter instrumented"),
    ],
)
def test_what_is_seen_without_trying(seen: Surroundings, reason: str, todo: str) -> None:
    answer = refusals.at_sight(seen)
    assert answer is not None
    assert reason in answer.reason
    assert todo in answer.todo


def test_a_machine_with_counters_is_tried() -> None:
    assert refusals.at_sight(SEEN) is None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_looking_around(tmp_path: Path) -> None:
    _write(tmp_path / "proc/cpuinfo", "flags\t\t: fpu avx2 hypervisor\n")
    _write(tmp_path / "proc/self/status", "Name:\tx\nSeccomp:\t2\n")
    _write(tmp_path / "proc/sys/kernel/perf_event_paranoid", "3\n")
    _write(tmp_path / "proc/sys/kernel/nmi_watchdog", "1\n")
    _write(tmp_path / ".dockerenv", "")
    devices = tmp_path / surroundings.DEVICES
    for name, number, cpus in (
        ("cpu_core", 4, "0-3,6\n"),
        ("cpu_atom", 10, "\n"),
        ("software", 1, None),
        ("uncore_imc", 9, None),
    ):
        _write(devices / name / "type", f"{number}\n")
        if cpus is not None:
            _write(devices / name / "cpus", cpus)
    seen = surroundings.look(tmp_path, {})
    assert (seen.paranoid, seen.hypervisor, seen.container, seen.seccomp, seen.watchdog) == (
        3,
        True,
        "docker",
        True,
        True,
    )
    # All CPUs of the other kind are offline.
    assert seen.pmus == (Pmu("cpu_core", 4, (0, 1, 2, 3, 6)),)
    assert surroundings.processor_flags(tmp_path) == {"fpu", "avx2", "hypervisor"}
    assert surroundings.look(tmp_path, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}).container == "kubernetes"


def test_looking_where_nothing_is(tmp_path: Path) -> None:
    seen = surroundings.look(tmp_path, {})
    assert (seen.paranoid, seen.pmus, seen.container) == (None, (), "")
    assert surroundings.boot_id(tmp_path) == ""


def test_this_machine_says_why_or_works() -> None:
    answer = HardwareCounter().available()
    assert answer.ok or (answer.reason.endswith(".") and answer.todo)


def test_events_that_the_user_names_have_to_open(tmp_path: Path) -> None:
    kernel = FakeKernel(refuse={0x2C7: errno.ENOENT})
    counter = HardwareCounter(policy(kernel, tmp_path))
    answer = counter.available(Needs(events=(RawEvent("r02c7", 0x2C7),)))
    assert "does not offer r02c7" in answer.reason.replace(" (r2c7)", "")
    assert counter.available(Needs(events=(RawEvent("r08c7", 0x8C7),))).ok
