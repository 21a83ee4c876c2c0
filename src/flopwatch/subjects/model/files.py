"""A model that a function in the user's file makes; what goes wrong in there is shown as the user's own."""

from __future__ import annotations

import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import flopwatch
from flopwatch.errors import FlopwatchError, UsageError
from flopwatch.subjects.model.catalogue import Made, suggestion

_OURS = os.path.dirname(os.path.abspath(flopwatch.__file__)) + os.sep


class ModelRaisedError(FlopwatchError):
    """The user's own code raised: its traceback is shown, without our part."""

    exit_code = 1


def builder(path: str, factory: str) -> tuple[str, Callable[[], Made]]:
    """The framework of the model, empty if only the model itself will tell, and a function that makes it.

    Raises UsageError if there is no such file or factory, or it makes no model; ModelRaisedError if it raises.
    """
    if not Path(path).is_file():
        raise UsageError(f"There is no file {path!r} to take a model from.")
    if not factory:
        raise UsageError(f"Which function of {path} makes the model?", todo=f"Write {path}:FACTORY.")
    if re.search(r"^\s*(?:import|from)\s+chainer\b", Path(path).read_text(errors="replace"), re.MULTILINE):
        from flopwatch.frameworks.chainer.compat import load  # where Chainer can be imported only with help

        load()
    with shown_as_the_users(f"{path} raised while it was loaded:"):
        module = _load(path)
    found = getattr(module, factory, None)
    if found is None:
        public = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise UsageError(f"{path} has no {factory!r}.", todo=suggestion(factory, public) if public else "")
    framework = framework_of(found)
    if framework:
        return framework, lambda: Made(found)
    if not callable(found):
        raise UsageError(
            f"{path}:{factory} is neither a model nor a function.", seen=f"It is a {type(found).__name__}."
        )

    return "", lambda: _made(path, factory, found)


def _made(path: str, factory: str, function: Callable[[], Any]) -> Made:
    with shown_as_the_users(f"{path}:{factory} raised:"):
        result = function()
    model, *arguments = result if isinstance(result, tuple) else (result,)
    if not framework_of(model):
        raise UsageError(
            f"{path}:{factory} does not make a model.",
            seen=f"It returned a {type(model).__name__}.",
            todo="Return a torch.nn.Module or a chainer.Link, alone or followed by the arguments of one call, keyword arguments in a dict.",
        )
    given, kwargs = _call_of(model, arguments)
    return Made(model, given if given or kwargs else None, kwargs=kwargs)


def _call_of(model: Any, arguments: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments and keyword arguments of one call, from what followed the model.

    A tuple and a dict are exactly that. A dict at the end holds keyword arguments if the model takes all its keys by name, else
    it is an argument like others.
    """
    match arguments:
        case [tuple(given), dict(named)]:
            return given, named
        case [*given, dict(named)] if named and _takes(model, named):
            return tuple(given), named
    return tuple(arguments), {}


def _takes(model: Any, names: Mapping[Any, Any]) -> bool:
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (AttributeError, TypeError, ValueError):
        return False
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return all(isinstance(name, str) for name in names)
    return set(names) <= {
        each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    }


def framework_of(model: object) -> str:
    """ "torch" or "chainer", empty for what is no model."""
    for framework, base in (("torch", "torch.nn.modules.module.Module"), ("chainer", "chainer.link.Link")):
        if any(f"{each.__module__}.{each.__qualname__}" == base for each in type(model).__mro__):
            return framework
    return ""


def _load(path: str) -> ModuleType:
    name = Path(path).stem
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path!r} is not a Python file.")
    module = module_from_spec(spec)
    # As `python FILE` does: the file's folder comes first, so that it finds its neighbours; models may look up their own module.
    sys.path.insert(0, str(Path(path).resolve().parent))
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


@contextmanager
def shown_as_the_users(happened: str) -> Iterator[None]:
    """Turn an exception of the user's code into a ModelRaisedError that shows only their part of the traceback."""
    try:
        yield
    except FlopwatchError:
        raise
    except Exception as error:
        raise ModelRaisedError(happened, seen="\n" + users_traceback(error)) from error


def users_traceback(error: BaseException) -> str:
    """The traceback of an exception without the frames of flopwatch and of Python's import system."""
    report = traceback.TracebackException.from_exception(error)
    _strip(report, set())
    return "".join(report.format()).rstrip()


def _strip(report: traceback.TracebackException, seen: set[int]) -> None:
    if id(report) in seen:
        return
    seen.add(id(report))
    kept = [frame for frame in report.stack if not _is_ours(frame.filename)]
    report.stack = traceback.StackSummary.from_list(kept)
    for inner in (report.__cause__, report.__context__, *(report.exceptions or ())):
        if inner is not None:
            _strip(inner, seen)


def _is_ours(filename: str) -> bool:
    return os.path.abspath(filename).startswith(_OURS) or filename.startswith("<frozen importlib")
