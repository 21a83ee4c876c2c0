"""What perf stat prints; the texts are of perf 6.1 but for the counts of hardware events."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from flopwatch.errors import UsageError
from flopwatch.formats import perf

SEPARATED = """\
# started on Mon Nov 30 00:39:50 2026

0.80,msec,task-clock,795194,100.00,0.005,CPUs utilized
73,,page-faults:u,795194,100.00,91.801,K/sec
85770094,,r02c7,795194,100.00,,
<not supported>,,r80c7,0,100.00,,
<not counted>,,fp_arith_inst_retired.scalar_double:u,0,0.00,,
12,,cpu/event=0xc7,umask=0x8/u,400000,50.30,,
150372851,ns,duration_time,150372851,100.00,189.102,G/sec
"""
JSON = """\
{"counter-value" : "0.821584", "unit" : "msec", "event" : "task-clock", "event-runtime" : 821584, "pcnt-running" : 100.00, "metric-value" : 0.005290, "metric-unit" : "CPUs utilized"}
{"counter-value" : "85770094.000000", "unit" : "", "event" : "r02c7", "event-runtime" : 821584, "pcnt-running" : 100.00, "metric-value" : 0.000000, "metric-unit" : ""}
{"counter-value" : "<not supported>", "unit" : "", "event" : "r80c7", "event-runtime" : 0, "pcnt-running" : 100.00, "metric-value" : 0.000000, "metric-unit" : ""}
{"metric-value" : 1.5, "metric-unit" : "insn per cycle"}
"""  # noqa: E501 - as perf prints it


def short(text: str) -> list[tuple[str, str, int, int, str, float]]:
    return [
        (each.pmu, each.reading.name, each.reading.code, each.reading.count, each.missing, each.running)
        for each in perf.parse(text)
    ]


def test_separated() -> None:
    assert short(SEPARATED) == [
        ("", "task-clock", 0, 1, "", 1.0),
        ("", "page-faults", 0, 73, "", 1.0),
        ("", "r02c7", 0x02C7, 85_770_094, "", 1.0),
        ("", "r80c7", 0x80C7, 0, "<not supported>", 1.0),
        ("", "fp_arith_inst_retired.scalar_double", 0, 0, "<not counted>", 0.0),
        ("cpu", "cpu/event=0xc7,umask=0x8/", 0x08C7, 12, "", 0.503),
        ("", "duration_time", 0, 150_372_851, "", 1.0),
    ]
    shared = perf.parse(SEPARATED)[5].reading
    assert shared.running == 400_000 and shared.enabled == round(400_000 / 0.503)


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators(separator: str) -> None:
    text = SEPARATED.replace("cpu/event=0xc7,umask=0x8/u", "r08c7").replace(",", separator)
    assert [count for *_, count, _, _ in short(text)] == [1, 73, 85_770_094, 0, 0, 12, 150_372_851]


def test_json() -> None:
    assert short(JSON) == [
        ("", "task-clock", 0, 1, "", 1.0),
        ("", "r02c7", 0x02C7, 85_770_094, "", 1.0),
        ("", "r80c7", 0x80C7, 0, "<not supported>", 1.0),
    ]


def test_repeated_runs() -> None:
    text = "73,,page-faults:u,0.91%,806641,100.00,90.481,K/sec\n<not supported>,,r02c7,0.00%,0,100.00,,\n"
    assert [(each.reading.count, each.running, each.spread) for each in perf.parse(text)] == [
        (73, 1.0, 0.0091),
        (0, 1.0, 0.0),
    ]
    text = '{"counter-value" : "72.000000", "event" : "r02c7", "variance" : 0.80, "event-runtime" : 8, "pcnt-running" : 100.00}'
    assert [(each.reading.count, each.spread) for each in perf.parse(text)] == [(72, 0.008)]


@pytest.mark.parametrize(
    ("line", "thread"),
    [
        ("     0.100163721,73,,r02c7,1056362,100.00,,", ""),
        ("CPU0,73,,r02c7,6813804,100.00,,", ""),
        ("S0,2,73,,r02c7,20378952,100.00,,", ""),
        ("python3-1234,73,,r02c7,20378952,100.00,,", "python3-1234"),
        ("kworker/0:1-9,73,,r02c7,20378952,100.00,,", "kworker/0:1-9"),
        ("73,,r02c7", ""),
        ("73,,r02c7,,", ""),
    ],
)
def test_columns_before_and_behind(line: str, thread: str) -> None:
    (found,) = perf.parse(line)
    assert (found.reading.count, found.reading.code, found.reading.scope.thread) == (73, 0x02C7, thread)
    assert found.running == 1.0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("r02c7", ("", "r02c7", 0x02C7)),
        ("r2C7:u", ("", "r2C7", 0x02C7)),
        ("cpu/r2c7/", ("cpu", "r2c7", 0x02C7)),
        ("cpu/config=0x2c7/u", ("cpu", "cpu/config=0x2c7/", 0x02C7)),
        ("cpu/event=0xca,umask=0x1e,cmask=1/", ("cpu", "cpu/event=0xca,umask=0x1e,cmask=1/", 0x1001ECA)),
        ("cpu_core/fp_arith_inst_retired.scalar/u", ("cpu_core", "fp_arith_inst_retired.scalar", 0)),
        ("fp_arith_inst_retired.scalar_single:uk", ("", "fp_arith_inst_retired.scalar_single", 0)),
        ("armv8_pmuv3_0/fp_fixed_ops_spec/", ("armv8_pmuv3_0", "fp_fixed_ops_spec", 0)),
        ("armv8_pmuv3_0/event=0x80c1/", ("armv8_pmuv3_0", "armv8_pmuv3_0/event=0x80c1/", 0x80C1)),
        ("retired_ops", ("", "retired_ops", 0)),
    ],
)
def test_events(text: str, found: tuple[str, str, int]) -> None:
    assert perf.event_of(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not the output of perf stat"),
        ("# started on Mon\n\n", "is not the output of perf stat"),
        ("hello world\n", "is not the output of perf stat"),
        (" Performance counter stats for 'true':\n\n 0.56 msec task-clock\n", "perf's table for people"),
        ("73,,r02c7,1,100.00,,\nhello from the program\n", "a line that is not perf's. 'hello from the program'"),
        ("73,,r02c7,1,x,,\n", "a count that is no number"),
        ('{"counter-value" : "1", "event"\n', "a line that is no JSON object"),
        ('{"metric-value" : 1.5}\n', "holds no event"),
    ],
)
def test_what_is_not_perfs_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        perf.parse(text, "'x'")
    assert said in str(error.value) and "perf stat" in error.value.todo


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file or directory"):
        perf.read(tmp_path / "none")


@pytest.mark.parametrize(
    "options", [["-x,"], ["-x;"], ["-j"], ["-x,", "-r", "2"], ["-j", "-r", "2"], ["-x,", "-I", "10"]]
)
def test_perf_itself(options: list[str], tmp_path: Path) -> None:
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed (Debian: apt-get install linux-perf)")
    out = tmp_path / "out"
    command = ["perf", "stat", *options, "-o", str(out), "-e", "task-clock,page-faults,r02c7", "sleep", "0.02"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("perf may not count here")
    found = perf.read(out)
    assert {each.reading.name for each in found} == {"task-clock", "page-faults", "r02c7"}
    assert sum(each.reading.count for each in found if each.reading.name == "page-faults") > 0
    assert all((each.spread is not None) == ("-r" in options) for each in found)
