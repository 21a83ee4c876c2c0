"""Recipes and the learning rates that they give, epoch by epoch."""

from __future__ import annotations

from math import cos, pi

import pytest

from flopwatch.errors import UsageError
from flopwatch.training import recipes


def test_the_example_is_that_of_pytorch() -> None:
    recipe = recipes.find("imagenet-example")
    assert (recipe.optimizer, recipe.lr, recipe.momentum, recipe.weight_decay) == ("sgd", 0.1, 0.9, 1e-4)
    assert (recipe.epochs, recipe.batch, recipe.workers, recipe.image_size) == (90, 256, 4, 224)
    assert (recipe.label_smoothing, recipe.scale, recipe.accumulate) == (0.0, 0.08, 1)


@pytest.mark.parametrize(
    ("epoch", "rate"),
    [(0, 0.1), (9, 0.1), (29, 0.1), (30, 0.1 * 0.1**1), (59, 0.1 * 0.1**1), (60, 0.1 * 0.1**2), (89, 0.1 * 0.1**2)],
)
def test_the_example_falls_to_a_tenth_every_thirty_epochs(epoch: int, rate: float) -> None:
    recipe = recipes.find("imagenet-example")
    assert recipe.lr_at(epoch, 0.0) == rate
    assert recipe.lr_at(epoch, 0.99) == rate


def test_one_cycle_goes_up_a_line_and_down_a_cosine() -> None:
    recipe = recipes.find("fast").with_(epochs=8, lr=0.5)
    up, low = recipe.warmup, recipe.lr * recipe.final
    assert recipe.lr_at(0, 0.0) == 0.5 / 25
    assert recipe.lr_at(1, 0.0) == pytest.approx(0.5 / 25 + (0.5 - 0.5 / 25) * (1 / 8) / up)
    assert recipe.lr_at(2, 0.0) == 0.5  # a quarter of eight epochs
    half = (0.625 - up) / (1 - up)
    assert recipe.lr_at(5, 0.0) == pytest.approx(low + (0.5 - low) * (1 + cos(pi * half)) / 2)
    assert recipe.lr_at(8, 0.0) == pytest.approx(low)


def test_rates_depend_on_the_place_alone() -> None:
    recipe = recipes.find("small").with_(epochs=4)
    assert recipe.lr_at(1, 0.5) == recipe.lr_at(0, 1.5)


def test_every_recipe_says_where_it_comes_from_and_goes_through_json() -> None:
    for recipe in recipes.recipes().values():
        assert recipe.source and recipe.about
        assert recipes.from_json(recipe.as_json()) == recipe


@pytest.mark.parametrize(
    ("field", "value"), [("batch", 0), ("epochs", 0), ("accumulate", 0), ("workers", -1), ("lr", float("nan"))]
)
def test_numbers_that_make_no_sense_are_refused(field: str, value: float) -> None:
    with pytest.raises(UsageError, match="is no"):
        recipes.find("fast").with_(**{field: value})


def test_a_mistyped_name_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean small"):
        recipes.find("smal")
