"""Imports point one way: a module may import only from its own line and the lines above it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"

# From the ground up. A package stands for everything in it; functions and TYPE_CHECKING blocks may import anything.
LAYERS = (
    ("errors", "sheet", "scope"),
    ("events",),
    ("flops",),
    ("processors",),
    ("formats",),
    ("subjects",),
    ("frameworks",),
    ("counters",),
    ("symbols",),
    ("attribution",),
    ("record",),
    ("views",),
    ("reports",),
    ("labelled",),
    ("measuring", "imported"),
    ("estimating",),
    ("diagnosis",),
    ("training",),
    ("models", "chainer", "calling"),
    ("explaining",),
    ("explanation_views",),
    ("model_views",),
    ("api",),
    ("cli", "__main__"),
)
# The package itself has the names that everybody may use; it imports the API only when somebody asks for it.
OUTSIDE = {"flopwatch"}


def layer_of(module: str) -> int:
    room = module.removeprefix("flopwatch.").split(".")[0]
    for number, rooms in enumerate(LAYERS):
        if room in rooms:
            return number
    raise AssertionError(f"{module} has no layer: add it to LAYERS")


def module_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports_of(body: list[ast.stmt]) -> list[str]:
    """The modules of this package that a module imports when it is imported itself."""
    found: list[str] = []
    for node in body:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            name = node.module or ""
            found += [f"{name}.{alias.name}" for alias in node.names] if name == "flopwatch" else [name]
        elif not is_type_checking(node) and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for block in ("body", "orelse", "finalbody"):
                found += imports_of(getattr(node, block, []))
    return [name for name in found if name.split(".")[0] == "flopwatch" and name not in OUTSIDE]


MODULES = {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


@pytest.mark.parametrize("module", sorted(set(MODULES) - OUTSIDE))
def test_imports_point_down(module: str) -> None:
    for imported in imports_of(ast.parse(MODULES[module].read_text()).body):
        if imported.startswith("flopwatch.__"):
            continue  # the version
        assert layer_of(imported) <= layer_of(module), f"{module} imports {imported}, which lies above it"


def test_only_the_command_line_prints_or_exits() -> None:
    for module, path in MODULES.items():
        if layer_of(module) == layer_of("flopwatch.cli") if module not in OUTSIDE else False:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("print", "sys.exit", "exit", "click.echo"), f"{module} calls {called}"


def test_no_file_is_too_long() -> None:
    for module, path in MODULES.items():
        assert len(path.read_text().splitlines()) <= 300, f"{module} wants to be a folder"
