"""The binding agrees with the kernel's own header, and with the kernel."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from flopwatch.counters.hardware import perf_event
from flopwatch.counters.hardware.perf_event import TYPE_SOFTWARE, Attr, Linux, MappedPage, difference, signed
from flopwatch.counters.hardware.software import SOFTWARE

HEADER = Path("/usr/include/linux/perf_event.h")
PROGRAM = """
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <stddef.h>
#include <sys/syscall.h>
int main(void) {
    struct perf_event_attr a;
    memset(&a, 0, sizeof a);
    a.type = 4; a.size = PERF_ATTR_SIZE_VER1; a.config = 0x2c7; a.config1 = 7;
    a.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    a.disabled = a.inherit = a.exclude_kernel = a.exclude_hv = a.enable_on_exec = 1;
    for (size_t i = 0; i < PERF_ATTR_SIZE_VER1; i++) printf("%02x", ((unsigned char *)&a)[i]);
    struct perf_event_mmap_page p;
    memset(&p, 0, sizeof p);
    p.cap_user_rdpmc = 1;
    printf(" %llu", (unsigned long long)p.capabilities);
#define AT(field) printf(" %zu", offsetof(struct perf_event_mmap_page, field))
    AT(lock); AT(index); AT(offset); AT(time_enabled); AT(time_running); AT(capabilities); AT(pmc_width);
    printf(" %lu %lu %lu", (unsigned long)PERF_EVENT_IOC_ENABLE, (unsigned long)PERF_EVENT_IOC_DISABLE, (unsigned long)SYS_perf_event_open);
    return 0;
}
"""


@pytest.mark.skipif(not HEADER.exists() or not shutil.which("gcc"), reason="needs gcc and the kernel's headers")
def test_the_attribute_and_the_page_are_those_of_the_header(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-o", str(tmp_path / "a"), str(tmp_path / "a.c")], check=True)
    out = subprocess.run([str(tmp_path / "a")], check=True, capture_output=True, text=True).stdout.split()
    attr = Attr(4, 0x2C7, 7, inherit=True, enable_on_exec=True)
    assert attr.packed().hex() == out[0]
    assert int(out[1]) == perf_event._CAP_USER_RDPMC
    lock, index, offset, enabled, running, capabilities, width = map(int, out[2:9])
    assert (lock, index, offset, enabled, running, capabilities, width) == (8, 12, 16, 24, 32, 40, 48)
    assert lock == perf_event._PAGE_LOCK
    assert perf_event._PAGE.size == width + 2 - lock
    assert [int(each) for each in out[9:11]] == [perf_event.IOC_ENABLE, perf_event.IOC_DISABLE]
    assert int(out[11]) == perf_event._NUMBERS[os.uname().machine]


def test_user_space_only_unless_the_kernel_is_asked_for() -> None:
    def flags(attr: Attr) -> int:
        return int.from_bytes(attr.packed()[40:48], "little")

    both = perf_event.EXCLUDE_KERNEL | perf_event.EXCLUDE_HV
    assert flags(Attr(4, 1)) & both == both
    assert flags(Attr(4, 1, kernel=True)) & both == 0


@pytest.mark.parametrize(("later", "earlier"), [(5, 3), (1, 2**64 - 1)])
def test_a_counter_that_overflows_goes_on(later: int, earlier: int) -> None:
    assert difference(later, earlier) == 2


def test_registers_of_48_bits_start_below_zero() -> None:
    assert signed(2**48 - 5, 48) == -5
    assert signed(7, 48) == 7
    assert signed(2**47, 48) == -(2**47)


def _page(index: int, capabilities: int) -> mmap.mmap:
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    struct.pack_into("=IIqQQQH", memory, 8, 2, index, 1000, 50, 40, capabilities, 48)
    return memory


def test_a_page_is_read_by_rdpmc_where_it_allows_that(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("rdpmc is an instruction of x86-64")
    asked: list[int] = []

    def register(index: int) -> int:
        asked.append(index)
        return 2**48 - 400

    monkeypatch.setattr(perf_event, "_rdpmc", lambda: register)
    assert MappedPage(_page(3, 4)).read() == (1000 - 400, 50, 40)
    assert asked == [2]
    assert MappedPage(_page(0, 4)).read() is None  # on no counter just now
    assert MappedPage(_page(3, 0)).read() is None  # not allowed
    assert asked == [2]


def test_a_page_that_changes_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("rdpmc is an instruction of x86-64")
    memory = _page(1, 4)
    calls: list[int] = []

    def register(index: int) -> int:
        calls.append(index)
        if len(calls) == 1:
            struct.pack_into("=I", memory, 8, 4)
        return 10

    monkeypatch.setattr(perf_event, "_rdpmc", lambda: register)
    assert MappedPage(memory).read() == (1010, 50, 40)
    assert len(calls) == 2


def test_the_kernel_maps_the_page_of_an_event_and_none_of_an_inherited_one() -> None:
    kernel = Linux()
    try:
        own = kernel.open(Attr(TYPE_SOFTWARE, SOFTWARE["page-faults"]), 0)
    except OSError as error:
        pytest.skip(f"perf_event_open does not work here: {error}")
    inherited = kernel.open(Attr(TYPE_SOFTWARE, SOFTWARE["page-faults"], inherit=True), 0)
    page = kernel.page(own)
    assert page.read() is None  # software events are on no hardware counter
    page.close()
    with pytest.raises(OSError) as caught:
        kernel.page(inherited)
    assert caught.value.errno == errno.EINVAL
    kernel.close(own)
    kernel.close(inherited)


@pytest.mark.parametrize(("attr", "number"), [(Attr(TYPE_SOFTWARE, 999), errno.ENOENT), (Attr(9999, 0), errno.ENOENT)])
def test_the_kernels_own_errors_come_through(attr: Attr, number: int) -> None:
    with pytest.raises(OSError) as caught:
        Linux().open(attr, 0)
    if caught.value.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS):
        pytest.skip(f"perf_event_open does not work here: {caught.value}")
    assert caught.value.errno in (number, errno.EINVAL, errno.EOPNOTSUPP)


def test_an_architecture_without_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")
    with pytest.raises(OSError) as caught:
        Linux().open(Attr(TYPE_SOFTWARE, 0), 0)
    assert caught.value.errno == errno.ENOSYS


def test_an_end_of_file_is_an_event_in_its_error_state() -> None:
    reader, writer = os.pipe()
    os.close(writer)
    assert Linux().read(reader) is None
    os.close(reader)
