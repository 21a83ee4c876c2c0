"""Commands and running processes: one run for each set of events, never scaled; on the fake kernel, and for real by the kernel's events."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flopwatch.counters import CommandOptions, CommandResult, Needs, RawEvent
from flopwatch.counters.hardware import HardwareCounter, running
from flopwatch.counters.hardware.plan import plan
from flopwatch.errors import CannotMeasureError
from flopwatch.flops.operations import DType
from flopwatch.flops.readings import classify_readings
from flopwatch.measuring import measure_command, measure_process
from flopwatch.subjects.process import Ended
from tests.fake_kernel import SECOND, SEEN, FakeKernel, kind, policy, split_table

INSTRUCTIONS = 1000
CODES = {row.name: row.code for row in split_table().rows}
FLOP = {DType.FP32: INSTRUCTIONS * (1 + 4 + 8 + 16), DType.FP64: INSTRUCTIONS * (1 + 2 + 4 + 8)}


@dataclass
class Commands:
    """What is run in place of commands: each run ends as told and does INSTRUCTIONS of every kind."""

    kernel: FakeKernel
    ends: list[Ended] = field(default_factory=lambda: [Ended(0, 0, 1.0, pid=7)])
    outputs: list[object] = field(default_factory=list)

    def run(
        self, argv: object, env: object = None, *, stdin: object = None, stdout: object = None, stderr: object = None
    ) -> Ended:
        self.outputs.append(stdout)
        self.kernel.tick(dict.fromkeys(CODES.values(), INSTRUCTIONS))
        return self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Commands]:
    def make(kernel: FakeKernel, *ends: Ended) -> Commands:
        made = Commands(kernel, *([list(ends)] if ends else []))
        monkeypatch.setattr(running.process, "run", made.run)
        return made

    return make


def flop(result: CommandResult) -> dict[DType, int]:
    (readings,) = result.processes[0].readings
    return classify_readings(readings.readings, readings.table).tally.flop()


def counted(kernel: FakeKernel, *, once: bool = False) -> CommandResult:
    options = CommandOptions(needs=Needs(once=once))
    return running.run(["x"], options, plan([kind(kernel.table)]), kernel, SEEN)


def test_all_events_at_once(commands: Callable[..., Commands]) -> None:
    kernel = FakeKernel()
    ran = commands(kernel)
    result = counted(kernel)
    assert flop(result) == FLOP
    assert ran.outputs == [None]
    assert all(attr.inherit and attr.enable_on_exec and attr.disabled for attr, _ in kernel.opened)
    assert not result.reasons and not kernel.events
    assert result.processes[0].pid == 7


def test_one_run_for_each_set_and_only_the_first_with_output(commands: Callable[..., Commands]) -> None:
    kernel = FakeKernel(split_table(4))
    ran = commands(kernel)
    result = counted(kernel)
    assert flop(result) == FLOP
    assert ran.outputs == [None, subprocess.DEVNULL]
    assert "the command ran 2 times to count all events; output of the first run only" in result.notes


def test_shared_counters_are_counted_again_in_smaller_sets(commands: Callable[..., Commands]) -> None:
    kernel = FakeKernel(counters=2)
    ran = commands(kernel)
    assert flop(counted(kernel)) == FLOP
    assert len(ran.outputs) == 1 + 2 + 4  # 8 events, 4 and 4, 2 and 2 and 2 and 2


def test_an_event_that_is_never_alone_is_refused(commands: Callable[..., Commands]) -> None:
    kernel = FakeKernel(counters=0)
    commands(kernel)
    with pytest.raises(CannotMeasureError, match="counts are never scaled"):
        counted(kernel)
    assert not kernel.events


def test_a_program_that_may_not_run_again_is_partial(commands: Callable[..., Commands]) -> None:
    kernel = FakeKernel(counters=4)
    ran = commands(kernel)
    result = counted(kernel, once=True)
    assert len(ran.outputs) == 1
    assert "was on a counter for 50% of the time only" in result.reasons[0]
    assert flop(result) == {dtype: each // 2 for dtype, each in FLOP.items()}  # not scaled


def test_a_run_that_ends_differently(commands: Callable[..., Commands]) -> None:
    kernel = FakeKernel(split_table(4))
    commands(kernel, Ended(0, 0, 1.0), Ended(1, 0, 1.0))
    assert counted(kernel).reasons == ("the command ended differently when it ran again for further events",)


def test_ctrl_c_ends_it_all(commands: Callable[..., Commands]) -> None:
    kernel = FakeKernel(split_table(4))
    ran = commands(kernel, Ended(130, 2, 1.0, interrupted=True))
    result = counted(kernel)
    assert result.interrupted and len(ran.outputs) == 1
    assert result.reasons[0].startswith("not counted, since the command did not run again: SCALAR_FP64")


def test_kinds_of_cores_are_added_and_not_scaled(commands: Callable[..., Commands]) -> None:
    from flopwatch.counters.hardware.surroundings import Pmu

    kernel = FakeKernel()
    commands(kernel)
    kinds = [
        kind(split_table(name="p"), Pmu("cpu_core", 4, (0, 1))),
        kind(split_table(name="e"), Pmu("cpu_atom", 10, (2,))),
    ]

    def tick(counts: object, nanoseconds: int = SECOND) -> None:
        for event in kernel.events.values():
            core = event.attr.type == 4
            event.enabled += nanoseconds
            event.running += nanoseconds // 4 * (1 if core else 3)
            event.counted += INSTRUCTIONS // 4 * (1 if core else 3)

    kernel.tick = tick  # type: ignore[method-assign]
    result = running.run(["x"], CommandOptions(), plan(kinds), kernel, SEEN)
    assert not result.reasons
    assert [attr.type for attr, _ in kernel.opened] == [4] * 8 + [10] * 8
    totals: dict[DType, int] = {}
    for each in result.processes[0].readings:
        for dtype, worth in classify_readings(each.readings, each.table).tally.flop().items():
            totals[dtype] = totals.get(dtype, 0) + worth
    assert totals == FLOP


def test_attaching_counts_each_thread_by_itself() -> None:
    kernel = FakeKernel()

    def wait() -> bool:
        kernel.tick(dict.fromkeys(CODES.values(), INSTRUCTIONS))
        return True

    with subprocess.Popen(["sleep", "60"]) as child:
        while not Path(f"/proc/{child.pid}/cmdline").read_bytes():
            pass  # exec is under way
        result = running.attach(child.pid, wait, plan([kind()]), kernel, SEEN)
        child.kill()
    (image,) = result.processes
    assert result.interrupted and image.how == "attach" and image.argv == ("sleep", "60")
    assert [(thread.tid, thread.name) for thread in image.threads] == [(child.pid, "sleep")]
    assert flop(result) == FLOP
    assert {reading.scope.thread for reading in image.readings[0].readings} == {str(child.pid)}


@pytest.fixture
def software(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = HardwareCounter().available(Needs(events=(RawEvent("page-faults"),)))
    if not answer.ok:
        pytest.skip(f"perf_event_open does not work here: {answer.reason}")


@pytest.mark.usefixtures("software")
def test_the_kernels_events_of_a_command_for_real() -> None:
    pages = 3000
    code = f"m = __import__('mmap').mmap(-1, {pages} * 4096)\nfor i in range({pages}): m[i * 4096] = 1"
    events = (RawEvent("page-faults", 0, 2), RawEvent("task-clock"))
    empty = measure_command([sys.executable, "-S", "-c", ""], counter="hardware", events=events, timed=False)
    record = measure_command([sys.executable, "-S", "-c", code], counter="hardware", events=events, timed=False)
    faults, clock = record.events
    assert 0 <= faults.count - empty.events[0].count - pages < 400
    assert record.flop() == {DType.ANY: 2 * faults.count}
    assert (faults.weight, clock.weight, faults.code) == (2, None, "")
    assert record.counter == "hardware" and record.complete and not record.unknown


@pytest.mark.usefixtures("software")
def test_the_kernels_events_of_a_running_process() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as child:
        record = measure_process(
            child.pid, during=["sleep", "0.3"], counter="hardware", events=(RawEvent("task-clock"),)
        )
        child.kill()
    assert 1_000_000 < record.events[0].count < 2 * SECOND
    assert record.subject == "process"


def test_a_static_program_can_be_counted(tmp_path: Path) -> None:
    from flopwatch.subjects import elf

    HardwareCounter(policy(FakeKernel(), tmp_path)).check(elf.Program("/bin/sh", 64, elf.X86_64, ""))
