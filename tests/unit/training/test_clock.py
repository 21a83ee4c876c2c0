"""The clock, wound by hand: what is waiting, what is work, when the processor is waited for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flopwatch.training.clock import Clock, Lap, Window, synchronizer
from flopwatch.training.probes import advice, loader


class Hand:
    """A clock: `tick` moves it; `syncs` are the moments when somebody waited for the processor."""

    def __init__(self) -> None:
        self.time = 0.0
        self.syncs: list[float] = []

    def now(self) -> float:
        return self.time

    def tick(self, seconds: float) -> None:
        self.time += seconds

    def sync(self) -> None:
        self.syncs.append(self.time)


LOADING, STEP, IMAGES = 2.0, 3.0, 8


def run(hand: Hand, clock: Clock, batches: int) -> None:
    def source() -> Iterator[int]:
        for number in range(batches):
            hand.tick(LOADING)
            yield number

    for _ in clock.batches(source()):
        hand.tick(STEP)
        clock.count(IMAGES)


def test_waiting_is_the_time_without_a_batch() -> None:
    hand = Hand()
    clock = Clock(hand.sync, hand.now)
    clock.begin()
    run(hand, clock, 4)
    window = clock.end()
    assert (window.images, window.batches) == (4 * IMAGES, 4)
    assert (window.seconds, window.waited) == (4 * (LOADING + STEP), 4 * LOADING)


def test_the_processor_is_waited_for_at_the_edges_only() -> None:
    hand = Hand()
    clock = Clock(hand.sync, hand.now)
    clock.begin()
    run(hand, clock, 5)
    clock.end()
    assert hand.syncs == [0.0, 5 * (LOADING + STEP)]


def test_what_happens_between_windows_is_in_none() -> None:
    hand = Hand()
    clock = Clock(hand.sync, hand.now)
    clock.begin()
    run(hand, clock, 1)
    clock.end()
    hand.tick(1000.0)  # a checkpoint is written
    clock.begin()
    run(hand, clock, 1)
    assert clock.end().seconds == LOADING + STEP


def test_a_rate_is_images_by_seconds_without_the_first_batches() -> None:
    lap = Lap(Window(30, 90.0, 10.0, 3), [Window(100, 10.0, 1.0), Window(50, 20.0, 8.0)])
    assert lap.rate == (100 + 50) / (10.0 + 20.0)  # not the mean of 10 and 2.5
    assert lap.waited == (1.0 + 8.0) / (10.0 + 20.0)
    assert (lap.seconds, lap.images, lap.steady) == (90.0 + 10.0 + 20.0, 30 + 100 + 50, True)


def test_without_anything_else_the_first_batches_are_the_rate() -> None:
    lap = Lap(Window(30, 90.0, 10.0, 3))
    assert (lap.rate, lap.steady) == (30 / 90.0, False)
    assert Lap().rate is None


def test_the_trend_compares_the_ends_of_an_epoch() -> None:
    slowing = Lap(None, [Window(100, seconds, 0.0) for seconds in (1.0, 1.0, 2.0, 2.0, 4.0, 4.0)])
    assert slowing.trend == (100 / 4.0) / (100 / 1.0)
    assert Lap(None, [Window(1, 1.0, 0.0)] * 5).trend is None


def test_a_lap_goes_through_a_checkpoint() -> None:
    lap = Lap(Window(30, 90.0, 10.0, 3), [Window(100, 10.0, 1.0, 9)])
    assert Lap.from_state(lap.as_state()) == lap


def test_a_device_that_cannot_be_waited_for_has_no_clock() -> None:
    synchronizer("cpu")()
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="wait"):
        synchronizer("abacus")


def test_advice_names_the_workers_that_are_needed() -> None:
    # Two workers give 100 images a second, so 50 each; the processor could take 420.
    text = advice(0.7, 420.0, 100.0, 2, 64)
    assert text.startswith("loader-bound: 9 workers needed, 2 there; 70% of the time")
    assert "more than the 4 cores" in advice(0.7, 420.0, 100.0, 2, 4)
    assert advice(0.5, 420.0, 100.0, 0, 64).startswith("loader-bound: 5 workers needed, 0 there")
    assert advice(0.01, 100.0, 420.0, 2, 4) == ""
    assert "fast enough" in advice(0.5, 100.0, 420.0, 2, 4)
    assert advice(None, None, None, 2, 4) == ""


@pytest.mark.parametrize("device", ["cuda:1", "cuda", "mps", "xpu"])
def test_each_kind_of_device_is_waited_for_in_its_own_way(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    waited: list[str] = []
    for kind in ("cuda", "mps", "xpu"):
        monkeypatch.setattr(getattr(torch, kind), "synchronize", lambda *where, kind=kind: waited.append(kind))
    synchronizer(device)()
    assert waited == [device.partition(":")[0]]


def test_the_loader_by_itself_starts_after_its_workers() -> None:
    hand = Hand()

    def batches() -> Iterator[tuple[None, list[int]]]:
        hand.tick(100.0)  # the workers start
        while True:
            hand.tick(LOADING)
            yield None, [0] * IMAGES

    rate = loader(batches(), 2, Clock(hand.sync, hand.now), seconds=3 * LOADING)
    assert (rate.images, rate.seconds) == (3 * IMAGES, 3 * LOADING)
    assert rate.start_up == 100.0 + 2 * 2 * LOADING
    assert rate.per_second == IMAGES / LOADING
