"""The loop: gradients of accumulated groups, the schedule, exact numbers, order that resumes, divergence."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from flopwatch.training import recipes  # noqa: E402
from flopwatch.training.clock import FIRST, Clock  # noqa: E402
from flopwatch.training.loading import Endless, Order, mixed, sizes  # noqa: E402
from flopwatch.training.loop import Loop, Position  # noqa: E402
from tests.training_things import Plain  # noqa: E402

pytestmark = pytest.mark.torch

CLASSES, WIDTH = 3, 6


def linear() -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(WIDTH, CLASSES))


def pictures(count: int) -> list[tuple[Any, int]]:
    generator = torch.Generator().manual_seed(2)
    return [(torch.randn(1, 2, WIDTH // 2, generator=generator), number % CLASSES) for number in range(count)]


def loop_of(trained: Any, recipe: Any, **options: Any) -> Loop:
    return Loop(trained, recipe, head=CLASSES, device="cpu", clock=Clock(lambda: None), **options)


def loader_of(items: list[Any], batch: int, seed: int | None = None) -> tuple[Any, Order]:
    order = Order(len(items), batch, seed)
    return torch.utils.data.DataLoader(items, batch_sampler=order), order


def epoch(images: int, batch: int, accumulate: int, **changes: Any) -> tuple[Any, Plain, Loop]:
    recipe = recipes.find("imagenet-example").with_(batch=batch, accumulate=accumulate, lr=0.5, **changes)
    trained = Plain(linear())
    loop = loop_of(trained, recipe)
    assert loop.train(*loader_of(pictures(images), batch), images) is None
    return trained.model[1].weight.detach(), trained, loop


def test_sizes_drop_no_image() -> None:
    assert sizes(9469, 256) == [256] * 36 + [253]
    assert sizes(9469, 64)[-1] == 61
    assert sizes(6, 3) == [3, 3]


def test_accumulated_batches_are_one_large_batch() -> None:
    accumulated, trained, _ = epoch(images=8, batch=2, accumulate=4)
    at_once, once, _ = epoch(images=8, batch=8, accumulate=1)
    assert (trained.steps, once.steps) == (1, 1)
    torch.testing.assert_close(accumulated, at_once)


def test_a_short_last_group_weighs_by_its_own_images() -> None:
    # Seven batches in groups of four: 4 × 2 images, then 2 + 2 + 1.
    accumulated, trained, _ = epoch(images=13, batch=2, accumulate=4)
    at_once, once, _ = epoch(images=13, batch=8, accumulate=1)
    assert (trained.steps, once.steps) == (2, 2)
    torch.testing.assert_close(accumulated, at_once)


def test_an_epoch_counts_every_image_once() -> None:
    _, _, loop = epoch(images=13, batch=2, accumulate=1)
    assert loop.meter.scores().n == 13
    assert loop.lap.images == 13
    assert loop.lap.first is not None
    assert loop.lap.first.batches == FIRST


def test_only_the_first_batches_of_a_process_are_apart() -> None:
    *_, loop = epoch(images=8, batch=2, accumulate=1, epochs=2)
    loop.next_epoch()
    loop.train(*loader_of(pictures(8), 2), 8)
    assert loop.lap.first is None
    assert loop.lap.images == 8


def test_a_compiled_network_s_first_batch_of_another_size_is_apart() -> None:
    recipe = recipes.find("imagenet-example").with_(batch=2, epochs=2)
    loop = loop_of(Plain(linear()), recipe, compiled=True)
    loop.train(*loader_of(pictures(13), 2), 13)
    assert loop.lap.first is not None
    assert (loop.lap.first.batches, loop.lap.first.images) == (FIRST + 1, FIRST * 2 + 1)
    assert sum(window.images for window in loop.lap.windows) == (6 - FIRST) * 2
    loop.next_epoch()
    loop.train(*loader_of(pictures(13), 2), 13)
    assert loop.lap.first is None
    assert loop.lap.images == 13


def test_the_rate_is_set_by_the_place_in_the_run() -> None:
    recipe = recipes.find("small").with_(batch=2, epochs=4)
    trained = Plain(linear())
    loop = loop_of(trained, recipe)
    seen = []
    loop._between = lambda done: seen.append((done, loop.rate))  # type: ignore[method-assign]
    loop._due = lambda done: True  # type: ignore[method-assign]
    loop.position = Position(1)
    loop.train(*loader_of(pictures(8), 2), 8)
    assert seen == [(done, recipe.lr_at(1, (done - 1) / 4)) for done in (1, 2, 3)]


def test_validation_counts_the_last_batch_by_its_images() -> None:
    trained = Plain(linear())
    loop = loop_of(trained, recipes.find("small"))
    items = pictures(7)
    scores, lap = loop.validate(*loader_of(items, 4))
    with torch.no_grad():
        right = [int(trained.model.eval()(x[None]).argmax()) == label for x, label in items]
    assert (scores.n, scores.hits1, lap.images) == (7, sum(right), 7)


def test_labels_are_moved_to_their_places_in_a_wider_head() -> None:
    trained = Plain(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(WIDTH, 1000)))
    loop = Loop(
        trained, recipes.find("small"), head=1000, device="cpu", clock=Clock(lambda: None), places=(0, 217, 701)
    )
    _, labels = loop.moved(torch.zeros(3, 1, 2, 3), torch.tensor([2, 0, 1]))
    assert labels.tolist() == [701, 0, 217]


def test_an_order_depends_on_seed_and_epoch_and_can_start_anywhere() -> None:
    order = Order(10, 3, seed=5)
    first = list(order)
    assert sorted(index for batch in first for index in batch) == list(range(10))
    assert [len(batch) for batch in first] == [3, 3, 3, 1]
    order.epoch = 1
    assert list(order) != first
    order.epoch, order.start = 0, 2
    assert len(order) == 2
    assert list(order) == first[2:]
    assert list(order) == first  # the next pass is a whole one
    assert list(Order(10, 3, None)) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def test_a_loader_by_itself_never_ends() -> None:
    batches = iter(Endless(4, 3, seed=0))
    assert all(len(next(batches)) == 3 for _ in range(50))


def test_close_seeds_give_far_ones() -> None:
    seen = {mixed(seed, epoch) for seed in range(30) for epoch in range(30)}
    assert len(seen) == 30 * 30
    assert all(0 <= value < 2**63 for value in seen)


def test_a_run_that_diverges_ends_with_the_step() -> None:
    from flopwatch.training.precision import Running, find

    recipe = recipes.find("imagenet-example").with_(batch=2, lr=1e38)
    running = Running(linear(), lambda parameters: torch.optim.SGD(parameters, recipe.lr), find("fp32-ieee"))
    with running:
        verdict = loop_of(running, recipe).train(*loader_of(pictures(40), 2), 40)
    assert verdict is not None
    assert verdict.reason == "diverged"
    assert 1 < verdict.step < 20
