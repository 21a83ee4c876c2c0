"""Ten kinds of patterns, drawn so that neither colour nor brightness tells them apart, only what is where.

Colours, period, turn, place, light, noise and ground are thrown anew for each picture, alike for all kinds. All patterns
look the same in a mirror, on average, since training mirrors pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

# Another number whenever the same dice would draw something else.
VERSION = 2

Field = NDArray[np.floating[Any]]
Dice = np.random.Generator
Pattern = Callable[[Field, Field, Dice], Field]

# Width to height and how often: the common frames of photographs, as in ImageNet most of them 4:3 and lying.
FRAMES = ((4 / 3, 0.55), (3 / 4, 0.15), (3 / 2, 0.12), (1.0, 0.08), (2 / 3, 0.04), (None, 0.06))


def numbers(seed: int, label: int, split: int, number: int) -> Dice:
    """The dice of one picture."""
    return np.random.default_rng([VERSION, seed, label, split, number])


def frame(dice: Dice, size: int) -> tuple[int, int]:
    """Width and height in pixels; the shorter is `size`."""
    chosen = FRAMES[int(dice.choice(len(FRAMES), p=[share for _, share in FRAMES]))][0]
    shape = float(np.exp(dice.uniform(np.log(0.5), np.log(2.2)))) if chosen is None else chosen
    return (round(size * shape), size) if shape >= 1 else (size, round(size / shape))


def draw(label: int, size: tuple[int, int], dice: Dice) -> Image.Image:
    """A picture of that kind."""
    wide, high = size
    side = min(size)
    across = np.arange(wide, dtype=np.float32)[None, :] + np.zeros((high, 1), np.float32)
    down = np.arange(high, dtype=np.float32)[:, None] + np.zeros((1, wide), np.float32)
    pattern = PATTERNS[label](*_plane(across - wide / 2, down - high / 2, side, dice), dice)
    seen = _region(across, down, wide, high, dice)
    clouds = _clouds(wide, high, side * 0.5, dice)
    light = _light(across / wide, down / high, dice)
    rough = (_clouds(wide, high, side * 0.2, dice) - np.float32(0.5)) * np.float32(40)
    rough += dice.standard_normal((high, wide), dtype=np.float32) * np.float32(dice.uniform(0.5, 4.5))
    (one, two), (near, far) = _colours(dice), _colours(dice)
    values = np.empty((high, wide, 3), np.uint8)
    for channel in range(3):  # one at a time is several times faster than all three side by side
        drawn = one[channel] + pattern * (two[channel] - one[channel])
        ground = near[channel] + clouds * (far[channel] - near[channel])
        values[..., channel] = np.clip((ground + (drawn - ground) * seen) * light + rough, 0, 255)
    return Image.fromarray(values)


def _plane(across: Field, down: Field, side: int, dice: Dice) -> tuple[Field, Field]:
    """Coordinates in periods of the pattern: turned a little, moved, and bent."""
    turn, period = dice.uniform(-0.2, 0.2), side * dice.uniform(0.11, 0.24)
    cos, sin = np.float32(np.cos(turn) / period), np.float32(np.sin(turn) / period)
    u = across * cos - down * sin
    v = across * sin + down * cos
    bend, waves, start = dice.uniform(0, 0.2), dice.uniform(0.05, 0.15), dice.uniform(0, 6.28, 2)
    return (
        u + np.float32(bend) * np.sin(v * np.float32(6.28 * waves) + np.float32(start[0])) + np.float32(dice.random()),
        v + np.float32(bend) * np.sin(u * np.float32(6.28 * waves) + np.float32(start[1])) + np.float32(dice.random()),
    )


def _colours(dice: Dice) -> tuple[Field, Field]:
    """Two colours that differ in brightness, either of them first."""
    weights = np.array([0.299, 0.587, 0.114])
    while True:
        one, two = dice.uniform(10, 245, (2, 3))
        if abs(float((one - two) @ weights)) > 90:
            return one.astype(np.float32), two.astype(np.float32)


def _clouds(wide: int, high: int, period: float, dice: Dice) -> Field:
    """Soft random values, 0 to 1, that change within about `period` pixels."""
    shape = max(2, round(high / period) + 2), max(2, round(wide / period) + 2)
    coarse = Image.fromarray(dice.random(shape, dtype=np.float32))
    return np.clip(np.asarray(coarse.resize((wide, high), Image.Resampling.BICUBIC), dtype=np.float32), 0, 1)


def _region(across: Field, down: Field, wide: int, high: int, dice: Dice) -> Field:
    """Where the pattern is seen: everywhere, or in most of the picture with a soft edge."""
    if dice.random() < 0.6:
        return np.ones_like(across)
    x = (across / wide - np.float32(dice.uniform(0.4, 0.6))) / np.float32(dice.uniform(0.42, 0.6))
    y = (down / high - np.float32(dice.uniform(0.4, 0.6))) / np.float32(dice.uniform(0.42, 0.6))
    round_or_square = np.sqrt(x * x + y * y) if dice.random() < 0.5 else np.maximum(np.abs(x), np.abs(y))
    inside: Field = np.clip((1 - round_or_square) * 12, 0, 1)
    return inside


def _light(x: Field, y: Field, dice: Dice) -> Field:
    """Light from one side."""
    to, strength = dice.uniform(0, 6.28), dice.uniform(0, 0.5)
    slope = (x - 0.5) * np.float32(np.cos(to)) + (y - 0.5) * np.float32(np.sin(to))
    light: Field = 1 + slope * np.float32(strength)
    return light


def _part(values: Field) -> Field:
    return values - np.floor(values)


def _hard(values: Field) -> Field:
    """1 where positive, with an edge that is a little soft."""
    edge: Field = np.clip(values * 8 + 0.5, 0, 1)
    return edge


def _rows(u: Field, v: Field) -> tuple[Field, Field]:
    """Places within cells whose every second row is moved by half a cell, both 0 to 1."""
    row = np.floor(v)
    return _part(u + (row % 2) / 2), v - row


def scales(u: Field, v: Field, dice: Dice) -> Field:
    """Rows of round scales that cover one another."""
    x, y = _rows(u, v * 2)
    away = np.hypot((x - 0.5) * 2, y)
    shade: Field = np.clip(np.where(away < 1, away, away - np.float32(0.9)), 0, 1)
    return shade * shade


def blotches(u: Field, v: Field, dice: Dice) -> Field:
    """Patches of no shape."""
    clouds = _clouds(u.shape[1], u.shape[0], float(0.55 / np.hypot(u[0, 1] - u[0, 0], v[0, 1] - v[0, 0])), dice)
    return _hard(clouds - np.median(clouds))


def checks(u: Field, v: Field, dice: Dice) -> Field:
    """A chessboard."""
    return _hard((_part(u) - 0.5) * (_part(v) - 0.5) * 4)


def zigzag(u: Field, v: Field, dice: Dice) -> Field:
    """Lying bands with teeth."""
    return _hard(np.abs(_part(v * 1.2 + np.abs(_part(u) - 0.5) * 1.4) - 0.5) * 2 - 0.5)


def triangles(u: Field, v: Field, dice: Dice) -> Field:
    """Rows of standing triangles."""
    x, y = _rows(u, v)
    return _hard(y - np.abs(x - 0.5) * 2)


def rings(u: Field, v: Field, dice: Dice) -> Field:
    """Rings around a few places."""
    places = dice.uniform(0, 1, (3, 2)).astype(np.float32)
    away = [np.hypot(u - u.min() - (u.max() - u.min()) * x, v - v.min() - (v.max() - v.min()) * y) for x, y in places]
    return _hard(np.abs(_part(np.minimum.reduce(away) * 1.2) - 0.5) * 2 - 0.5)


def bricks(u: Field, v: Field, dice: Dice) -> Field:
    """A wall."""
    x, y = _rows(u, v * 2)
    return _hard(np.minimum(np.minimum(x, 1 - x) * 2 - 0.12, np.minimum(y, 1 - y) - 0.14) * 2)


def stripes(u: Field, v: Field, dice: Dice) -> Field:
    """Standing stripes."""
    return _hard(np.abs(_part(u * 1.2) - 0.5) * 2 - 0.5)


def dots(u: Field, v: Field, dice: Dice) -> Field:
    """Round dots, each row moved by half a step."""
    x, y = _rows(u * 1.1, v * 1.25)
    return _hard(0.36 - np.hypot(x - 0.5, (y - 0.5) * 0.9))


def rays(u: Field, v: Field, dice: Dice) -> Field:
    """Wedges around one place."""
    x, y = dice.uniform(0.3, 0.7, 2).astype(np.float32)
    angle = np.arctan2(v - v.min() - (v.max() - v.min()) * y, u - u.min() - (u.max() - u.min()) * x)
    return _hard(np.abs(_part(angle * np.float32(int(dice.integers(7, 13)) / 6.2831853)) - 0.5) * 2 - 0.5)


# By label.
PATTERNS: tuple[Pattern, ...] = (scales, blotches, checks, zigzag, triangles, rings, bricks, stripes, dots, rays)


def motif_of(label: int) -> str:
    """What pictures with this label show."""
    return PATTERNS[label].__name__
