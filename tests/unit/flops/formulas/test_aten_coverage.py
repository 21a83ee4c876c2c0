"""Every operator of the installed PyTorch has a formula, is free for a reason, or stands on the list of unknown ones."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from flopwatch.flops.formulas import known, lookup

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("torch._prims", reason="registers the primitive operators")

pytestmark = pytest.mark.torch

UNKNOWN = Path(__file__).parents[3] / "data" / "aten_unknown.toml"

# The compiler adds primitives of its own, which no dispatch ever delivers, when anything has loaded it: ask a fresh process.
ASK = """
import json, torch, torch._prims
found = {}
for schema in torch._C._jit_get_all_schemas():
    name = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
    if schema.name.startswith(("aten::", "prims::")) and torch._C._dispatch_has_kernel(name):
        composite = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
        found[schema.name] = found.get(schema.name, True) and composite
print(json.dumps(found))
"""


@cache
def dispatched() -> Mapping[str, bool]:
    """Operators that can be dispatched at all, and whether all overloads are composite: seen through their parts.

    A composite operator is decomposed before it reaches a dispatch mode, except in inference mode; there `decompose` does it.
    The built-in functions of TorchScript, which have schemas too, have no kernels and never get there.
    """
    answer = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True).stdout
    found: dict[str, bool] = json.loads(answer)
    return found


def reasons() -> Mapping[str, str]:
    """Why operators are unknown."""
    rows = tomllib.loads(UNKNOWN.read_text())["unknown"]
    return {name if "::" in name else f"aten::{name}": row["reason"] for row in rows for name in row["names"].split()}


def test_every_operator_is_known_or_listed() -> None:
    listed = reasons()
    missing = [name for name, composite in dispatched().items() if not (composite or lookup(name) or name in listed)]
    assert not missing, "give these a formula, a reason to be free, or a row in aten_unknown.toml"


def test_the_list_only_shrinks() -> None:
    known = [name for name in reasons() if lookup(name)]
    assert not known, "these are known now: strike them off aten_unknown.toml"


def test_no_operator_is_listed_twice_or_for_no_reason() -> None:
    rows = tomllib.loads(UNKNOWN.read_text())["unknown"]
    names = Counter(name for row in rows for name in row["names"].split())
    assert max(names.values()) == 1
    assert all(row["reason"] for row in rows)


def test_composite_operators_are_not_listed() -> None:
    composite = [name for name, parts in dispatched().items() if parts]
    assert not set(composite) & set(reasons()), "they are seen through their parts"


def test_most_operators_are_known() -> None:
    every = [name for name, composite in dispatched().items() if not composite]
    assert len(every) > 1000
    assert sum(1 for name in every if lookup(name)) > 0.97 * len(every)


def test_no_name_is_misspelt() -> None:
    """What is registered for a namespace that PyTorch itself fills is an operator there."""
    every = {schema.name for schema in torch._C._jit_get_all_schemas()}
    lookup("aten::add")  # which loads the dialect
    names = {name for name in known() if name.startswith(("aten::", "prims::"))}
    assert {name for name in names if name not in every and f"{name}_" not in every} == set()
