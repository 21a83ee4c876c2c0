"""Steps of optimizers, for each parameter element what PyTorch's unfused step does; products and sums are not joined.

What is done once for a whole tensor (the step's number, corrections of bias) is plain Python there and is not counted.
"""

from __future__ import annotations

from flopwatch.flops.formulas.work import Numbers, Work, work


def adam(numbers: Numbers, elements: int, *, decay: bool, decoupled: bool, amsgrad: bool, scaled: bool = False) -> Work:
    """Adam and, `decoupled`, AdamW (Kingma and Ba 2014; Loshchilov and Hutter 2017; Reddi et al. 2018 for amsgrad).

    Decay: g + λ θ (a product, a sum), or θ (1 - η λ) (a product). m + (1 - β₁)(g - m): two sums and a product.
    β₂ v + (1 - β₂) g g: three products and a sum. √v̂ / c + ε: root, quotient and sum; θ - η m / (…): product, quotient, sum.
    amsgrad: the larger of two v. `scaled`: the gradient by the loss scale first.
    """
    return work(
        numbers,
        add=(5 + (decay and not decoupled)) * elements,
        mul=(5 + decay) * elements,
        div=(2 + scaled) * elements,
        sqrt=elements,
        minmax=amsgrad * elements,
    )


def sgd(
    numbers: Numbers,
    elements: int,
    *,
    decay: bool,
    momentum: bool,
    dampening: bool = False,
    nesterov: bool = False,
    first: bool = False,
    scaled: bool = False,
) -> Work:
    """Stochastic gradient descent, with momentum (Sutskever et al. 2013).

    Decay: g + λ θ. Momentum: μ b + (1 - τ) g, a product and a sum, a second product where τ (dampening) is not zero; in the first
    step b is g. Nesterov: g + μ b. Then θ - η g.
    """
    moving = momentum and not first
    sums = 1 + decay + moving + (momentum and nesterov)
    products = 1 + decay + moving + (moving and dampening) + (momentum and nesterov)
    return work(numbers, add=sums * elements, mul=products * elements, div=scaled * elements)


def adagrad(numbers: Numbers, elements: int, *, decay: bool, scaled: bool = False) -> Work:
    """Adagrad (Duchi et al. 2011): s + g g; √s + ε; θ - η g / (…). Decay: g + λ θ."""
    return work(
        numbers,
        add=(3 + decay) * elements,
        mul=(2 + decay) * elements,
        div=(1 + scaled) * elements,
        sqrt=elements,
    )
