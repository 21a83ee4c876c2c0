"""What the optimizer works on: the parameters themselves, or fp32 master copies of the narrow ones, as in Apex's O2."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import LBFGS, Optimizer

from flopwatch.errors import CannotMeasureError, UsageError

# What is not above it is rounded to 0 in fp16, whose least number is 2^-24.
_HALF_ZERO = 2.0**-25

MakeOptimizer = Callable[[list[nn.Parameter]], Optimizer]


class Masters:
    """The trainable parameters of a model and what the optimizer sees in their place.

    `pairs` are (parameter of the model, fp32 master); `alone` are those that the optimizer works on directly. Masters are
    made from the narrow parameters, as Apex made them: what was rounded away stays away. `make_optimizer` gets one
    parameter for each trainable one of the model, in the same order; frozen ones have no master. Groups that it makes from
    the model's own parameters are understood, too. Raises UsageError for a model with nothing to train and an optimizer of
    foreign parameters, CannotMeasureError for one that needs a closure.
    """

    def __init__(self, model: nn.Module, make_optimizer: MakeOptimizer, masters: bool) -> None:
        trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
        if not trained:
            raise UsageError("There is nothing to train.", seen="Every parameter of the model is frozen.")
        self.names = {parameter: name for name, parameter in trained.items()}
        self.pairs: list[tuple[nn.Parameter, nn.Parameter]] = []
        self.alone: list[nn.Parameter] = []
        seen: list[nn.Parameter] = []
        for parameter in trained.values():
            if masters and parameter.is_floating_point() and parameter.dtype != torch.float32:
                master = nn.Parameter(parameter.detach().clone().float())
                self.pairs.append((parameter, master))
            else:
                master = parameter
                self.alone.append(parameter)
            seen.append(master)
        self.master_of = dict(self.pairs)
        self.optimizer = make_optimizer(seen)
        if isinstance(self.optimizer, LBFGS):
            raise CannotMeasureError(
                "LBFGS can't be trained with here.",
                seen="Each of its steps runs the model several times.",
                todo="Take SGD or Adam.",
            )
        self._put_masters_in()

    def _put_masters_in(self) -> None:
        known = {*self.alone, *self.master_of.values()}
        for group in self.optimizer.param_groups:
            group["params"] = [self.master_of.get(each, each) for each in group["params"]]
            if not known.issuperset(each for each in group["params"] if each.requires_grad):
                raise UsageError("The optimizer was made for parameters that are not the model's.")
        for parameter, master in self.pairs:
            if parameter in self.optimizer.state:
                state = self.optimizer.state.pop(parameter)
                self.optimizer.state[master] = {key: _widened(value) for key, value in state.items()}

    def notes(self) -> tuple[str, ...]:
        """What the optimizer can't do in the types of what it works on."""
        for group in self.optimizer.param_groups:
            half = any(each.dtype == torch.float16 for each in group["params"])
            if half and isinstance(eps := group.get("eps"), float) and 0 < eps <= _HALF_ZERO:
                return (f"The optimizer's eps of {eps:g} is 0 in fp16: it divides by zero where gradients vanish.",)
        return ()

    def gather(self, inverse: float, found: torch.Tensor | None) -> None:
        """Bring the gradients of the model, multiplied by `inverse`, to where the optimizer reads them.

        Those of pairs are added to what the masters have, and stay in the model as they are. `found` becomes 1 if any is
        not finite; None: nobody looks, and gradients whose factor is 1 are not touched.
        """
        owed = [(parameter, master) for parameter, master in self.pairs if parameter.grad is not None]
        fresh = [(parameter, master) for parameter, master in owed if master.grad is None]
        for _, master in fresh:
            master.grad = torch.empty_like(master)
        if fresh:
            torch._foreach_copy_([_grad(master) for _, master in fresh], [_grad(parameter) for parameter, _ in fresh])
        _unscale([_grad(master) for _, master in fresh], inverse, found)
        new = {master for _, master in fresh}
        more = [(parameter, master) for parameter, master in owed if master not in new]
        added = [_grad(parameter).float() for parameter, _ in more]
        _unscale(added, inverse, found)
        if added:
            torch._foreach_add_([_grad(master) for _, master in more], added)

    def unscale_alone(self, inverse: float, found: torch.Tensor | None) -> None:
        """Multiply the gradients of parameters without master by `inverse`, in place; `found` as in `gather`."""
        _unscale([each.grad for each in self.alone if each.grad is not None], inverse, found)

    def give_back(self) -> None:
        """Round the masters into the model."""
        if self.pairs:
            with torch.no_grad():
                torch._foreach_copy_([each for each, _ in self.pairs], [master for _, master in self.pairs])

    def gradient(self, parameter: nn.Parameter) -> torch.Tensor | None:
        """The gathered gradient of a parameter of the model."""
        return self.master_of.get(parameter, parameter).grad

    def drop_pair_gradients(self) -> None:
        """Forget the narrow gradients, which have been gathered."""
        for parameter, _ in self.pairs:
            parameter.grad = None

    def zero(self) -> None:
        """Forget every gradient."""
        for parameter in (*self.alone, *(each for pair in self.pairs for each in pair)):
            parameter.grad = None

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The masters by the name of their parameter; empty where there are none."""
        return {self.names[parameter]: master.detach() for parameter, master in self.pairs}

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Fill the masters; raises UsageError where names or shapes are others."""
        have = {self.names[parameter]: master for parameter, master in self.pairs}
        shapes = {name: master.shape for name, master in have.items()}
        if shapes != {name: value.shape for name, value in state.items()}:
            raise UsageError("The checkpoint's master weights are those of another model.")
        with torch.no_grad():
            for name, master in have.items():
                master.copy_(state[name])


def _widened(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _grad(parameter: nn.Parameter) -> torch.Tensor:
    assert parameter.grad is not None
    return parameter.grad


def _unscale(gradients: Iterable[torch.Tensor], inverse: float, found: torch.Tensor | None) -> None:
    """Multiply in place and look for what is not finite, in one pass; by the kernel that torch.amp.GradScaler uses."""
    if found is None and inverse == 1:
        return
    by_dtype: dict[torch.dtype, list[torch.Tensor]] = {}
    for gradient in gradients:
        by_dtype.setdefault(gradient.dtype, []).append(gradient)
    for dtype, group in by_dtype.items():
        if found is not None and dtype in (torch.float32, torch.float16):
            factor = torch.full((), inverse, dtype=torch.float32, device=found.device)
            torch._amp_foreach_non_finite_check_and_unscale_(group, found, factor)
            continue
        torch._foreach_mul_(group, inverse)
        if found is not None:  # that kernel knows no bf16
            largest = torch.stack([each.abs().max().float() for each in group if each.numel()])
            found.logical_or_(~torch.isfinite(largest).all())
