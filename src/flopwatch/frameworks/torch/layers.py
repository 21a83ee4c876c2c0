"""The layers of a model: a path for each module, and the owner of each parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import nn
from torch.jit import ScriptModule

from flopwatch.frameworks import ROOT, Part


class Layers:
    """Module paths ("layer1.0.conv1"; the model itself is "(model)"), fixed when made.

    A module that is registered under several names has the first one, like its parameters. The inside of a compiled or
    scripted module runs as one piece and has no layers; `sealed` holds the paths of such modules.
    """

    def __init__(self, model: nn.Module) -> None:
        self.modules: Mapping[str, nn.Module] = dict(_walk(model, "", set()))
        self.sealed = tuple(path for path, module in self.modules.items() if _is_sealed(module))
        self._paths = {id(module): path for path, module in self.modules.items()}
        self._owners: dict[int, str] = {}
        self._parameters: dict[str, int] = {}
        for path, module in self.modules.items():
            fresh = [p for p in module.parameters(recurse=_is_sealed(module)) if id(p) not in self._owners]
            self._owners.update((id(parameter), path) for parameter in fresh)
            self._parameters[path] = sum(parameter.numel() for parameter in fresh)

    def path(self, module: nn.Module) -> str | None:
        """The path of a module, None for one that is no part of the model."""
        return self._paths.get(id(module))

    def owner(self, parameter: object) -> str | None:
        """The path of the module that holds a parameter, None for a stranger."""
        return self._owners.get(id(parameter))

    @property
    def parts(self) -> tuple[Part, ...]:
        """All layers in the order in which the model holds them."""
        return tuple(
            Part(path, type(getattr(module, "_orig_mod", module)).__name__, self._parameters[path])
            for path, module in self.modules.items()
        )


def _walk(module: nn.Module, path: str, seen: set[int]) -> Iterator[tuple[str, nn.Module]]:
    seen.add(id(module))
    yield path or ROOT, module
    if _is_sealed(module):
        return
    for name, child in module.named_children():
        if id(child) not in seen:
            yield from _walk(child, f"{path}.{name}" if path else name, seen)


def _is_sealed(module: nn.Module) -> bool:
    # torch.compile(module) gives a wrapper that holds the original, module.compile() marks the module itself.
    compiled = hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None
    return compiled or isinstance(module, ScriptModule)
