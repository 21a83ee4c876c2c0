"""The event tables against those of libpfm4, which answers for processors that are not there, too."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

import pytest

from flopwatch.flops import pmu

# Table -> the names that libpfm4 has for the same cores.
PMUS = {
    "nehalem": ("nhm", "nhm_ex"),
    "westmere": ("wsm", "wsm_dp"),
    "sandybridge": ("snb", "snb_ep"),
    "ivybridge": ("ivb", "ivb_ep"),
    "broadwell": ("bdw", "bdw_ep"),
    "skylake": ("skl",),
    "skylake-server": ("skx",),
    "cascadelake": ("clx",),
    "icelake": ("icl",),
    "icelake-server": ("icx",),
    "sapphirerapids": ("spr",),
    "goldencove": ("adl_glc",),
    "graniterapids": ("gnr",),
    "bulldozer": ("amd64_fam15h_interlagos",),
    "jaguar": ("amd64_fam16h",),
    "zen1": ("amd64_fam17h_zen1",),
    "zen2": ("amd64_fam17h_zen2",),
    "zen3": ("amd64_fam19h_zen3",),
    "zen4": ("amd64_fam19h_zen4",),
    "zen5": ("amd64_fam1ah_zen5",),
    "k10": ("amd64_fam10h_shanghai", "amd64_fam10h_istanbul"),
}
NO_FLOP_EVENT = {"haswell": ("hsw", "hsw_ep"), "silvermont": ("slm",), "goldmont": ("glm",), "tremont": ("tmt",)}
# Their names for ours, where they are not the same but for the punctuation.
RENAMED = {
    "fp_comp_ops_exe sse_scalar_single": "fp_comp_ops_exe sse_fp_scalar_single",
    "fp_comp_ops_exe sse_packed_double": "fp_comp_ops_exe sse_fp_packed_double",
    "fp_ret_sse_avx_ops all": "retired_sse_avx_flops any",
    "retired_sse_ops all": "retired_sse_ops all",
}
# Rows that libpfm4 has in another way, with the reason.
DIFFERENT = {
    ("jaguar", "RETIRED_X87_OPERATIONS"): "its ALL is 0x0f, with a bit that stands for nothing",
}
FLOP_EVENT = ("fp_arith", "fp_comp_ops", "simd_fp_256", "flops_retired")


class PmuInfo(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("desc", ctypes.c_char_p),
        ("pmu", ctypes.c_int),
        ("type", ctypes.c_int),
        ("size", ctypes.c_size_t),
        ("nevents", ctypes.c_int),
        ("first_event", ctypes.c_int),
        ("numbers", ctypes.c_int * 3),
        ("flags", ctypes.c_uint32),
    )


class EventInfo(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("desc", ctypes.c_char_p),
        ("equiv", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("code", ctypes.c_uint64),
        ("pmu", ctypes.c_int),
        ("dtype", ctypes.c_int),
        ("idx", ctypes.c_int),
        ("nattrs", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("flags", ctypes.c_uint32),
    )


class AttrInfo(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("desc", ctypes.c_char_p),
        ("equiv", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("code", ctypes.c_uint64),
        ("type", ctypes.c_int),
        ("idx", ctypes.c_int),
        ("ctrl", ctypes.c_int),
        ("flags", ctypes.c_uint32),
        ("dfl", ctypes.c_uint64),
    )


UMASK = 1


@cache
def tables() -> Mapping[str, Mapping[str, tuple[int, int]]]:
    """PMU -> "event umask" in lower case -> event and umask, as libpfm4 has them; skips if it is not installed."""
    try:
        library = ctypes.CDLL("libpfm.so.4")
    except OSError:
        pytest.skip("libpfm4 is not installed (Debian: apt-get install libpfm4)")
    if library.pfm_initialize() != 0:
        pytest.skip("libpfm4 does not start here")
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for number in range(1024):
        info = PmuInfo(size=ctypes.sizeof(PmuInfo))
        if library.pfm_get_pmu_info(number, ctypes.byref(info)) == 0:
            found[info.name.decode()] = dict(events(library, info.first_event))
    return found


def events(library: ctypes.CDLL, first: int) -> list[tuple[str, tuple[int, int]]]:
    found = []
    index = first
    while index != -1:
        event = EventInfo(size=ctypes.sizeof(EventInfo))
        if library.pfm_get_event_info(index, 0, ctypes.byref(event)) != 0:
            break
        name = event.name.decode().lower()
        found.append((name, (event.code, 0)))
        for number in range(event.nattrs):
            attr = AttrInfo(size=ctypes.sizeof(AttrInfo))
            if library.pfm_get_event_attr_info(index, number, 0, ctypes.byref(attr)) == 0 and attr.type == UMASK:
                found.append((f"{name} {attr.name.decode().lower()}", (event.code, attr.code & 0xFF)))
        index = library.pfm_get_event_next(index)
    return found


def test_codes_and_umasks_are_those_of_libpfm4() -> None:
    compared: dict[str, int] = {}
    different = []
    for name, theirs in PMUS.items():
        for their in theirs:
            known = tables().get(their)
            if known is None:
                continue  # older than this core
            for row in pmu.load(name).rows:
                plain = row.name.lower().replace(".", " ", 1)
                found = known.get(f"{plain} all") or known.get(RENAMED.get(plain, plain))
                if found is None and plain.startswith("fp_ret_sse_avx_ops"):
                    last = plain.split()[1]
                    found = known.get(f"retired_sse_avx_flops {last}") or known.get(
                        f"retired_sse_avx_operations {last}"
                    )
                if found is None or (name, row.name) in DIFFERENT:
                    continue
                compared[name] = compared.get(name, 0) + 1
                if found[0] | found[1] << 16 != row.event | row.umask << 16 and found[0] | found[1] << 8 != row.code:
                    different.append((their, row.name, found, (row.event, row.umask)))
    assert different == []
    assert sum(compared.values()) > 100, compared
    assert {"nehalem", "sandybridge", "broadwell", "skylake", "skylake-server", "zen1", "zen2", "zen3"} <= set(compared)


def test_unions_of_umasks_are_made_of_bits_that_libpfm4_has() -> None:
    for name, umasks in {"jaguar": (0x07, 0x70), "bulldozer": (0x0F, 0xF0, 0xFF), "zen1": (0x0F, 0xF0, 0xFF)}.items():
        known = tables().get(PMUS[name][0], {})
        bits = [umask for event, umask in known.values() if event == 3 and umask and umask & (umask - 1) == 0]
        for umask in umasks:
            assert sum(bit for bit in bits if bit & umask) == umask


def test_cores_that_cannot_have_no_flop_event_there_either() -> None:
    for name, theirs in NO_FLOP_EVENT.items():
        assert pmu.load(name).can == "no"
        for their in theirs:
            assert not [event for event in tables().get(their, {}) if event.startswith(FLOP_EVENT)]


def test_m27_libpfm4_lists_no_8_flops_where_the_published_umask_is_wrong() -> None:
    for their in ("skx", "clx"):
        assert "fp_arith_inst_retired 8_flops" not in tables()[their]
    assert tables()["icx"]["fp_arith_inst_retired 8_flops"] == (0xC7, 0x60)
    assert pmu.load("skylake-server").by_name["fp_arith_inst_retired.8_flops"].umask == 0x60


def test_m29_types_and_operations_are_combined() -> None:
    known = tables().get("amd64_fam1ah_zen5")
    if known is None:
        pytest.skip("this libpfm4 does not know the core yet (4.13 does not)")
    ours = {row.umask & 0xE0 for row in pmu.load("zen5").rows if row.event == 3}
    theirs = {umask & 0xE0 for event, umask in known.values() if event == 3}
    assert ours <= theirs | {0}
