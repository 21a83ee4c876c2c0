"""Accuracy: exact counts, k that fits, intervals, chance."""

from __future__ import annotations

import pytest

from flopwatch.training.metrics import chance, wilson

torch = pytest.importorskip("torch", reason="needs PyTorch")

from flopwatch.training.metrics import Meter  # noqa: E402

pytestmark = pytest.mark.torch


def outputs(*guesses: int, classes: int) -> object:
    """Outputs whose order is: the guess, then the classes from the last to the first."""
    rows = [[float(label) for label in range(classes)] for _ in guesses]
    for row, guess in zip(rows, guesses, strict=True):
        row[guess] = 100.0
    return torch.tensor(rows)


def test_wilson_s_interval_is_that_of_the_books() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I: 81/263, 15/148, 0/20, 1/29.
    for hits, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        interval = wilson(hits, n)
        assert interval is not None
        assert (round(interval[0], 4), round(interval[1], 4)) == (low, high)
    assert wilson(0, 0) is None


def test_batches_weigh_by_their_images() -> None:
    meter = Meter(10, "cpu")
    meter.add(outputs(1, 2, 3, classes=10), torch.tensor([1, 2, 3]), torch.tensor(1.0))
    meter.add(outputs(4, classes=10), torch.tensor([5]), torch.tensor(5.0))
    scores = meter.scores()
    assert (scores.n, scores.hits1, scores.top1) == (3 + 1, 3, 3 / 4)
    assert scores.loss == (3 * 1.0 + 1 * 5.0) / 4
    # The second batch guesses 4, 9, 8, 7, 6 and misses 5.
    assert (scores.hits5, scores.top5) == (3, 3 / 4)


def test_top_5_counts_five_guesses() -> None:
    meter = Meter(10, "cpu")
    meter.add(outputs(0, 0, 0, classes=10), torch.tensor([6, 5, 0]), torch.tensor(0.0))
    scores = meter.scores()
    assert (scores.hits1, scores.hits5) == (1, 2)  # 0, 9, 8, 7, 6 are the guesses


def test_fewer_than_five_classes_have_no_top_5() -> None:
    meter = Meter(4, "cpu")
    meter.add(outputs(1, 2, classes=4), torch.tensor([1, 3]), torch.tensor(0.5))
    scores = meter.scores()
    assert scores.top5 is None
    assert scores.top1 == 1 / 2


def test_five_classes_have_a_top_5_that_says_nothing() -> None:
    meter = Meter(5, "cpu")
    meter.add(outputs(1, classes=5), torch.tensor([4]), torch.tensor(0.5))
    assert meter.scores().top5 == 1.0


def test_a_loss_that_is_not_finite_is_told_and_left_out_of_the_mean() -> None:
    meter = Meter(3, "cpu")
    for loss in (2.0, float("inf"), float("nan")):
        meter.add(outputs(0, classes=3), torch.tensor([0]), torch.tensor(loss))
    assert meter.settle() == [False, True, True]
    assert meter.settle() == []
    assert (meter.scores().n, meter.scores().loss) == (3, 2.0)


def test_a_meter_goes_on_from_its_state() -> None:
    meter, other = Meter(10, "cpu"), Meter(10, "cpu")
    meter.add(outputs(1, 2, classes=10), torch.tensor([1, 3]), torch.tensor(1.5))
    other.load_state(meter.as_state())
    for each in (meter, other):
        each.add(outputs(4, classes=10), torch.tensor([4]), torch.tensor(3.0))
    assert meter.scores() == other.scores()
    assert other.scores().loss == (2 * 1.5 + 3.0) / 3


def test_chance_is_the_most_frequent_class() -> None:
    labels = [0] * 3 + [1] * 2 + [2, 3, 4, 5, 6]
    assert chance(labels, 7) == (3 / 10, (3 + 2 + 1 + 1 + 1) / 10)
    assert chance([0, 1, 1], 2) == (2 / 3, None)
    assert chance([], 2) == (None, None)
