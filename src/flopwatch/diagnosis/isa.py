"""The instruction sets that floating-point work uses, under the kernel's names for them."""

from __future__ import annotations

from flopwatch.counters.hardware.surroundings import processor_flags
from flopwatch.diagnosis.findings import Section, cannot, ok
from flopwatch.diagnosis.host import Host

# In the order in which they came; a name with a star stands for all that begin so.
X86 = ("sse2", "sse4_1", "avx", "f16c", "fma4", "xop", "fma", "avx2", "avx_vnni*", "avx512*", "avx10*", "amx_*", "apx*")
ARM = ("fp", "asimd", "fphp", "asimdhp", "asimddp", "asimdrdm", "fcma", "asimdfhm", "bf16", "i8mm", "sve*", "sme*")
# docs/how-it-counts.md: what cpuid does not show a program that the engine runs.
HIDDEN = ("avx10*", "apx*", "rtm", "hle")
SVE_LENGTH = "proc/sys/abi/sve_default_vector_length"  # bytes


def check(host: Host) -> Section:
    """What there is, and what counted programs do not see of it."""
    flags = processor_flags(host.root)
    if host.system == "darwin" and not flags:
        listed = host.output("sysctl", "-n", "hw.optional.arm.FEAT_BF16", "hw.optional.neon")
        flags = frozenset(("asimd", "bf16") if listed.split()[:1] == ["1"] else ("asimd",) if listed else ())
    arm = host.machine in ("aarch64", "arm64")
    names = chosen(flags, ARM if arm else X86)
    facts = {"isa": host.machine, "extensions": names}
    findings = [ok("architecture", host.machine)]
    findings.append(ok("extensions", " ".join(names)) if names else cannot("extensions", "the system shows none"))
    length = host.number(SVE_LENGTH)
    if length:
        findings.append(ok("scalable vectors", f"{length * 8} bits by default"))
    hidden = [] if arm else chosen(flags, HIDDEN)
    if hidden:
        findings.append(
            cannot("while counting", f"the instrumented counter hides these from programs: {' '.join(hidden)}")
        )
    return Section("instruction sets", tuple(findings), facts | {"hidden": hidden})


def chosen(flags: frozenset[str], wanted: tuple[str, ...]) -> list[str]:
    """Those of the flags that are wanted, in that order."""
    found: list[str] = []
    for name in wanted:
        stem = name.removesuffix("*")
        found += sorted(flag for flag in flags if flag == name or (name != stem and flag.startswith(stem)))
    return found
