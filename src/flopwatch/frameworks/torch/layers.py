"""The layers of a model: a path for each module, and the owner of each parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import nn
from torch.jit import ScriptModule

from flopwatch.frameworks import ROOT, Part


class Layers:
    """Module paths ("layer1.0.conv1"; the model itself is "(model)"), fixed when made.

    A module that is registered under several names has the first one, like its parameters. The inside of a compiled or
    scripted module runs as one piece and has no layers; `sealed` holds the paths of such modules. With `eager` compiled modules
    are open: they are going to run as if nobody had compiled them.
    """

    def __init__(self, model: nn.Module, *, eager: bool = False) -> None:
        self._eager = eager
        self.modules: Mapping[str, nn.Module] = dict(self._walk(model, "", set()))
        self.sealed = tuple(path for path, module in self.modules.items() if self._is_sealed(module))
        self._paths = {id(module): path for path, module in self.modules.items()}
        self._owners: dict[int, str] = {}
        self._parameters: dict[str, int] = {}
        self._bytes: dict[str, int] = {}
        for path, module in self.modules.items():
            fresh = [p for p in module.parameters(recurse=self._is_sealed(module)) if id(p) not in self._owners]
            self._owners.update((id(parameter), path) for parameter in fresh)
            self._parameters[path] = sum(parameter.numel() for parameter in fresh)
            self._bytes[path] = sum(parameter.numel() * parameter.element_size() for parameter in fresh)

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
            Part(path, type(_inside(module)).__name__, self._parameters[path], self._bytes[path])
            for path, module in self.modules.items()
        )

    def _walk(self, module: nn.Module, path: str, seen: set[int]) -> Iterator[tuple[str, nn.Module]]:
        if self._eager:
            seen.add(id(module))
            module = _inside(module)
        seen.add(id(module))
        yield path or ROOT, module
        if self._is_sealed(module):
            return
        for name, child in module.named_children():
            if id(child) not in seen:
                yield from self._walk(child, f"{path}.{name}" if path else name, seen)

    def _is_sealed(self, module: nn.Module) -> bool:
        # torch.compile(module) gives a wrapper that holds the original, module.compile() marks the module itself.
        compiled = hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None
        return (compiled and not self._eager) or isinstance(module, ScriptModule)


def _inside(module: nn.Module) -> nn.Module:
    """The module that was compiled, if this is the wrapper that came of it."""
    inner: nn.Module = getattr(module, "_orig_mod", module)
    return inner
