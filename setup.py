"""Two extensions in C: the counting engine, which is freestanding (no Python, no libc), and the tap on PyTorch's observers."""

from pathlib import Path

from setuptools import Extension, setup

ENGINE = "src/flopwatch/counters/instrumented/engine"

setup(
    ext_modules=[
        Extension(
            "flopwatch.counters.instrumented._engine",
            sources=sorted(str(path) for path in Path(ENGINE).glob("*.c")),
            depends=[f"{ENGINE}/engine.h"],
            extra_compile_args=[
                "-O2",
                "-fPIC",
                "-ffreestanding",
                "-mgeneral-regs-only",  # the measured program's vector state is never touched
                "-fno-stack-protector",
                "-fno-tree-loop-distribute-patterns",  # memcpy must not become a call to itself
                "-fcf-protection=none",
                "-fvisibility=hidden",
                "-Wall",
                "-Wextra",
            ],
            extra_link_args=[
                "-nostdlib",
                "-Wl,-Bsymbolic",
                "-Wl,-z,initfirst",  # before any other constructor of a preloaded process
                "-Wl,-z,now",
                "-Wl,-z,defs",
            ],
        ),
        Extension(
            "flopwatch.frameworks.torch._observer",
            sources=["src/flopwatch/frameworks/torch/_observer.c"],
            extra_compile_args=["-O2", "-Wall", "-Wextra"],
        ),
    ]
)
