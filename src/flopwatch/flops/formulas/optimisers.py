"""Steps of optimizers, for each parameter element what PyTorch's unfused step does.

What is done once for a whole tensor (the step's number, corrections of bias) is plain Python there and is not counted.
"""

from __future__ import annotations

from flopwatch.flops.formulas.work import Numbers, Work, work


def adam(numbers: Numbers, elements: int, *, decay: bool, decoupled: bool, amsgrad: bool, scaled: bool = False) -> Work:
    """Adam and, `decoupled`, AdamW (Kingma and Ba 2014; Loshchilov and Hutter 2017; Reddi et al. 2018 for amsgrad).

    Decay: g + λ θ (a multiply-add), or θ (1 - η λ) (a product). m + (1 - β₁)(g - m): two sums and a product.
    β₂ v, and (1 - β₂) g g added to it: two products and a multiply-add. √v / c + ε: root, quotient and sum; θ - η m / (…): product,
    quotient, sum. amsgrad: the larger of two v. `scaled`: the gradient by the loss scale first.
    """
    return work(
        numbers,
        fma=(1 + (decay and not decoupled)) * elements,
        add=4 * elements,
        mul=(4 + (decay and decoupled)) * elements,
        div=(2 + scaled) * elements,
        sqrt=elements,
        minmax=amsgrad * elements,
    )


def sgd(
    numbers: Numbers,
    elements: int,
    *,
    rate: float | None,
    decay: float,
    momentum: float,
    dampening: float = 0,
    nesterov: bool = False,
    first: bool = False,
    scaled: bool = False,
) -> Work:
    """Stochastic gradient descent, with momentum (Sutskever et al. 2013).

    θ - η g, with g + λ θ for g if there is decay; with momentum μ b + (1 - τ) g for b and then b for g, or g + μ b (Nesterov); in the
    first step b is g. What is added is multiplied first, unless by 1. A learning rate of None is in a tensor: nobody knows it.
    """
    moving = momentum and not first
    factors = [rate]
    if decay:
        factors.append(decay)
    if moving:
        factors.append(1 - dampening)
    if momentum and nesterov:
        factors.append(momentum)
    joined = sum(factor not in (1, -1) for factor in factors)
    return work(
        numbers,
        fma=joined * elements,
        add=(len(factors) - joined) * elements,
        mul=bool(moving) * elements,
        div=scaled * elements,
    )


def adagrad(numbers: Numbers, elements: int, *, decay: bool, scaled: bool = False) -> Work:
    """Adagrad (Duchi et al. 2011): s + g g, a multiply-add; √s + ε; θ - η g / (…); decay: g + λ θ, a multiply-add."""
    return work(
        numbers,
        fma=(1 + decay) * elements,
        add=2 * elements,
        mul=elements,
        div=(1 + scaled) * elements,
        sqrt=elements,
    )
