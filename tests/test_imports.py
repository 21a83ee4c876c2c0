"""What `import flopwatch` and the command line load: no framework, and nothing slow."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"torch", "torchvision", "numpy", "chainer", "PIL", "skimage", "iced_x86", "rich", "click"}


def loaded_by(code: str) -> set[str]:
    code += "\nimport sys; print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_importing_the_package_loads_nothing_else() -> None:
    assert not loaded_by("import flopwatch") & HEAVY


@pytest.mark.parametrize("command", ["stat", "model", "show"])
def test_the_command_line_loads_no_framework(command: str) -> None:
    code = (
        "import contextlib, io\nfrom flopwatch import cli\n"
        f"with contextlib.redirect_stdout(io.StringIO()): cli.run(['{command}', '--help'])"
    )
    assert not loaded_by(code) & (HEAVY - {"iced_x86", "rich", "click"})
