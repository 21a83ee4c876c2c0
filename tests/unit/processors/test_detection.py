"""Identification of processors, from the texts that Linux shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flopwatch import processors
from flopwatch.errors import CannotMeasureError, UsageError
from flopwatch.processors.detection import X86, cpus_in, data


def x86(vendor: str, family: int, model: int, stepping: int = 1) -> str:
    core = f"vendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: any\nstepping\t: {stepping}\n"
    return f"processor\t: 0\n{core}\nprocessor\t: 1\n{core}\n"


def arm(*parts: tuple[int, int]) -> str:
    return "".join(
        f"processor\t: {cpu}\nBogoMIPS\t: 108.00\nCPU implementer\t: {implementer:#04x}\nCPU part\t: {part:#05x}\nCPU revision\t: 1\n\n"
        for cpu, (implementer, part) in enumerate(parts)
    )


def with_pmus(root: Path, **cpus: str) -> Path:
    for name, listed in cpus.items():
        for folder in (root / "devices" / name, root / "bus" / "event_source" / "devices" / name):
            folder.mkdir(parents=True)
            (folder / "cpus").write_text(f"{listed}\n")
    return root


INTEL, AMD = "GenuineIntel", "AuthenticAMD"


@pytest.mark.parametrize(
    ("vendor", "family", "model", "stepping", "name"),
    [
        (INTEL, 6, 0x1A, 5, "nehalem"),
        (INTEL, 6, 0x2D, 7, "sandybridge"),
        (INTEL, 6, 0x3F, 2, "haswell"),
        (INTEL, 6, 0x4F, 1, "broadwell"),
        (INTEL, 6, 0x5E, 3, "skylake"),
        (INTEL, 6, 0x9E, 10, "skylake"),
        (INTEL, 6, 0x55, 4, "skylake-server"),
        (INTEL, 6, 0x55, 7, "cascadelake"),
        (INTEL, 6, 0x55, 11, "cooperlake"),
        (INTEL, 6, 0x6A, 6, "icelake-server"),
        (INTEL, 6, 0x8F, 8, "sapphirerapids"),
        (INTEL, 6, 0xBE, 0, "gracemont"),
        (INTEL, 6, 0xAF, 3, "sierraforest"),
        (AMD, 0x15, 0x02, 0, "bulldozer"),
        (AMD, 0x17, 0x01, 2, "zen1"),
        (AMD, 0x17, 0x50, 0, "zen1"),
        (AMD, 0x17, 0x31, 0, "zen2"),
        (AMD, 0x19, 0x01, 1, "zen3"),
        (AMD, 0x19, 0x11, 1, "zen4"),
        (AMD, 0x1A, 0x02, 1, "zen5"),
        ("HygonGenuine", 0x18, 0x00, 1, "zen1"),
    ],
)
def test_x86(vendor: str, family: int, model: int, stepping: int, name: str) -> None:
    found = processors.detect(x86(vendor, family, model, stepping))
    assert (found.name, found.vendor, found.family, found.model, found.stepping) == (
        name,
        vendor,
        family,
        model,
        stepping,
    )
    assert [(kind.pmu, kind.microarchitecture) for kind in found.kinds] == [("cpu", name)]
    assert not found.hybrid


def test_hybrid(tmp_path: Path) -> None:
    root = with_pmus(tmp_path, cpu_core="0-15", cpu_atom="16-23")
    found = processors.detect(x86(INTEL, 6, 0xB7), sys=root)
    assert found.name == "goldencove+gracemont" and found.hybrid
    assert [(kind.pmu, kind.microarchitecture, kind.cpus) for kind in found.kinds] == [
        ("cpu_core", "goldencove", "0-15"),
        ("cpu_atom", "gracemont", "16-23"),
    ]


def test_hybrid_with_three_kinds_and_with_one(tmp_path: Path) -> None:
    root = with_pmus(tmp_path / "all", cpu_core="0-5", cpu_atom="6-13", cpu_lowpower="14-15")
    assert processors.detect(x86(INTEL, 6, 0xC5), sys=root).name == "lioncove+skymont+crestmont"
    root = with_pmus(tmp_path / "one", cpu_core="0-5")
    assert processors.detect(x86(INTEL, 6, 0xC5), sys=root).name == "lioncove"


def test_hybrid_that_cannot_be_told_apart(tmp_path: Path) -> None:
    with pytest.raises(
        CannotMeasureError, match="goldencove and gracemont, but the kernel names neither cpu_core nor cpu_atom"
    ):
        processors.detect(x86(INTEL, 6, 0x97), sys=tmp_path)


def test_arm(tmp_path: Path) -> None:
    root = with_pmus(tmp_path, armv8_cortex_a76="0-1")
    found = processors.detect(arm((0x41, 0xD0B), (0x41, 0xD0B)), sys=root)
    assert (found.name, found.vendor, found.model) == ("cortex-a76", "0x41", 0xD0B)
    assert found.kinds[0].pmu == "armv8_cortex_a76"


def test_big_and_little(tmp_path: Path) -> None:
    root = with_pmus(tmp_path, armv8_cortex_a55="0-1", armv8_cortex_a76="2")
    found = processors.detect(arm((0x41, 0xD05), (0x41, 0xD05), (0x41, 0xD0B)), sys=root)
    assert [(kind.pmu, kind.microarchitecture, kind.cpus) for kind in found.kinds] == [
        ("armv8_cortex_a55", "cortex-a55", "0,1"),
        ("armv8_cortex_a76", "cortex-a76", "2"),
    ]


@pytest.mark.parametrize(
    ("implementer", "part", "name"),
    [(0x41, 0xD40, "neoverse-v1"), (0x46, 0x001, "a64fx"), (0x61, 0x022, "apple"), (0xC0, 0xAC3, "ampereone")],
)
def test_other_parts(implementer: int, part: int, name: str, tmp_path: Path) -> None:
    assert processors.detect(arm((implementer, part)), sys=tmp_path).name == name


@pytest.mark.parametrize(
    ("cpuinfo", "seen"),
    [
        (x86(INTEL, 6, 0xFE), "GenuineIntel family 6 (0x6) model 0xfe stepping 1"),
        (x86(AMD, 0x17, 0x80), "AuthenticAMD family 23 (0x17) model 0x80"),
        (x86("CentaurHauls", 6, 0x5E), "CentaurHauls family 6"),
        (arm((0x41, 0xFFF)), "implementer 0x41, part 0xfff"),
        ("processor : 0\nisa : rv64gc\n", "neither a family nor a part"),
        ("", "neither a family nor a part"),
    ],
)
def test_unknown_ends_in_a_sentence(cpuinfo: str, seen: str, tmp_path: Path) -> None:
    with pytest.raises(CannotMeasureError) as error:
        processors.detect(cpuinfo, sys=tmp_path)
    assert seen in error.value.seen and "--counter instrumented" in error.value.todo


def test_names() -> None:
    assert processors.find("Skylake").name == "skylake"
    assert processors.find("Coffee Lake").name == "skylake"
    assert processors.find("ZEN4").name == "zen4"
    assert [kind.pmu for kind in processors.find("alderlake").kinds] == ["cpu_core", "cpu_atom"]
    assert processors.find("cortex a53").name == "cortex-a53"
    with pytest.raises(UsageError, match=r"no processor named 'skylke'\. Did you mean skylake") as error:
        processors.find("skylke")
    assert error.value.exit_code == 2


def test_every_name_is_found() -> None:
    for name in processors.names():
        assert processors.find(name).kinds


def numbers(row: X86) -> Iterator[tuple[int, int]]:
    """Each model and stepping of a row."""
    ranges = [(each, each) if isinstance(each, int) else each for each in row.models or ((0, 255),)]
    for first, last in ranges:
        for model in range(first, last + 1):
            for stepping in range(row.steppings[0], min(row.steppings[1], 15) + 1):
                yield model, stepping


def test_no_two_rows_claim_one_processor() -> None:
    seen: dict[tuple[str, int, int, int], str] = {}
    for row in data().x86:
        assert row.source and bool(row.kinds) != bool(row.microarchitecture)
        for model, stepping in numbers(row):
            key = (row.vendor, row.family, model, stepping)
            assert key not in seen, f"{key} is {seen[key]} and {row.microarchitecture}"
            seen[key] = row.microarchitecture
    parts = [(row.implementer, part) for row in data().arm for part in row.parts]
    assert len(parts) == len(set(parts)) and all(row.source for row in data().arm)


def test_lists_of_cpus() -> None:
    assert cpus_in("0-2,7") == {0, 1, 2, 7} and cpus_in("") == set()
