"""What the forward of a model wants: names and shapes of tokens, pictures and sounds, from its signature and its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from flopwatch.errors import UsageError
from flopwatch.subjects.model.inputs import Shape

SEQUENCE = 512
"""Tokens, if nobody says how many, or as many as the model has positions for."""

SECOND = 16_000
"""Samples of sound, if nobody says how many."""

TOKENS, DECODED, PICTURE = "input_ids", "decoder_input_ids", "pixel_values"
DECODED_MASK, _PICTURE_MASK = "decoder_attention_mask", "pixel_mask"
_FEATURES, _VALUES = "input_features", "input_values"


# Parts of a model whose positions are those of patches or of frames.
_NOT_OF_TOKENS = ("vision", "visual", "image", "audio")


@dataclass(frozen=True, slots=True)
class Input:
    """One tensor that a forward takes by name."""

    name: str
    shape: Shape

    def __str__(self) -> str:
        return f"{self.name} {self.shape}"


def inputs(
    model: Any, taken: Mapping[str, Any], shapes: tuple[Shape, ...], batch: int, sequence: int | None, *, room: int = 0
) -> list[Input]:
    """The inputs of one forward, `shapes` in the place of the first of them; raises UsageError if they do not fit.

    An encoder with a decoder gets as many tokens in both. Unless `sequence` says otherwise, positions are left for `room` more.
    """
    wanted = [Input(name, shape) for name, shape in _wanted(model, taken, batch, sequence, room)]
    if not wanted:
        raise UsageError(
            f"What {type(model).__name__} is to be fed is not known.",
            seen=f"Its forward takes {', '.join(list(taken)[:6])}.",
            todo="Write a FILE.py:FACTORY that returns the model with its arguments.",
        )
    if len(shapes) > len(wanted):
        raise UsageError(
            f"{type(model).__name__} takes {len(wanted)} inputs, {len(shapes)} were given.",
            seen=f"They are: {', '.join(map(str, wanted))}.",
        )
    for number, shape in enumerate(shapes):
        like = wanted[number].shape
        if len(shape.sizes) != len(like.sizes):
            raise UsageError(f"{shape} is no shape for {wanted[number].name}.", todo=f"Write one like {like}.")
        wanted[number] = replace(wanted[number], shape=replace(shape, integer=like.integer))
    if len({each.shape.sizes[0] for each in wanted}) > 1:
        first = wanted[0].shape.sizes[0]
        wanted = [wanted[0], *(replace(each, shape=each.shape.with_batch(first)) for each in wanted[1:])]
    return wanted


def _wanted(
    model: Any, taken: Mapping[str, Any], batch: int, sequence: int | None, room: int
) -> Iterator[tuple[str, Shape]]:
    config = model.config
    seen, heard, read = (_part(config, name) for name in ("vision_config", "audio_config", "text_config"))
    length = sequence or min(SEQUENCE, (positions(read) or SEQUENCE + room) - room)
    tokens = Shape((batch, length), integer=True)
    # Models that compare pictures with words need both; those that talk about pictures, of which only the words are counted, write.
    compares = seen is not config and read is not config and not model.can_generate()
    if TOKENS in taken and (model.main_input_name == TOKENS or compares):
        yield TOKENS, tokens
    if PICTURE in taken and (model.main_input_name == PICTURE or compares):
        yield PICTURE, Shape((batch, *_picture(seen)))
    if _FEATURES in taken and model.main_input_name == _FEATURES:
        yield _FEATURES, Shape((batch, *_features(heard)))
    if _VALUES in taken and model.main_input_name == _VALUES:
        bins = getattr(heard, "num_mel_bins", None)
        yield _VALUES, Shape((batch, heard.max_length, bins) if bins else (batch, sequence or SECOND))
    if DECODED in taken:
        yield DECODED, tokens


def masks(taken: Mapping[str, Any], wanted: list[Input]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Masks of ones that models make for themselves where they get none, and then look at: on meta they could not."""
    sizes = {each.name: each.shape.sizes for each in wanted}
    if DECODED in sizes and DECODED_MASK in taken:
        yield DECODED_MASK, sizes[DECODED]
    if PICTURE in sizes and _PICTURE_MASK in taken:
        yield _PICTURE_MASK, (sizes[PICTURE][0], *sizes[PICTURE][2:])


def _part(config: Any, name: str) -> Any:
    """The configuration of a part of the model, or of all of it."""
    part = getattr(config, name, None)
    return config if part is None else part


def positions(config: Any) -> int | None:
    """How many tokens a model has positions for, None if its configuration does not say."""
    names = ("max_position_embeddings", "max_target_positions", "n_positions")
    found = [getattr(config, name, None) for name in names]
    return next((each for each in found if isinstance(each, int) and each > 0), None)


def _picture(config: Any) -> tuple[int, ...]:
    size = getattr(config, "image_size", None) or getattr(_part(config, "backbone_config"), "image_size", None) or 224
    height, width = (size, size) if isinstance(size, int) else tuple(size)[:2]
    channels = getattr(config, "num_channels", 3)
    frames = getattr(config, "num_frames", None)
    return (frames, channels, height, width) if frames else (channels, height, width)


def _features(config: Any) -> tuple[int, ...]:
    bins = getattr(config, "num_mel_bins", None)
    halved = getattr(config, "max_source_positions", None)
    if bins is None or halved is None:
        raise UsageError(
            f"How long the sound is that a {type(config).__name__} describes is not known.",
            todo="Write a FILE.py:FACTORY that returns the model with its arguments.",
        )
    # A second convolution of stride 2 makes one position of two frames.
    return (bins, 2 * halved)


def check_positions(model: Any, tokens: int) -> None:
    """Refuse more tokens than a table of their positions has rows: on meta, where no number is looked at, nobody else would."""
    import torch

    for name, module in model.named_modules():
        last = name.rpartition(".")[2]
        table = ("position" in last and "relative" not in last) or last == "wpe"
        if not table or not isinstance(module, torch.nn.Embedding) or any(each in name for each in _NOT_OF_TOKENS):
            continue
        if tokens > module.num_embeddings:
            raise UsageError(
                f"{type(model).__name__} cannot take {tokens} tokens.",
                seen=f"Its table of positions ({name}) has {module.num_embeddings} rows.",
                todo="Give a smaller --sequence.",
            )
