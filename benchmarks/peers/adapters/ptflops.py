"""ptflops with the backend that its signature defaults to: hooks and replaced functions."""

from __future__ import annotations

from peers.adapters._torch import one_argument, prepare
from peers.answers import Count
from peers.cases import Built, Case

VERSION_OF = "ptflops"
BACKEND = "pytorch"

__all__ = ["BACKEND", "VERSION_OF", "count", "counted", "prepare"]


def count(case: Case, built: Built) -> Count:
    """One forward with hooks."""
    return counted(built, BACKEND)


def counted(built: Built, backend: str) -> Count:
    """Ask one backend; it gives None where it failed, and says why on standard output."""
    from ptflops import get_model_complexity_info

    model, arguments = built
    if len(arguments) != 1:
        model = one_argument(model)
        given = {"arguments": arguments}
    else:
        given = {}

    def made(_: object) -> object:
        return given or arguments[0]

    macs, _ = get_model_complexity_info(
        model, (1,), input_constructor=made, as_strings=False, print_per_layer_stat=False, backend=backend
    )
    if macs is None:
        raise RuntimeError("ptflops gave None")
    # It divides by the first dimension of a single argument: its figure is for one sample.
    return Count(macs * (len(arguments[0]) if len(arguments) == 1 else 1), "MAC")
